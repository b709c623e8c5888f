/* Call stacks: what is unwound, found again, named, and how Python's functions stand among native ones. The functions
 * of this program count as the library's own, which a captured stack leaves out: where they matter, the parts are
 * called one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/who/python.h"
#include "preload/who/stack.h"
#include "preload/who/stack_body.h"

#define NOINLINE       __attribute__((noinline))
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

/* The leak checker takes the thread-local memory of a library that was opened late, as libdw is, for malloc'ed by the
 * sanitiser. It reads what is not there. Only a sanitiser calls this. */
const char *__asan_default_options(void);
__attribute__((visibility("default"), no_sanitize("address"))) const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}

/* ---- Python, as the tests want it ---- */

static struct kp_python_frame python[KP_PYTHON_FRAMES];
static size_t n_python;

size_t kp_python_frames(struct kp_python_frame *out, size_t cap)
{
    size_t n = n_python < cap ? n_python : cap;
    memcpy(out, python, n * sizeof(*out));
    return n;
}

/* A frame's code is the function's name here. */
int kp_python_describe(const struct kp_python_frame *f, char **function, char **file)
{
    *function = strdup(f->code);
    *file = strdup("train.py");
    return *function && *file ? 0 : -ENOMEM;
}

const char *kp_python_why_not(void)
{
    return "no reason";
}

/* ---- unwinding ---- */

enum { CAP = 256 };
static uint64_t addresses[CAP];
static size_t n_addresses;
static uint64_t (*act)(const struct kp_registers *from);

static uint64_t unwind(const struct kp_registers *from)
{
    n_addresses = kp_unwind(from, addresses, CAP);
    return n_addresses;
}

static NOINLINE uint64_t innermost(void)
{
    struct kp_registers here;
    kp_registers_here(&here);
    uint64_t got = act(&here);
    NO_TAIL_CALL();
    return got;
}

static int line_of_middle, line_of_outer;

static NOINLINE uint64_t middle(void)
{
    line_of_middle = __LINE__ + 1;
    uint64_t got = innermost();
    NO_TAIL_CALL();
    return got;
}

static NOINLINE uint64_t outer(void)
{
    line_of_outer = __LINE__ + 1;
    uint64_t got = middle();
    NO_TAIL_CALL();
    return got;
}

static NOINLINE uint64_t deep(int depth)
{
    uint64_t got = depth ? deep(depth - 1) : innermost();
    NO_TAIL_CALL();
    return got;
}

/* Where this program is loaded, and its path. */
static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uintptr_t *)arg = info->dlpi_addr;
    return 1;
}

/* The addresses of the last unwinding, named; those outside of this program are left out. */
static struct kp_stack named(struct kp_stack_names *names)
{
    struct kp_stack_call sorted[CAP], calls[CAP];
    struct kp_raw_stack raw = {.calls = calls};
    static char path[4096];
    static struct kp_stack_module module;
    struct kp_stack s = {0};
    uintptr_t base = 0;
    Dl_info here, there;
    dl_iterate_phdr(first_object, &base);
    kp_stack_program(path, sizeof(path));
    module.path = path;
    assert_true(dladdr((void *)(uintptr_t)innermost, &here));
    for (size_t i = 0; i < n_addresses; i++)
        if (dladdr((void *)addresses[i], &there) && there.dli_fbase == here.dli_fbase)
            calls[raw.n_calls++] = (struct kp_stack_call){1, addresses[i] - 1 - base};
    memcpy(sorted, calls, raw.n_calls * sizeof(*sorted));
    qsort(sorted, raw.n_calls, sizeof(*sorted), kp_stack_compare_calls);
    assert_int_equal(kp_stack_look_up(sorted, raw.n_calls, &module, names), 0);
    assert_int_equal(kp_stack_frames(&raw, &module, names, &s), 0);
    return s;
}

static void is_frame(const struct kp_frame *f, const char *function, const char *file, int line)
{
    const char *slash = strrchr(f->file, '/');
    assert_int_equal(f->kind, KP_FRAME_NATIVE);
    assert_string_equal(f->function, function);
    assert_string_equal(slash ? slash + 1 : f->file, file);
    assert_int_equal(f->line, line);
}

