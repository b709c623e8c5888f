/* The table of driver functions against the header, the driver's stub, what the library exports and the table of those
 * that join a window; and that every door leads to the function whose name it bears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/journal/op_encode.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* ---- the tables ---- */

enum class {
#define KP_CLASS(name, ...) name,
#include "preload/doors/classes.def"
#undef KP_CLASS
};

static const struct {
    const char *way, *work;
} classes[] = {
#define KP_CLASS(name, way, work, ...) {#way, #work},
#include "preload/doors/classes.def"
#undef KP_CLASS
};

static const struct row {
    const char *symbol, *base;
    enum class class;
} rows[] = {
#define KP_API(symbol, base, class) {#symbol, #base, class},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

static const struct door {
    const char *symbol, *base;
    int since;
    bool ptsz;
} doors[] = {
#define KP_DOOR(symbol, base, since, ptsz, logic, type, result, parameters, arguments) {#symbol, base, since, ptsz},
#include "preload/doors/doors.def"
#undef KP_DOOR
};

static const struct join {
    const char *base;
    unsigned to, from, host, any, bytes, result, copy2d, event, flags, stream, function;
} joins[] = {
#define KP_JOIN(function, ...) {.base = #function, __VA_ARGS__},
#include "preload/journal/op_encode.def"
#undef KP_JOIN
};

static const char *const runtime[] = {
#define KP_RUNTIME(function, host, parameters, arguments) #function,
#include "preload/doors/runtime.def"
#undef KP_RUNTIME
};

static const char *const cupti[] = {
#define KP_CUPTI_DOOR(function, effect) #function,
#include "preload/doors/cupti_doors.def"
#undef KP_CUPTI_DOOR
};

enum {
    CUPTIS = sizeof(cupti) / sizeof(*cupti),
    ROWS = sizeof(rows) / sizeof(*rows),
    DOORS = sizeof(doors) / sizeof(*doors),
    JOINS = sizeof(joins) / sizeof(*joins),
    RUNTIMES = sizeof(runtime) / sizeof(*runtime)
};

/* What the library exports besides: lookups, the ends of a process, what tells of another user of CUPTI, and what NVTX
 * looks for. */
static const char *const others[] = {"dlsym",
                                     "dlvsym",
                                     "dlopen",
                                     "dlmopen",
                                     "dlclose",
                                     "exit",
                                     "_exit",
                                     "_Exit",
                                     "quick_exit",
                                     "__libc_start_main",
#define KP_CUPTI_DOOR(function, effect) #function,
#include "preload/doors/cupti_doors.def"
#undef KP_CUPTI_DOOR
                                     "InitializeInjectionNvtx2",
                                     NULL};

static const struct row *row_of(const char *symbol)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].symbol, symbol))
            return &rows[i];
    return NULL;
}

static const struct door *door_of(const char *symbol)
{
    for (size_t i = 0; i < DOORS; i++)
        if (!strcmp(doors[i].symbol, symbol))
            return &doors[i];
    return NULL;
}

static bool is_intercepted(const struct row *r)
{
    return strcmp(classes[r->class].way, "BARE") != 0;
}

static bool listed(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

/* ---- lists of names ---- */

struct names {
    char **list;
    size_t n;
};

static void add(struct names *names, const char *name, size_t length, const char *suffix)
{
    names->list = realloc(names->list, (names->n + 1) * sizeof(*names->list));
    assert_non_null(names->list);
    assert_true(asprintf(&names->list[names->n++], "%.*s%s", (int)length, name, suffix) > 0);
}

static bool has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->list[i], name))
            return true;
    return false;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
}

/* ---- the header ---- */

