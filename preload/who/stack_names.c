/* Names calls: by libkprof-symbols.so, or without it by the exported functions of the modules. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/room.h"
#include "base/text.h"
#include "preload/os/log.h"
#include "preload/os/mappings.h"
#include "preload/os/outcome.h"
#include "preload/os/symbols.h"
#include "preload/who/stack_body.h"
#include "report/dwarf/symbols.h"

void kp_stack_program(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = '\0';
}

int kp_stack_compare_calls(const void *a, const void *b)
{
    const struct kp_stack_call *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void kp_stack_names_free(struct kp_stack_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        struct kp_named_call *c = &names->calls[i];
        for (size_t p = 0; p < c->n_places; p++) {
            free(c->places[p].function);
            free(c->places[p].file);
        }
        free(c->places);
    }
    free(names->calls);
    *names = (struct kp_stack_names){.n = 0};
}

/* ---- receiving names ---- */

/* The calls of one module, all of which are being looked up. */
struct batch {
    struct kp_named_call *calls;
    bool failed; /* memory ran out */
};

static void take(void *arg, size_t index, const struct kp_symbol_place *places, size_t n)
{
    struct batch *b = arg;
    struct kp_named_call *c = &b->calls[index];
    c->places = calloc(n, sizeof(*c->places));
    for (size_t i = 0; c->places && i < n; i++) {
        struct kp_stack_place *p = &c->places[c->n_places++];
        *p = (struct kp_stack_place){.function = kp_demangle_function(places[i].function ? places[i].function : ""),
                                     .file = kp_strdup(places[i].file),
                                     .line = places[i].line};
        b->failed |= !p->function || !p->file;
    }
    b->failed |= !c->places;
}

/* ---- names of exported functions, of modules that are still loaded ---- */

struct loaded {
    const struct kp_stack_module *module;
    char program[PATH_MAX];
    uintptr_t base;
};

static int find_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct loaded *l = arg;
    (void)size;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : l->program;
    l->base = info->dlpi_addr;
    return !strcmp(path, l->module->path);
}

static void take_exported(const struct kp_stack_module *m, size_t n, struct batch *b)
{
    struct loaded l = {.module = m};
    int (*look)(const void *address, Dl_info *info);
    void *found = kp_symbols_dl()->sym(RTLD_DEFAULT, "dladdr");
    memcpy(&look, &found, sizeof(found));
    kp_stack_program(l.program, sizeof(l.program));
    if (!look || !dl_iterate_phdr(find_loaded, &l))
        return;
    for (size_t i = 0; i < n; i++) {
        Dl_info info;
        if (look((const void *)(l.base + b->calls[i].call.offset), &info) && info.dli_sname)
            take(b, i, &(struct kp_symbol_place){.function = info.dli_sname}, 1);
    }
}

/* ---- libkprof-symbols.so ---- */

static void tell_missing(const char *path)
{
    char *(*last)(void);
    void *found = kp_symbols_dl()->sym(RTLD_DEFAULT, "dlerror");
    memcpy(&last, &found, sizeof(found));
    const char *error = last ? last() : NULL;
    kp_outcome_failed(KP_FAILURE_STACKS);
    kp_log_warning("Call stacks have no files and lines: %s; install libdw (package libdw1 or elfutils-libs)",
                   error ? error : path);
}