static void names_and_lines(void **state)
{
    static const char file[] = "test_preload_stack.c";
    struct kp_stack_names names;
    (void)state;
    act = unwind;
    int line = __LINE__ + 1;
    assert_true(outer() > 3);
    struct kp_stack s = named(&names);
    assert_true(s.n_frames > 3);
    is_frame(&s.frames[0], "middle", file, line_of_middle);
    is_frame(&s.frames[1], "outer", file, line_of_outer);
    is_frame(&s.frames[2], "names_and_lines", file, line);
    assert_string_equal(s.frames[s.n_frames - 1].function, "_start");
    assert_non_null(strstr(s.frames[0].module, "test_preload_stack"));
    assert_int_not_equal(s.frames[0].offset, 0);
    kp_frames_free(&s);
    kp_stack_names_free(&names);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    act = unwind;
    assert_int_equal(deep(CAP + 10), CAP);
    size_t before = deep(10);
    assert_int_equal(deep(20), before + 10);
}

/* Functions without unwind tables (tests below call through them): with a frame pointer; without one, and the register
 * holding something else. */
uint64_t bare(uint64_t (*callee)(void), uint64_t rbp);
uint64_t blind(uint64_t (*callee)(void), uint64_t rbp);
__asm__(".text\n"
        ".globl bare\n.type bare, @function\n"
        "bare:\n push %rbp\n mov %rsp, %rbp\n call *%rdi\n pop %rbp\n ret\n.size bare, .-bare\n"
        ".globl blind\n.type blind, @function\n"
        "blind:\n push %rbp\n mov %rsi, %rbp\n call *%rdi\n pop %rbp\n ret\n.size blind, .-blind\n");

static bool has_address_in(uintptr_t function, size_t size)
{
    for (size_t i = 0; i < n_addresses; i++)
        if (addresses[i] - function < size)
            return true;
    return false;
}

static void code_without_tables(void **state)
{
    (void)state;
    act = unwind;
    size_t plain = innermost();
    assert_int_equal(bare(innermost, 0), plain + 1);
    assert_true(has_address_in((uintptr_t)bare, 16));
}

/* Wherever the register points to, nothing there is trusted. */
static void nonsense_is_survived(void **state)
{
    (void)state;
    char *page = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t stack = (uintptr_t)&page;
    /* not mapped; not readable; not an address; the stack, near and far; code and data of this program */
    const uint64_t values[] = {0,
                               8,
                               0x1230,
                               (uintptr_t)page,
                               UINT64_C(0x8000000000000000),
                               UINT64_MAX,
                               UINT64_MAX - 7,
                               stack,
                               stack + 1,
                               stack + 0x3ff8,
                               stack - 256,
                               (uintptr_t)blind,
                               (uintptr_t)&python,
                               (uintptr_t)stdout};
    act = unwind;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        assert_true(blind(innermost, values[i]) >= 1);
        assert_true(has_address_in((uintptr_t)blind, 16));
    }
    /* frames on the stack that lead anywhere */
    uint64_t frame[2];
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
            frame[0] = values[i];
            frame[1] = values[k];
            assert_true(blind(innermost, (uintptr_t)frame) >= 1);
        }
    munmap(page, 1 << 16);
}

static ucontext_t from_here, elsewhere;

static void on_other_stack(void)
{
    outer();
    NO_TAIL_CALL();
}

static void other_stacks(void **state)
{
    (void)state;
    size_t size = 256 << 10;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    act = unwind;
    getcontext(&elsewhere);
    elsewhere.uc_stack.ss_sp = stack;
    elsewhere.uc_stack.ss_size = size;
    elsewhere.uc_link = &from_here;
    makecontext(&elsewhere, on_other_stack, 0);
    swapcontext(&from_here, &elsewhere);
    munmap(stack, size);
    assert_in_range(n_addresses, 3, 8);
    assert_true(has_address_in((uintptr_t)on_other_stack, 64));
}

static void *in_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        assert_true(deep(10) > 10);
    return NULL;
}