static size_t identifier(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

static const char *blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* "CUresult CUDAAPI name(": an exported function. */
static void read_declarations(const char *text, struct names *out)
{
    static const char mark[] = "CUresult CUDAAPI ";
    for (const char *at = text; (at = strstr(at, mark));) {
        at = blanks(at + sizeof(mark) - 1);
        size_t n = identifier(at);
        if (n > 2 && !strncmp(at, "cu", 2) && *blanks(at + n) == '(')
            add(out, at, n, "");
    }
}

/* "#define name name_v2" and "#define name __CUDA_API_PTSZ(name_v2)" (or PTDS): what a program that uses the name binds
 * to, with and without a default stream a thread. What the header defines itself as an inline function is none. */
static void read_renames(const char *text, struct names *out)
{
    static const char define[] = "#define ";
    for (const char *at = text; (at = strstr(at, define));) {
        at = blanks(at + sizeof(define) - 1);
        size_t n = identifier(at);
        if (strncmp(at, "cu", 2) || !strchr(" \t", at[n]))
            continue;
        const char *to = blanks(at + n), *suffix = NULL;
        char inline_form[256];
        if (!strncmp(to, "__CUDA_API_PTSZ(", 16))
            suffix = "_ptsz";
        else if (!strncmp(to, "__CUDA_API_PTDS(", 16))
            suffix = "_ptds";
        to += suffix ? 16 : 0;
        n = identifier(to);
        snprintf(inline_form, sizeof(inline_form), "static inline CUresult %.*s(", (int)n, to);
        if (n < 3 || strncmp(to, "cu", 2) || strstr(text, inline_form))
            continue;
        add(out, to, n, "");
        if (suffix)
            add(out, to, n, suffix);
    }
}

static void test_functions_of_the_header(void **state)
{
    static const char *const here[] = {".", NULL};
    struct names declared = {NULL, 0};
    size_t missing = 0;
    (void)state;
    char *path = kp_test_toolkit_file(here, "cuda.h");
    assert_non_null(path);
    char *text = kp_test_read(path);
    read_declarations(text, &declared);
    assert_true(declared.n > 400);
    size_t before = declared.n;
    read_renames(text, &declared);
    assert_true(declared.n > before + 100);
    assert_true(has(&declared, "cuLaunchKernel_ptsz") && has(&declared, "cuMemAlloc_v2"));
    assert_true(has(&declared, "cuMemcpyDtoH_v2_ptds") && has(&declared, "cuInit"));
    for (size_t i = 0; i < declared.n; i++)
        if (!row_of(declared.list[i])) {
            print_message("%s has no row in preload/doors/cuda_api.def\n", declared.list[i]);
            missing++;
        }
    assert_int_equal(missing, 0);
    free_names(&declared);
    free(text);
    free(path);
}

/* The name of a parameter of cuda.h, as a column of join.def. */
static const struct column {
    const char *parameter;
    size_t offset;
} columns[] = {
    {"dstDevice", offsetof(struct join, to)},   {"dst", offsetof(struct join, to)},
    {"srcDevice", offsetof(struct join, from)}, {"src", offsetof(struct join, any)},
    {"srcHost", offsetof(struct join, host)},   {"ByteCount", offsetof(struct join, bytes)},
    {"dstHost", offsetof(struct join, result)}, {"pCopy", offsetof(struct join, copy2d)},
    {"hEvent", offsetof(struct join, event)},   {"flags", offsetof(struct join, flags)},
    {"Flags", offsetof(struct join, flags)},    {"hStream", offsetof(struct join, stream)},
    {"fn", offsetof(struct join, function)},    {"callback", offsetof(struct join, function)},
};

/* Sets the columns of `out` from the declaration of its function. */
static void read_columns(const char *text, struct join *out)
{
    char mark[128];
    snprintf(mark, sizeof(mark), "CUresult CUDAAPI %s(", out->base);
    const char *at = strstr(text, mark);
    if (!at)
        fail_msg("the header does not declare %s", out->base);
    at += strlen(mark);
    for (unsigned number = 1; number == 1 || at[-1] == ','; number++) {
        const char *end = at + strcspn(at, ",)"), *name = end;
        while (isalnum((unsigned char)name[-1]))
            name--;
        for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
            if (strlen(columns[i].parameter) == (size_t)(end - name) &&
                !strncmp(columns[i].parameter, name, (size_t)(end - name)))
                memcpy((char *)out + columns[i].offset, &number, sizeof(number));
        at = end + 1;
    }
}

static void test_columns_of_joins(void **state)
{
    static const char *const here[] = {".", NULL};
    (void)state;
    char *path = kp_test_toolkit_file(here, "cuda.h");
    assert_non_null(path);
    char *text = kp_test_read(path);
    for (size_t i = 0; i < JOINS; i++) {
        struct join header = {.base = joins[i].base};
        read_columns(text, &header);
        if (!header.any && !header.host && !header.result)
            header.bytes = 0; /* nothing is copied */
        if (memcmp(&header, &joins[i], sizeof(header)))
            fail_msg("the columns of %s are not its parameters", joins[i].base);
    }
    free(text);
    free(path);
}

/* ---- arguments on the stack ---- */

static const struct on_stack {
    const char *symbol;
    unsigned words;
} on_stack[] = {
#define KP_STACK_WORDS(symbol, words) {#symbol, words},
#include "preload/doors/stack_words.def"
#undef KP_STACK_WORDS
};

static unsigned words_of(const char *symbol)
{
    for (size_t i = 0; i < sizeof(on_stack) / sizeof(*on_stack); i++)
        if (!strcmp(on_stack[i].symbol, symbol))
            return on_stack[i].words;
    return 0;
}

/* The header as the compiler reads it: all versions and flavours of each function under its exported name. */
static char *preprocessed_header(const char *path)
{
    char command[2 * PATH_MAX];
    size_t size = 0, n;
    char *text = NULL, piece[4096];
    const char *compiler = getenv("CC");
    snprintf(command, sizeof(command), "%s -E -P -w -D__CUDA_API_VERSION_INTERNAL -x c '%s'",
             compiler ? compiler : "cc", path);
    FILE *in = popen(command, "re"), *out = open_memstream(&text, &size);
    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(piece, 1, sizeof(piece), in)) > 0)
        fwrite(piece, 1, n, out);
    fclose(out);
    assert_int_equal(pclose(in), 0);
    return text;
}

/* Writes "+ WORDS(type)" or nothing for a float, for each parameter up to the closing bracket. A parameter is a type
 * and a name. */
static void write_words(FILE *out, const char *at, const char *words)
{
    for (;; at++) {
        at += strspn(at, " \n");
        size_t all = strcspn(at, ",)"), type = all;
        while (type && strchr(" \n", at[type - 1]))
            type--;
        while (type && (isalnum((unsigned char)at[type - 1]) || at[type - 1] == '_'))
            type--;
        bool pointer = memchr(at, '*', all), floats = !pointer && memmem(at, all, "float", 5);
        if (type && !floats)
            fprintf(out, " + %s(%.*s)", words, (int)type, at);
        at += all;
        if (*at == ')')
            return;
    }
}

/* Writes a function that counts the stack words of a function by the rules of the ABI: six registers; what has more
 * than two words goes on the stack. */
static void write_counter(FILE *out, const char *name, size_t n, const char *parameters)
{
    fprintf(out, "unsigned words_of_%.*s(void) { unsigned in = 0", (int)n, name);
    write_words(out, parameters, "REGISTERS");
    fprintf(out, ", on = 0");
    write_words(out, parameters, "STACK");
    fprintf(out, "; return on + (in > 6 ? in - 6 : 0); }\n");
}