/* Returns the folder that this code was loaded from: the library's, or that of a program that links it. */
static void own_folder(char *folder, size_t size)
{
    static const char here;
    if (kp_symbols_dl()->directory_of(&here, folder, size) && *folder == '/')
        return;
    /* A relative LD_PRELOAD fails once the program has changed its folder. */
    if (!kp_mappings_file(&here, folder, size))
        kp_stack_program(folder, size);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

static kp_symbols_resolve_fn *load(void)
{
    char folder[PATH_MAX], path[PATH_MAX + sizeof(KP_SYMBOLS_LIBRARY) + 1];
    const struct kp_dl *dl = kp_symbols_dl();
    kp_symbols_resolve_fn *resolve = NULL;
    own_folder(folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, KP_SYMBOLS_LIBRARY);
    void *library = dl->open ? dl->open(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *found = library ? dl->sym(library, KP_SYMBOLS_FUNCTION) : NULL;
    memcpy(&resolve, &found, sizeof(found));
    if (!found)
        tell_missing(path);
    return resolve;
}

/* Looks up the calls first[0..n-1], all of one module. */
static int look_up_module(const struct kp_stack_module *m, kp_symbols_resolve_fn *resolve, struct kp_named_call *first,
                          size_t n)
{
    struct batch b = {.calls = first};
    uint64_t *addresses = calloc(n, sizeof(*addresses));
    if (!addresses)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        addresses[i] = first[i].call.offset;
    const unsigned char *build_id = m->build_id_size ? m->build_id : NULL;
    if (!resolve || resolve(m->path, build_id, m->build_id_size, addresses, n, take, &b))
        take_exported(m, n, &b);
    free(addresses);
    return b.failed ? -ENOMEM : 0;
}

int kp_stack_look_up(const struct kp_stack_call *calls, size_t n, const struct kp_stack_module *modules,
                     struct kp_stack_names *names)
{
    kp_symbols_resolve_fn *resolve = load();
    int rc = 0;
    *names = (struct kp_stack_names){calloc(n, sizeof(*names->calls)), n};
    if (!names->calls) {
        names->n = 0;
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        names->calls[i].call = calls[i];
    for (size_t i = 0, end; !rc && i < n; i = end) {
        uint32_t module = calls[i].module;
        for (end = i; end < n && calls[end].module == module; end++)
            ;
        if (module)
            rc = look_up_module(&modules[module - 1], resolve, &names->calls[i], end - i);
    }
    if (rc)
        kp_stack_names_free(names);
    return rc;
}

/* ---- frames ---- */

/* A growing list of frames; keeps the first failure. */
struct frames {
    struct kp_frame *at;
    size_t n;
    int rc;
};

static void add_frame(struct frames *f, const struct kp_frame *frame)
{
    if (!KP_ROOM(f->at, f->n)) {
        f->rc = -ENOMEM;
        return;
    }
    struct kp_frame *copy = &f->at[f->n++];
    *copy = *frame;
    copy->function = kp_strdup(frame->function);
    copy->file = kp_strdup(frame->file);
    copy->module = kp_strdup(frame->module);
    if (!copy->function || !copy->file || !copy->module)
        f->rc = -ENOMEM;
}

static void add_call(struct frames *f, const struct kp_stack_call *call, const struct kp_stack_module *modules,
                     const struct kp_stack_names *names)
{
    const struct kp_named_call key = {.call = *call}, *named = NULL;
    struct kp_frame frame = {.kind = KP_FRAME_NATIVE, .offset = call->offset};
    if (names->n)
        named = bsearch(&key, names->calls, names->n, sizeof(*names->calls), kp_stack_compare_calls);
    frame.module = call->module ? modules[call->module - 1].path : NULL;
    if (!named || !named->n_places)
        add_frame(f, &frame);
    for (size_t i = 0; named && i < named->n_places; i++) {
        frame.function = named->places[i].function;
        frame.file = named->places[i].file;
        frame.line = named->places[i].line;
        add_frame(f, &frame);
    }
}

static void add_lines(struct frames *f, const struct kp_raw_stack *raw, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct kp_stack_line *l = &raw->lines[i];
        struct kp_frame frame = {.kind = KP_FRAME_PYTHON, .function = l->function, .file = l->file, .line = l->line};
        add_frame(f, &frame);
    }
}

/* ---- Python's place among native frames ---- */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool is_interpreter(const struct kp_frame *f)
{
    const char *name = kp_base_name(f->module);
    return begins(name, "python") || begins(name, "libpython");
}

/* Returns true if the function runs Python code: up to 3.10 one frame for each Python function, later one for all
 * functions that call each other without C code between them. */
static bool is_evaluation(const struct kp_frame *f)
{
    return is_interpreter(f) && begins(f->function, "_PyEval_EvalFrameDefault");
}

/* The interpreter's frames from `first` on. */
struct stretch {
    size_t end;
    size_t evaluations;
};

static struct stretch stretch_at(const struct frames *native, size_t first)
{
    struct stretch s = {.end = first};
    for (; s.end < native->n && is_interpreter(&native->at[s.end]); s.end++)
        s.evaluations += is_evaluation(&native->at[s.end]);
    return s;
}

/* Replaces the first to the last stretch by all Python functions, because the number of functions in an evaluation is
 * unknown. Native frames between the stretches belong somewhere among them, and are left out. If no evaluation is known
 * by name, any stretch may be one. */
static void merge_as_one(struct frames *out, const struct frames *native, const struct kp_raw_stack *raw, bool named)
{
    size_t first = native->n, end = native->n;
    for (size_t i = 0; i < native->n; i++) {
        struct stretch s = stretch_at(native, i);
        if (s.end == i || (named && !s.evaluations))
            continue;
        first = first < i ? first : i;
        end = s.end;
        i = s.end - 1;
    }
    for (size_t i = 0; i < first; i++)
        add_frame(out, &native->at[i]);
    add_lines(out, raw, 0, raw->n_lines);
    for (size_t i = end; i < native->n; i++)
        add_frame(out, &native->at[i]);
}

/* Replaces each evaluation by one Python function. */
static void merge_each(struct frames *out, const struct frames *native, const struct kp_raw_stack *raw)
{
    size_t line = 0;
    for (size_t i = 0; i < native->n; i++) {
        struct stretch s = stretch_at(native, i);
        if (!s.evaluations) {
            add_frame(out, &native->at[i]);
            continue;
        }
        add_lines(out, raw, line, line + s.evaluations);
        line += s.evaluations;
        i = s.end - 1;
    }
}

static void merge(struct frames *out, const struct frames *native, const struct kp_raw_stack *raw)
{
    size_t evaluations = 0;
    for (size_t i = 0; i < native->n; i++)
        evaluations += is_evaluation(&native->at[i]);
    if (evaluations == raw->n_lines)
        merge_each(out, native, raw);
    else
        merge_as_one(out, native, raw, evaluations > 0);
}

int kp_stack_frames(const struct kp_raw_stack *raw, const struct kp_stack_module *modules,
                    const struct kp_stack_names *names, struct kp_stack *out)
{
    struct frames native = {.n = 0}, merged = {.n = 0};
    for (size_t i = 0; !native.rc && i < raw->n_calls; i++)
        add_call(&native, &raw->calls[i], modules, names);
    out->frames = native.at;
    out->n_frames = native.n;
    if (!native.rc && raw->n_lines) {
        merge(&merged, &native, raw);
        struct kp_stack before = {.frames = native.at, .n_frames = native.n};
        kp_frames_free(&before);
        out->frames = merged.at;
        out->n_frames = merged.n;
    }
    if (native.rc || merged.rc) {
        kp_frames_free(out);
        return -ENOMEM;
    }
    return 0;
}