static uint64_t unwind_apart(const struct kp_registers *from)
{
    uint64_t own[CAP];
    return kp_unwind(from, own, CAP);
}

static void threads_at_once(void **state)
{
    pthread_t t[4];
    (void)state;
    act = unwind_apart;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, in_thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

/* ---- capturing ---- */

/* Frames of the C library around this program's, so that a captured stack has some. */
static uint64_t captured;

static int compare(const void *a, const void *b)
{
    (void)a, (void)b;
    captured = innermost();
    return 0;
}

static NOINLINE uint64_t through_qsort(void)
{
    int two[2] = {0};
    qsort(two, 2, sizeof(*two), compare);
    return captured;
}

static void the_same_has_one_id(void **state)
{
    struct kp_stack s;
    uint64_t first = 0, other = 0;
    (void)state;
    act = kp_stack_capture;
    n_python = 0;
    for (int i = 0; i < 3; i++) {
        errno = ENOTTY;
        uint64_t id = through_qsort();
        assert_int_equal(errno, ENOTTY);
        assert_true(id && (!first || id == first));
        first = id;
        /* the same functions of other modules, from another place of ours */
        id = deep(5);
        assert_true(id && id != first && (!other || id == other));
        other = id;
    }
    assert_int_equal(kp_stack_get(first, &s), 0);
    assert_true(s.n_frames >= 2);
    for (size_t i = 0; i < s.n_frames; i++)
        assert_null(strstr(s.frames[i].module, "test_preload_stack")); /* own frames */
    kp_frames_free(&s);
    assert_int_equal(kp_stack_get(first + 1000, &s), -ENOENT);
    assert_int_equal(kp_stack_get(0, &s), -ENOENT);
}

static void python_lines_count(void **state)
{
    struct kp_stack s;
    (void)state;
    act = kp_stack_capture;
    python[0] = (struct kp_python_frame){"forward", 7};
    python[1] = (struct kp_python_frame){"<module>", 20};
    n_python = 2;
    uint64_t seven = through_qsort();
    python[0].line = 8;
    uint64_t eight = through_qsort();
    python[0].line = 7;
    assert_int_equal(through_qsort(), seven);
    n_python = 0;
    assert_true(seven != eight && seven != through_qsort());
    assert_int_equal(kp_stack_get(eight, &s), 0);
    const struct kp_frame *f = &s.frames[s.n_frames - 2];
    assert_int_equal(f->kind, KP_FRAME_PYTHON);
    assert_string_equal(f->function, "forward");
    assert_string_equal(f->file, "train.py");
    assert_int_equal(f->line, 8);
    assert_string_equal(f->module, "");
    kp_frames_free(&s);
}

/* More than the first table of stacks has room for. */
static void many_stacks(void **state)
{
    enum { LINES = 1500 };
    static uint64_t ids[LINES];
    (void)state;
    act = kp_stack_capture;
    python[0] = (struct kp_python_frame){"loop", 0};
    n_python = 1;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < LINES; i++) {
            python[0].line = 1000 + i;
            uint64_t id = through_qsort();
            assert_true(id && (round ? id == ids[i] : !i || id > ids[i - 1]));
            ids[i] = id;
        }
    n_python = 0;
}

static uint64_t last_given;
static size_t given;
static int given_rc;

static int take(const struct kp_stack *s, void *arg)
{
    (void)arg;
    if (given_rc)
        return given_rc;
    assert_int_equal(s->id, last_given + 1);
    last_given = s->id;
    given++;
    return 0;
}

static void each_is_given_once(void **state)
{
    (void)state;
    act = kp_stack_capture;
    given_rc = -EIO;
    uint64_t newest = 0;
    struct kp_stack s;
    for (through_qsort(); !kp_stack_get(newest + 1, &s); newest++)
        kp_frames_free(&s);
    assert_int_equal(kp_stack_each_new(take, NULL), -EIO);
    given_rc = 0;
    assert_int_equal(kp_stack_each_new(take, NULL), 0);
    assert_int_equal(given, newest);
    assert_int_equal(kp_stack_each_new(take, NULL), 0);
    assert_int_equal(given, newest);
}

typedef uint64_t plugin(uint64_t (*callee)(void *arg), void *arg);