static char *write_counters(const char *header, const char *path)
{
    static const char mark[] = "CUresult ";
    size_t size = 0;
    char *source = NULL;
    FILE *out = open_memstream(&source, &size);
    fprintf(out,
            "#define __CUDA_API_VERSION_INTERNAL\n#include \"%s\"\n"
            "#define WORDS(type) ((sizeof(type) + 7) / 8)\n"
            "#define REGISTERS(type) (WORDS(type) > 2 ? 0 : WORDS(type))\n"
            "#define STACK(type) (WORDS(type) > 2 ? WORDS(type) : 0)\n",
            path);
    for (const char *at = header; (at = strstr(at, mark));) {
        at = blanks(at + sizeof(mark) - 1);
        size_t n = identifier(at);
        if (n > 2 && !strncmp(at, "cu", 2) && at[n] == '(')
            write_counter(out, at, n, at + n + 1);
    }
    fclose(out);
    return source;
}

/* A door copies what the function takes on the stack, and no word more: there need not be any above. */
static void test_stack_words(void **state)
{
    static const char *const here[] = {".", NULL};
    const char *folder = kp_test_folder();
    size_t compared = 0, wrong = 0;
    (void)state;
    char *path = kp_test_toolkit_file(here, "cuda.h");
    assert_non_null(path);
    char *header = preprocessed_header(path), *source = write_counters(header, path);
    void *counters = dlopen(kp_test_shared_object(folder, "counters.so", source, "-O0"), RTLD_NOW | RTLD_LOCAL);
    if (!counters)
        fail_msg("%s", dlerror());
    for (size_t i = 0; i < ROWS; i++) {
        char name[128];
        snprintf(name, sizeof(name), "words_of_%s", rows[i].symbol);
        unsigned (*counter)(void) = (unsigned (*)(void))(uintptr_t)dlsym(counters, name);
        if (!counter || !is_intercepted(&rows[i]) || door_of(rows[i].symbol))
            continue;
        compared++;
        if (counter() != words_of(rows[i].symbol)) {
            print_message("%s takes %u words on the stack\n", rows[i].symbol, counter());
            wrong++;
        }
    }
    assert_true(compared > 250);
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < sizeof(on_stack) / sizeof(*on_stack); i++)
        assert_true(row_of(on_stack[i].symbol) && is_intercepted(row_of(on_stack[i].symbol)));
    dlclose(counters);
    free(source);
    free(header);
    free(path);
    kp_test_remove_folder(folder);
}

/* ---- ELF files ---- */

struct file {
    unsigned char *bytes;
    size_t size;
};

static struct file read_file(const char *path)
{
    struct file f = {NULL, 0};
    FILE *in = fopen(path, "re");
    if (!in)
        fail_msg("cannot read %s", path);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    f.size = (size_t)ftell(in);
    rewind(in);
    f.bytes = malloc(f.size);
    assert_non_null(f.bytes);
    assert_int_equal(fread(f.bytes, 1, f.size, in), f.size);
    fclose(in);
    return f;
}

/* The functions that a shared object defines for others. */
static struct names exports(const char *path)
{
    struct names names = {NULL, 0};
    struct file f = read_file(path);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)f.bytes;
    assert_memory_equal(header->e_ident, ELFMAG, SELFMAG);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(f.bytes + header->e_shoff);
    for (size_t s = 0; s < header->e_shnum; s++) {
        if (sections[s].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(f.bytes + sections[s].sh_offset);
        const char *strings = (const char *)f.bytes + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof(*symbols); i++) {
            const char *name = strings + symbols[i].st_name;
            if (symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC)
                add(&names, name, strlen(name), "");
        }
    }
    free(f.bytes);
    return names;
}

static void test_functions_of_the_driver(void **state)
{
    static const char *const below[] = {"../lib64/stubs", "../lib/stubs", "../lib", "../../../lib64/stubs", NULL};
    size_t missing = 0, functions = 0;
    (void)state;
    char *path = kp_test_toolkit_file(below, "libcuda.so");
    if (!path) {
        print_message("this toolkit has no stub of libcuda: its list of functions is not compared\n");
        skip();
    }
    struct names names = exports(path);
    for (size_t i = 0; i < names.n; i++) {
        if (strncmp(names.list[i], "cu", 2))
            continue;
        functions++;
        if (!row_of(names.list[i])) {
            print_message("%s has no row in preload/doors/cuda_api.def\n", names.list[i]);
            missing++;
        }
    }
    assert_true(functions > 500);
    assert_int_equal(missing, 0);
    free_names(&names);
    free(path);
}

static void test_exports(void **state)
{
    struct names names = exports(kp_test_build("libkprof.so"));
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        if (has(&names, rows[i].symbol) != is_intercepted(&rows[i])) {
            print_message("%s is %sexported\n", rows[i].symbol, is_intercepted(&rows[i]) ? "not " : "");
            wrong++;
        }
    for (size_t i = 0; i < DOORS + RUNTIMES; i++) {
        const char *symbol = i < DOORS ? doors[i].symbol : runtime[i - DOORS];
        if (!has(&names, symbol)) {
            print_message("%s is not exported\n", symbol);
            wrong++;
        }
    }
    for (size_t i = 0; others[i]; i++)
        assert_true(has(&names, others[i]));
    free_names(&names);
    assert_int_equal(wrong, 0);
}

/* Nothing else shows: an export would stand in front of the program's own function of that name. */
static void test_no_other_exports(void **state)
{
    struct names names = exports(kp_test_build("libkprof.so"));
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < names.n; i++) {
        bool of_runtime = false;
        for (size_t r = 0; r < RUNTIMES; r++)
            of_runtime |= !strcmp(runtime[r], names.list[i]);
        /* a sanitiser's own */
        if (of_runtime || row_of(names.list[i]) || listed(others, names.list[i]) || strstr(names.list[i], "san"))
            continue;
        print_message("%s is exported\n", names.list[i]);
        wrong++;
    }
    free_names(&names);
    assert_int_equal(wrong, 0);
}

/* ---- the tables among themselves ---- */

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        char base[128];
        assert_ptr_equal(row_of(r->symbol), r); /* once */
        snprintf(base, sizeof(base), "%s", r->symbol);
        for (const char *const *s = (const char *const[]){"_ptsz", "_ptds", NULL}; *s; s++)
            if (strlen(base) > 5 && !strcmp(base + strlen(base) - 5, *s))
                base[strlen(base) - 5] = '\0';
        char *v = strrchr(base, '_');
        if (v && v[1] == 'v' && isdigit((unsigned char)v[2]) && !v[3])
            *v = '\0';
        assert_string_equal(r->base, base);
    }
}

static void test_typed_doors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        bool typed = !strcmp(classes[rows[i].class].way, "TYPED");
        if (typed != (door_of(rows[i].symbol) != NULL))
            fail_msg("%s has %s door in doors.def", rows[i].symbol, typed ? "no" : "a");
    }
    for (size_t i = 0; i < DOORS; i++) {
        size_t length = strlen(doors[i].symbol);
        bool ptsz = length > 5 && !strcmp(doors[i].symbol + length - 5, "_ptsz");
        assert_non_null(row_of(doors[i].symbol));
        assert_ptr_equal(door_of(doors[i].symbol), &doors[i]);
        assert_int_equal(doors[i].ptsz, ptsz);
        assert_true(doors[i].since >= 2000);
    }
}

/* What changes memory, modules or streams waits for a replay, whatever its version or flavour. */
static void test_what_is_gated(void **state)
{
    static const char *const prefixes[] = {
        "cuMemcpy",        "cuMemset",           "cuMemAlloc",           "cuMemFree",          "cuMemPrefetch",
        "cuModuleLoad",    "cuModuleUnload",     "cuLibraryLoad",        "cuLibraryUnload",    "cuStreamCreate",
        "cuStreamDestroy", "cuArrayCreate",      "cuArrayDestroy",       "cuCtxCreate",        "cuCtxDestroy",
        "cuLaunch",        "cuGraphLaunch",      "cuStreamBeginCapture", "cuStreamEndCapture", "cuMemDiscard",
        "cuMemBatch",      "cuMemMap",           "cuMemUnmap",           "cuMemSetAccess",     "cuMemAdvise",
        "cuStreamBatch",   "cuStreamWrite",      "cuStreamWait",         "cuStreamSet",        "cuStreamAttach",
        "cuStreamUpdate",  "cuGreenCtxStream",   "cuGreenCtxWait",       "cuGreenCtxRecord",   "cuGreenCtxDestroy",
        "cuCtxRecord",     "cuCtxWait",          "cuGraphConditional",   "cuGraphAdd",         "cuGraphUpload",
        "cuMemPoolTrim",   "cuMemPoolSet",       "cuMemPoolDestroy",     "cuMulticastBind",    "cuSignalExternal",
        "cuWaitExternal",  "cuSurfObjectCreate", "cuTexObjectCreate",    "cuCheckpoint",       "cuEventRecord"};
    (void)state;
    for (size_t p = 0; p < sizeof(prefixes) / sizeof(*prefixes); p++) {
        size_t found = 0;
        for (size_t i = 0; i < ROWS; i++) {
            if (strncmp(rows[i].symbol, prefixes[p], strlen(prefixes[p])))
                continue;
            found++;
            if (!is_intercepted(&rows[i]))
                fail_msg("%s is not intercepted", rows[i].symbol);
        }
        if (!found)
            fail_msg("no row begins with %s", prefixes[p]);
    }
}

/* Functions of which the class says what their first arguments are. */
static void test_what_arguments_are(void **state)
{
    static const struct {
        const char *base;
        enum class class;
    } known[] = {{"cuCtxDestroy", CTX_END},
                 {"cuCtxDetach", CTX_END},
                 {"cuGreenCtxDestroy", ALL_END},
                 {"cuDevicePrimaryCtxRelease", DEVICE_END},
                 {"cuStreamDestroy", STREAM_END},
                 {"cuDevicePrimaryCtxReset", DEVICE_END},
                 {"cuFuncSetAttribute", SET_FUNCTION},
                 {"cuKernelSetAttribute", SET_KERNEL},
                 {"cuFuncSetCacheConfig", SET_CACHE},
                 {"cuKernelSetCacheConfig", SET_CACHE},
                 {"cuModuleUnload", UNLOAD},
                 {"cuLibraryUnload", UNLOAD_LIBRARY},
                 {"cuTexObjectDestroy", TEXTURE_END},
                 {"cuTexObjectGetResourceDesc", ASK_TEXTURE},
                 {"cuTexObjectGetResourceViewDesc", ASK_TEXTURE},
                 {"cuTexObjectGetTextureDesc", ASK_TEXTURE},
                 {"cuSurfObjectDestroy", SURFACE_END},
                 {"cuSurfObjectGetResourceDesc", ASK_SURFACE}};
    (void)state;
    for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
        for (size_t i = 0; i < ROWS; i++)
            if (!strcmp(rows[i].base, known[k].base) && rows[i].class != known[k].class)
                fail_msg("%s is of another class than %s", rows[i].symbol, known[k].base);
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].class == SET && !strstr(rows[i].symbol, "Set"))
            fail_msg("%s does more than to change how functions are launched", rows[i].symbol);
}

static bool joins_windows(enum class class)
{
    return class == JOIN || class == JOIN_WORK || class == CALL_HOST;
}

/* What has the device work in a stream, or waits for that, is told from what does not: it may go on beside a counted
 * launch. A launch is counted itself. */