/* Calls `function` of a library that is open only meanwhile, which calls `innermost`. Returns what that returned;
 * *where receives the function's address. */
static NOINLINE uint64_t call_plugin(const char *name, const char *function, uintptr_t *where)
{
    const char *build = getenv("KP_TEST_BUILD");
    char path[4096];
    plugin *call;
    snprintf(path, sizeof(path), "%s/programs/%s", build ? build : "build", name);
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    *(void **)&call = dlsym(library, function);
    *where = (uintptr_t)call;
    uint64_t got = call((uint64_t(*)(void *))(uintptr_t)innermost, NULL);
    dlclose(library);
    return got;
}

static void is_from(uint64_t id, const char *module)
{
    struct kp_stack s;
    assert_int_equal(kp_stack_get(id, &s), 0);
    assert_true(s.n_frames > 0);
    assert_string_equal(s.frames[0].function, "plugin_launch");
    assert_non_null(strstr(s.frames[0].file, "stack_plugin.c"));
    assert_string_equal(strrchr(s.frames[0].module, '/') + 1, module);
    kp_frames_free(&s);
}

/* What a library that was closed had is still known, and what comes to lie in its place is not taken for it. */
static void unloaded_modules(void **state)
{
    static const char *const libraries[] = {"stack_plugin", "stack_plugin2", "stack_plugin"};
    uintptr_t at[3];
    uint64_t ids[3];
    volatile int n = 3; /* one call for all: a loop that was unrolled would have other addresses */
    (void)state;
    act = kp_stack_capture;
    for (int i = 0; i < n; i++)
        ids[i] = call_plugin(libraries[i], "plugin_launch", &at[i]);
    if (at[0] != at[1])
        print_message("the libraries did not lie at one address: nothing could be mistaken\n");
    assert_true(ids[0] && ids[1] && ids[0] != ids[1]);
    assert_int_equal(ids[2], ids[0]);
    assert_int_not_equal(kp_stack_name_all(), 0);
    is_from(ids[0], "stack_plugin");
    is_from(ids[1], "stack_plugin2");
}

static NOINLINE size_t unwind_plugin(const char *name)
{
    uintptr_t where;
    size_t n = (size_t)call_plugin(name, "plugin_call", &where);
    assert_true(has_address_in(where, 32));
    assert_true(has_address_in((uintptr_t)unwind_plugin, 256));
    return n;
}

static void rules_go_with_their_module(void **state)
{
    (void)state;
    act = unwind;
    size_t n = unwind_plugin("stack_plugin");
    assert_int_equal(unwind_plugin("stack_plugin2"), n);
    assert_int_equal(unwind_plugin("stack_plugin"), n);
}

/* ---- Python among native frames ---- */

enum { EXTENSION = 1, PYTHON, LIBC };

static const struct kp_stack_module modules[] = {
    {.path = "/lib/libtorch.so"}, {.path = "/usr/bin/python3.11"}, {.path = "/lib/libc.so.6"}};

/* Names of offsets, in any module. */
enum { LAUNCH = 1, VECTORCALL, EVAL, RUN_MAIN, BACKWARD, START };
static const char *const functions[] = {
    NULL, "launch", "_PyFunction_Vectorcall", "_PyEval_EvalFrameDefault", "Py_RunMain", "backward", "start"};

/* As one line: native functions by name, Python's as name:line. */
static char *merged(const struct kp_stack_call *calls, size_t n, size_t lines, bool with_names)
{
    struct kp_named_call all[3 * START];
    struct kp_stack_place places[3 * START];
    struct kp_stack_names names = {all, 0};
    static struct kp_stack_line python_lines[] = {
        {"f", "f.py", 1}, {"g", "g.py", 2}, {"h", "h.py", 3}, {"main", "m.py", 4}};
    struct kp_raw_stack raw = {(struct kp_stack_call *)calls, n, python_lines, lines};
    struct kp_stack s;
    for (uint32_t m = 1; with_names && m <= 3; m++)
        for (uint64_t f = LAUNCH; f <= START; f++) {
            places[names.n] = (struct kp_stack_place){(char *)functions[f], "x.c", 1};
            all[names.n] = (struct kp_named_call){{m, f}, &places[names.n], 1};
            names.n++;
        }
    assert_int_equal(kp_stack_frames(&raw, modules, &names, &s), 0);
    static char text[512];
    *text = '\0';
    for (size_t i = 0; i < s.n_frames; i++) {
        const struct kp_frame *f = &s.frames[i];
        size_t length = strlen(text);
        if (f->kind == KP_FRAME_PYTHON)
            snprintf(text + length, sizeof(text) - length, "%s:%d ", f->function, (int)f->line);
        else
            snprintf(text + length, sizeof(text) - length, "%s ", *f->function ? f->function : "?");
    }
    kp_frames_free(&s);
    return text;
}

static void python_takes_the_place_of_its_interpreter(void **state)
{
    static const struct kp_stack_call plain[] = {{EXTENSION, LAUNCH},  {PYTHON, VECTORCALL}, {PYTHON, EVAL},
                                                 {PYTHON, VECTORCALL}, {PYTHON, EVAL},       {PYTHON, RUN_MAIN},
                                                 {LIBC, START},        {PYTHON, START}};
    static const struct kp_stack_call twice[] = {{EXTENSION, LAUNCH}, {PYTHON, EVAL}, {EXTENSION, BACKWARD},
                                                 {PYTHON, EVAL},      {PYTHON, EVAL}, {PYTHON, RUN_MAIN},
                                                 {LIBC, START},       {PYTHON, START}};
    static const struct kp_stack_call native[] = {{EXTENSION, LAUNCH}, {LIBC, START}};
    (void)state;
#define COUNT(a) (sizeof(a) / sizeof(*(a)))
    /* an evaluation each */
    assert_string_equal(merged(plain, COUNT(plain), 2, true), "launch f:1 g:2 start start ");
    assert_string_equal(merged(twice, COUNT(twice), 3, true), "launch f:1 backward g:2 h:3 start start ");
    /* an evaluation for several: all in one place */
    assert_string_equal(merged(plain, COUNT(plain), 3, true), "launch f:1 g:2 h:3 start start ");
    assert_string_equal(merged(twice, COUNT(twice), 4, true), "launch f:1 g:2 h:3 main:4 start start ");
    /* nothing to take the place of: the outermost */
    assert_string_equal(merged(native, COUNT(native), 1, true), "launch start f:1 ");
    assert_string_equal(merged(NULL, 0, 2, true), "f:1 g:2 ");
    /* no Python frames were asked for: the interpreter stays */
    assert_string_equal(merged(twice, 4, 0, true),
                        "launch _PyEval_EvalFrameDefault backward _PyEval_EvalFrameDefault ");
    /* before there are names */
    assert_string_equal(merged(plain, COUNT(plain), 2, false), "? f:1 g:2 ");
}

/* ---- cost: a figure, not a test ---- */

static void cost(void **state)
{
    enum { DEPTH = 26, ROUNDS = 200, CALLS = 100 };
    struct timespec begin, end;
    (void)state;
    act = unwind;
    deep(DEPTH);
    size_t frames = n_addresses;
    act = kp_stack_capture;
    deep(DEPTH);
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < CALLS; i++)
            deep(DEPTH);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
        best = ns < best ? ns : best;
    }
    print_message("a capture of %zu frames, once known: %.2f us\n", frames, best / 1e3);
}

int main(void)
{
    const struct kp_options options = {.call_stack = {2, {KP_CALL_STACK_NATIVE, KP_CALL_STACK_PYTHON}}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_lines),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(code_without_tables),
        cmocka_unit_test(nonsense_is_survived),
        cmocka_unit_test(other_stacks),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(the_same_has_one_id),
        cmocka_unit_test(python_lines_count),
        cmocka_unit_test(each_is_given_once),
        cmocka_unit_test(many_stacks),
        cmocka_unit_test(unloaded_modules),
        cmocka_unit_test(rules_go_with_their_module),
        cmocka_unit_test(python_takes_the_place_of_its_interpreter),
        cmocka_unit_test(cost),
    };
    kp_stack_configure(&options);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