static void test_work(void **state)
{
    static const char *const begins[] = {"cuMemcpy",
                                         "cuMemset",
                                         "cuMemPrefetch",
                                         "cuMemDiscard",
                                         "cuMemMapArray",
                                         "cuStreamWaitEvent",
                                         "cuCtxWaitEvent",
                                         "cuGreenCtxWait",
                                         "cuGraphUpload",
                                         "cuGraphicsUnmap",
                                         "cuSignalExternal",
                                         "cuStreamWriteValue",
                                         "cuLaunchCooperativeKernelMultiDevice",
                                         NULL};
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        enum class class = rows[i].class;
        bool works = false;
        for (size_t k = 0; begins[k]; k++)
            works |= !strncmp(rows[i].symbol, begins[k], strlen(begins[k]));
        /* The driver may make kernels of a batch, which a window that counts launches must not see. */
        bool batch = strstr(rows[i].symbol, "Batch");
        if (works && (batch ? class != HOLD : strcmp(classes[class].work, "UNSEEN") != 0))
            fail_msg("%s has the device work, or wait", rows[i].symbol);
        if (!works && (class == JOIN_WORK || class == WORK || class == DOOR_WORK))
            fail_msg("%s does neither", rows[i].symbol);
    }
}

/* Who joins a window has a row in both tables. */
static void test_joins(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        char later[128];
        snprintf(later, sizeof(later), "%s_v2", rows[i].symbol);
        bool joins_window = joins_windows(rows[i].class);
        if (joins_window && !kp_join_known(rows[i].symbol))
            fail_msg("%s has no row in join.def", rows[i].symbol);
        if (joins_window && row_of(later))
            fail_msg("%s has 32-bit parameters", rows[i].symbol);
        if (rows[i].class == ALLOC && strcmp(rows[i].symbol, "cuMemAlloc_v2")) /* which is called again as that */
            fail_msg("%s is called with other parameters", rows[i].symbol);
    }
    for (size_t j = 0; j < JOINS; j++) {
        size_t found = 0;
        for (size_t i = 0; i < ROWS; i++)
            found += (joins_windows(rows[i].class)) && !strcmp(rows[i].base, joins[j].base);
        if (!found)
            fail_msg("%s joins no window in cuda_api.def", joins[j].base);
    }
    assert_false(kp_join_known("cuMemcpyAtoH_v2"));
    assert_false(kp_join_known("cuMemcpy3D"));
}

/* The first row of the base name of row `i`. */
static size_t first_of_base(size_t i)
{
    for (size_t first = 0; first < i; first++)
        if (!strcmp(rows[first].base, rows[i].base))
            return first;
    return i;
}

/* Only the interfaces with 32-bit sizes are of another class than those that came after them, and they come first: what
 * cuGetProcAddress returned is classified by the first or the last row of its base name, as the version says. */
static void test_classes_of_a_base(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        size_t first = first_of_base(i);
        for (size_t k = i; first < i && k < ROWS && !strcmp(rows[k].base, rows[i].base); k++)
            if (rows[k].class != rows[i].class)
                fail_msg("%s and %s differ", rows[k].symbol, rows[i].symbol);
        if (first == i || rows[first].class == rows[i].class)
            continue;
        bool typed = rows[i].class == JOIN_WORK || rows[i].class == ALLOC || rows[i].class == ALLOC_PITCH ||
                     rows[i].class == DOOR || rows[i].class == FREE || rows[i].class == MODULE ||
                     rows[i].class == GLOBAL || rows[i].class == ASK_FREE;
        bool closes = rows[first].class == GATE || rows[first].class == WORK;
        if (!closes || !typed || strcmp(rows[first].symbol, rows[first].base))
            fail_msg("%s and %s differ", rows[first].symbol, rows[i].symbol);
    }
}

/* What is left alone has a name of a query, or is known to be harmless. */
static void test_what_is_pure(void **state)
{
    static const char *const queries[] = {"Get", "Is", "CanAccess", "Occupancy", "Enumerate", "Encode", NULL};
    static const char *const harmless[] = {"cuCoredumpSetAttribute",
                                           "cuCoredumpSetAttributeGlobal",
                                           "cuCtxPopCurrent",
                                           "cuCtxPushCurrent",
                                           "cuCtxSetCurrent",
                                           "cuDevResourceGenerateDesc",
                                           "cuDevSmResourceSplitByCount",
                                           "cuDeviceComputeCapability",
                                           "cuDeviceTotalMem",
                                           "cuEventCreate",
                                           "cuEventDestroy",
                                           "cuGraphDebugDotPrint",
                                           "cuGraphNodeFindInClone",
                                           "cuLogsCurrent",
                                           "cuLogsDumpToFile",
                                           "cuLogsDumpToMemory",
                                           "cuLogsRegisterCallback",
                                           "cuLogsUnregisterCallback",
                                           "cuProfilerInitialize",
                                           "cuTensorMapReplaceAddress",
                                           "cuThreadExchangeStreamCaptureMode",
                                           NULL};
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        bool query = listed(harmless, rows[i].base);
        for (const char *const *q = queries; *q && !query; q++)
            query = strstr(rows[i].base, *q) != NULL;
        if (rows[i].class == PURE && !query)
            fail_msg("%s is left alone", rows[i].symbol);
    }
    for (const char *const *h = harmless; *h; h++) {
        const struct row *r = row_of(*h);
        if (!r || r->class != PURE)
            fail_msg("%s is not left alone", *h);
    }
}

/* All functions whose names begin so have one of the classes, but for `except`. */
static void check_classes(const char *prefix, enum class class, const char *except)
{
    size_t found = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (strncmp(rows[i].base, prefix, strlen(prefix)) || !strcmp(rows[i].base, except))
            continue;
        found++;
        if (rows[i].class != class)
            fail_msg("%s is not of the class of its kind", rows[i].symbol);
    }
    if (!found)
        fail_msg("no row begins with %s", prefix);
}

static void test_what_is_shared_or_asked(void **state)
{
    (void)state;
    check_classes("cuIpc", SHARE, "cuIpcCloseMemHandle");
    check_classes("cuImportExternal", SHARE, "");
    check_classes("cuExternalMemoryGetMapped", SHARE, "");
    check_classes("cuMemExport", SHARE, "");
    check_classes("cuMemImport", SHARE, "");
    check_classes("cuMemPoolExport", SHARE, "");
    check_classes("cuMemPoolImport", SHARE, "");
    check_classes("cuMemGetHandleForAddressRange", SHARE, "");
    check_classes("cuMulticastAdd", SHARE, "");
    check_classes("cuMulticastBind", SHARE, "");
    check_classes("cuMulticastCreate", SHARE, "");
    check_classes("cuGraphicsMap", SHARE, "");
    check_classes("cuMemAllocManaged", MANAGED, "");
    check_classes("cuLibraryGetManaged", MANAGED, "");
    check_classes("cuStreamAttachMem", MANAGED, "");
    check_classes("cuMemCreate", VIRTUAL, "");
    check_classes("cuMemPoolCreate", POOL, "");
    check_classes("cuMemGetMemPool", POOL, "");
    check_classes("cuMemGetDefaultMemPool", POOL, "");
    check_classes("cuMemMap", MAP, "cuMemMapArrayAsync");
    check_classes("cuMemSetAccess", ACCESS, "");
    check_classes("cuMemRelease", RELEASE, "");
    check_classes("cuModuleLoad", MODULE, "");
    check_classes("cuLibraryLoad", MODULE, "");
    check_classes("cuFuncLoad", MODULE, "");
    check_classes("cuLibraryGetGlobal", GLOBAL, "");
    check_classes("cuCtxCreate", IMAGE, "");
    check_classes("cuDevicePrimaryCtxRetain", MODULE, "");
    check_classes("cuKernelGetFunction", LOAD, "");
    check_classes("cuStreamSynchronize", SYNC, "");
    check_classes("cuStreamQuery", SYNC, "");
    check_classes("cuCtxSynchronize", SYNC, "");
    check_classes("cuEventSynchronize", SYNC, "");
    check_classes("cuEventQuery", SYNC, "");
    check_classes("cuEventElapsedTime", SYNC, "");
}

/* ---- where doors lead ---- */

typedef int (*any_function)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                            void *, void *, void *, void *, void *);

static int call(void *f)
{
    return ((any_function)(uintptr_t)f)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Above every code that means something to the gate. */
enum { FIRST_ANSWER = 1000 };

static const char *name_of(size_t i)
{
    return i < ROWS ? rows[i].symbol : runtime[i - ROWS];
}

/* Whether `number` is the answer of the function whose number that is; else says what was called. */
static bool is_answer(int answer, size_t number)
{
    if (answer == (int)(FIRST_ANSWER + number))
        return true;
    bool of_driver = answer >= FIRST_ANSWER && answer < FIRST_ANSWER + ROWS;
    print_message("%s leads to %s\n", name_of(number), of_driver ? name_of((size_t)answer - FIRST_ANSWER) : "nothing");
    return false;
}

static void *open_source(const char *name, const char *source)
{
    const char *folder = kp_test_folder();
    void *library = dlopen(kp_test_shared_object(folder, name, source, "-O0"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    kp_test_remove_folder(folder);
    return library;
}

/* Entry points of the driver that it does not export. */
enum { PRIVATE = 16, FIRST_PRIVATE = 100000 };

/* A driver and a runtime in one, each of whose functions answers with its own number; one a process. cuGetProcAddress
 * gives what `found` is, and answers with `found_rc`, if that is not negative. */
static void *the_driver(void)
{
    static void *driver;
    size_t size = 0;
    char *source = NULL;
    if (driver)
        return driver;
    FILE *out = open_memstream(&source, &size);
    assert_non_null(out);
    fprintf(out, "void *found; int found_rc = -1;\n");
    for (size_t i = 0; i < ROWS + RUNTIMES; i++)
        if (!strncmp(name_of(i), "cuGetProcAddress", strlen("cuGetProcAddress")))
            fprintf(out,
                    "int %s(const char *name, void **f) { if (found_rc < 0) return %zu;"
                    " if (f) *f = found; return found_rc; }\n",
                    name_of(i), FIRST_ANSWER + i);
        else
            fprintf(out, "int %s(void) { return %zu; }\n", name_of(i), FIRST_ANSWER + i);
    for (int i = 0; i < PRIVATE; i++)
        fprintf(out, "int private_%d(void) { return %d; }\n", i, FIRST_PRIVATE + i);
    fclose(out);
    driver = open_source("libcuda.so.1", source);
    free(source);
    return driver;
}

static void *the_library(void)
{
    void *library = dlopen(kp_test_build("libkprof.so"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

/* Our dlsym. */
static void *look_up(void *handle, const char *name)
{
    void *(*lookup)(void *, const char *) = (void *(*)(void *, const char *))(uintptr_t)dlsym(the_library(), "dlsym");
    assert_non_null(lookup);
    return lookup(handle, name);
}

/* Trampolines find their function by a number that is counted in two places; typed doors by name. */
static void test_doors_lead_to_their_functions(void **state)
{
    size_t wrong = 0;
    (void)state;
    void *driver = the_driver(), *library = the_library();
    for (size_t i = 0; i < ROWS + RUNTIMES; i++) {
        if (i < ROWS && !is_intercepted(&rows[i]))
            continue;
        void *door = dlsym(library, name_of(i));
        assert_non_null(door);
        assert_ptr_not_equal(door, dlsym(driver, name_of(i)));
        wrong += !is_answer(call(door), i);
    }
    assert_int_equal(wrong, 0);
}

/* What a program gets that asks dlsym for the driver's functions: a door in front of each intercepted one, the bare
 * function for the others, and both lead to what was asked for. */
static void test_looked_up_doors(void **state)
{
    size_t wrong = 0;
    (void)state;
    void *driver = the_driver(), *library = the_library();
    for (size_t i = 0; i < ROWS + RUNTIMES; i++) {
        bool intercepted = i >= ROWS || is_intercepted(&rows[i]);
        void *real = dlsym(driver, name_of(i)), *given = look_up(driver, name_of(i));
        assert_non_null(given);
        if ((given != real) != intercepted || call(given) != (int)(FIRST_ANSWER + i)) {
            print_message("%s: not what was asked for\n", name_of(i));
            wrong++;
        }
        assert_ptr_equal(look_up(driver, name_of(i)), given); /* and the same again */
    }
    assert_null(look_up(driver, "cuNoSuchFunction"));
    assert_null(look_up(driver, "cudaNoSuchFunction"));
    assert_ptr_equal(look_up(RTLD_DEFAULT, "malloc"), dlsym(RTLD_DEFAULT, "malloc"));
    assert_ptr_equal(look_up(library, "cuMemAlloc_v2"), dlsym(library, "cuMemAlloc_v2")); /* a door has no door */
    assert_int_equal(wrong, 0);
}

/* The first look-up of a process may be one with a version. */
static void test_looked_up_versions(void **state)
{
    (void)state;
    void *(*lookup)(void *, const char *, const char *) =
        (void *(*)(void *, const char *, const char *))(uintptr_t)dlsym(the_library(), "dlvsym");
    assert_non_null(lookup);
    /* The loader takes any version of a library that has none. One that clang has linked may have one. */
    void *found = lookup(the_driver(), "cuMemAlloc_v2", "GLIBC_2.2.5");
    if (dlvsym(the_driver(), "cuMemAlloc_v2", "GLIBC_2.2.5")) {
        assert_true(found && found != dlsym(the_driver(), "cuMemAlloc_v2"));
        assert_true(is_answer(call(found), (size_t)(row_of("cuMemAlloc_v2") - rows)));
    } else {
        assert_null(found);
    }
    assert_null(lookup(the_driver(), "cuNoSuchFunction", "GLIBC_2.2.5"));
    void *real = dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5");
    assert_non_null(real);
    assert_ptr_equal(lookup(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5"), real);
}

/* ---- where doors lead to nothing ---- */

/* Before the driver is there, or without one, each door answers as a driver that has not started, a runtime that lacks
 * the function, and a CUPTI that is not there. A process of its own: other tests open a driver. */
static void no_driver(void)
{
    enum { NOT_INITIALIZED = 3, SYMBOL_NOT_FOUND = 302, CUPTI_NOT_INITIALIZED = 15 };
    void *library = the_library();
    for (size_t i = 0; i < CUPTIS; i++)
        assert_int_equal(call(dlsym(library, cupti[i])), CUPTI_NOT_INITIALIZED);
    /* cuInit, which may load CUPTI, comes behind it. */
    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < ROWS + RUNTIMES; i++) {
            if (i < ROWS && !is_intercepted(&rows[i]))
                continue;
            int answer = call(dlsym(library, name_of(i)));
            if (answer != (i < ROWS ? NOT_INITIALIZED : SYMBOL_NOT_FOUND))
                fail_msg("%s answers %d", name_of(i), answer);
        }
    test_doors_lead_to_their_functions(NULL); /* once it is there */
}

/* ---- cuGetProcAddress ---- */

static int proc_address(const char *door, const char *name, void **f, int version, uint64_t flags)
{
    typedef int (*function)(const char *name, void **f, int version, uint64_t flags, int *status);
    int status;
    return ((function)(uintptr_t)dlsym(the_library(), door))(name, f, version, flags, &status);
}

/* The door in front of what the driver gives for the name. */
static void *door_of_base(const char *name, int version, uint64_t flags, void *real)
{
    void *f = NULL;
    *(void **)dlsym(the_driver(), "found") = real;
    *(int *)dlsym(the_driver(), "found_rc") = 0;
    assert_int_equal(
        proc_address(version < 12000 ? "cuGetProcAddress" : "cuGetProcAddress_v2", name, &f, version, flags), 0);
    return f;
}

enum { PTSZ = 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */ };

/* What the driver gives that it exports under no name goes through the newest door of the name that is not newer than
 * asked for, and of the same flavour. */
static const struct {
    const char *base;
    int version;
    uint64_t flags;
    const char *door; /* NULL: no typed one */
} by_version[] = {
    {"cuGraphInstantiate", 10010, 0, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11030, 0, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 13000, PTSZ, "cuGraphInstantiateWithFlags"},
    {"cuLaunchKernel", 12000, PTSZ, "cuLaunchKernel_ptsz"},
    {"cuLaunchKernel", 12000, 0, "cuLaunchKernel"},
    {"cuLaunchKernelEx", 11060, PTSZ, "cuLaunchKernelEx_ptsz"},
    {"cuMemAllocHost", 3010, 0, "cuMemAllocHost"},
    {"cuMemAllocHost", 3020, 0, "cuMemAllocHost_v2"},
    {"cuGraphExecUpdate", 11080, 0, "cuGraphExecUpdate"},
    {"cuMemHostRegister", 12000, 0, "cuMemHostRegister_v2"},
    {"cuMemHostRegister", 3000, 0, NULL},
    {"cuOfALaterDriver", 14000, 0, NULL},
};

enum { BY_VERSION = sizeof(by_version) / sizeof(*by_version) };

static bool is_taken(const char *symbol)
{
    for (size_t i = 0; i < BY_VERSION; i++)
        if (by_version[i].door && !strcmp(by_version[i].door, symbol))
            return true;
    return false;
}

/* A door fronts one function: the exported one of its name is given bare where another has come first, which tells who
 * has the door. A process of its own, whose doors are all free. */
static void doors_by_version(void)
{
    void *driver = the_driver();
    for (size_t i = 0; i < BY_VERSION; i++) {
        char name[32];
        snprintf(name, sizeof(name), "private_%zu", i);
        void *real = dlsym(driver, name);
        void *door = door_of_base(by_version[i].base, by_version[i].version, by_version[i].flags, real);
        assert_ptr_not_equal(door, real);
        assert_int_equal(call(door), FIRST_PRIVATE + i);
        assert_ptr_equal(door_of_base(by_version[i].base, by_version[i].version, by_version[i].flags, real), door);
    }
    for (size_t i = 0; i < DOORS; i++) {
        void *real = dlsym(driver, doors[i].symbol);
        if ((look_up(driver, doors[i].symbol) == real) != is_taken(doors[i].symbol))
            fail_msg("the door of %s is %s", doors[i].symbol, is_taken(doors[i].symbol) ? "free" : "taken");
    }
}

/* Each exported function is found behind the door of its own name, whatever version is asked for. */
static void test_proc_address(void **state)
{
    size_t wrong = 0;
    (void)state;
    void *driver = the_driver();
    for (size_t i = 0; i < ROWS; i++) {
        void *real = dlsym(driver, rows[i].symbol), *door = door_of_base(rows[i].base, 12000, 0, real);
        *(int *)dlsym(driver, "found_rc") = -1;
        wrong += !is_answer(call(door), i);
        if (door_of(rows[i].symbol))
            assert_ptr_equal(door, look_up(driver, rows[i].symbol));
    }
    assert_int_equal(wrong, 0);
}

/* What the driver does not give is passed on as it is. */
static void test_proc_address_fails(void **state)
{
    static const char *const names[] = {"cuGetProcAddress", "cuGetProcAddress_v2"};
    void *driver = the_driver(), *real = dlsym(driver, "cuMemAlloc_v2"), *f;
    (void)state;
    assert_null(door_of_base("cuMemAlloc", 12000, 0, NULL));
    assert_ptr_equal(door_of_base("cuMemAlloc", 12000, 0, dlsym(the_library(), "cuMemAlloc_v2")),
                     dlsym(the_library(), "cuMemAlloc_v2"));
    *(void **)dlsym(driver, "found") = real;
    for (int i = 0; i < 2; i++) {
        *(int *)dlsym(driver, "found_rc") = 0;
        assert_int_equal(proc_address(names[i], "cuMemAlloc", NULL, 12000, 0), 0);
        assert_int_equal(proc_address(names[i], NULL, &f, 12000, 0), 0);
        assert_ptr_equal(f, real);
        *(int *)dlsym(driver, "found_rc") = 500; /* CUDA_ERROR_NOT_FOUND */
        assert_int_equal(proc_address(names[i], "cuMemAlloc", &f, 12000, 0), 500);
        assert_ptr_equal(f, real);
    }
    *(int *)dlsym(driver, "found_rc") = -1;
}

/* ---- CUPTI ---- */

enum { COPIES = 5, DOORED = 4 };

static void *open_cupti(int copy)
{
    size_t size = 0;
    char name[32], *source = NULL;
    FILE *out = open_memstream(&source, &size);
    assert_non_null(out);
    for (size_t i = 0; i < CUPTIS; i++)
        fprintf(out, "int %s(void) { return %zu; }\n", cupti[i], FIRST_ANSWER * (copy + 1) + i);
    fprintf(out, "int cuptiOther(void) { return 0; }\n");
    fclose(out);
    snprintf(name, sizeof(name), "libcupti.so.%d", copy);
    void *library = open_source(name, source);
    free(source);
    return library;
}

/* Several copies of CUPTI, each with doors of its own; more than there are doors of are given bare. */
static void copies_of_cupti(void)
{
    void *copies[COPIES];
    for (int c = 0; c < COPIES; c++) {
        copies[c] = open_cupti(c);
        for (size_t i = 0; i < CUPTIS; i++) {
            void *real = dlsym(copies[c], cupti[i]), *door = look_up(copies[c], cupti[i]);
            assert_true((door == real) == (c >= DOORED));
            assert_int_equal(call(door), FIRST_ANSWER * (c + 1) + i);
            assert_ptr_equal(look_up(copies[c], cupti[i]), door);
        }
        assert_ptr_equal(look_up(copies[c], "cuptiOther"), dlsym(copies[c], "cuptiOther"));
    }
    /* The exported ones lead to the first one that there is. */
    for (size_t i = 0; i < CUPTIS; i++)
        assert_int_equal(call(dlsym(the_library(), cupti[i])), FIRST_ANSWER + i);
}

/* ---- processes of their own ---- */

/* Ends by exit, so that `make coverage` has the counts of the library, too. */
static void in_a_process(void **state)
{
    void (*body)(void) = (void (*)(void))(uintptr_t)*state;
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        body();
        if (kp_test_is_sanitized())
            _exit(0);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define IN_A_PROCESS(body)                                                                                             \
    {                                                                                                                  \
#body, in_a_process, NULL, NULL, (void *)(uintptr_t)body                                                       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_the_header),
        cmocka_unit_test(test_columns_of_joins),
        cmocka_unit_test(test_stack_words),
        cmocka_unit_test(test_functions_of_the_driver),
        cmocka_unit_test(test_exports),
        cmocka_unit_test(test_no_other_exports),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_typed_doors),
        cmocka_unit_test(test_what_is_gated),
        cmocka_unit_test(test_what_arguments_are),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_classes_of_a_base),
        cmocka_unit_test(test_what_is_pure),
        cmocka_unit_test(test_what_is_shared_or_asked),
        IN_A_PROCESS(no_driver),
        IN_A_PROCESS(doors_by_version),
        IN_A_PROCESS(copies_of_cupti),
        cmocka_unit_test(test_looked_up_versions),
        cmocka_unit_test(test_doors_lead_to_their_functions),
        cmocka_unit_test(test_looked_up_doors),
        cmocka_unit_test(test_proc_address),
        cmocka_unit_test(test_proc_address_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
