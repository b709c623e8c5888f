/* Call stacks on the details page: below a launch's header, and the launches put together by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/pages/page.h"
#include "tests/support/report_support.h"

enum { DEEP = 23 };

/* Stack 1 has a bit of everything; 2 and 3 are different calls that read the same; 4 is deep; there is no 5, and 6 is
 * not to be read for want of memory. */
static const struct kp_frame mixed[] = {
    {KP_FRAME_NATIVE, "ns::launch", "/src/a\nb.cu", 12, "/opt/app/lib/libmine.so", 0x10},
    {KP_FRAME_NATIVE, "", "", 0, "/usr/lib/libother.so.2", 0xabc},
    {KP_FRAME_PYTHON, "Net.forward", "net.py", 31, "", 0},
    {KP_FRAME_NATIVE, "no_line", "x.c", 0, "/bin/p", 0x30},
    {KP_FRAME_NATIVE, "", "", 0, "", 0x7f0012},
};

static int stack_of(void *arg, uint64_t id, struct kp_stack *out)
{
    const struct kp_frame plain = {KP_FRAME_NATIVE, "work", "/src/w.c", 7, "/bin/p", id};
    size_t n = id == 1 ? sizeof mixed / sizeof *mixed : id == 4 ? DEEP : 1;
    (void)arg;
    *out = (struct kp_stack){.id = id};
    if (id > 4)
        return id == 5 ? -ENOENT : -ENOMEM;
    out->frames = calloc(n, sizeof *out->frames);
    assert_non_null(out->frames);
    for (out->n_frames = 0; out->n_frames < n; out->n_frames++) {
        struct kp_frame *f = &out->frames[out->n_frames];
        *f = id == 1 ? mixed[out->n_frames] : plain;
        f->function = kp_strdup(f->function);
        f->file = kp_strdup(f->file);
        f->module = kp_strdup(f->module);
        if (id == 4)
            f->line = (uint32_t)out->n_frames;
    }
    return 0;
}

/* The launches of a session: the stack of each, and its duration in ns (0: not known). */
struct launches {
    const uint64_t *stacks, *ns;
    size_t n;
};

static int each(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    const struct launches *l = from;
    int rc = 0;
    (void)err;
    for (size_t i = 0; !rc && i < l->n; i++) {
        struct kp_result r = {.launch = {.id = i, .stack = l->stacks[i]}};
        r.launch.mangled = kp_strdup("k");
        r.launch.demangled = kp_strdup("k()");
        if (l->ns[i])
            assert_int_equal(kp_result_set_count(&r, "gpu__time_duration.sum", "ns", l->ns[i]), 0);
        rc = fn(&r, arg);
        kp_result_free(&r);
    }
    return rc;
}

/* What of the page is about call stacks: a line "Call Stack" and what is indented below it. */
static char *stack_lines(const uint64_t *stacks, const uint64_t *ns, size_t n, bool with_stacks, int expected)
{
    struct launches from = {stacks, ns, n};
    struct kp_launches launches = {.each = each, .from = &from};
    struct kp_session s = {.set = "", .sections = "", .metrics = "", .exe = "p", .host = "h", .complete = true};
    struct kp_display d = {.rules = 0, .width = 1000};
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    char *err = NULL;
    launches.lookup.stack = with_stacks ? stack_of : NULL;
    assert_int_equal(kp_page_print(&out, &d, &s, &launches, &err), expected);
    char *lines = calloc(1, t.len + 1), *save = NULL;
    bool table = false;
    for (char *line = strtok_r(t.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        table = strstr(line, "Launches by") || (table && *line == ' ');
        if (table || strstr(line, "Call Stack") || !strncmp(line, "        ", 8))
            strcat(strcat(lines, line), "\n");
    }
    free(t.text);
    free(err);
    return lines;
}

static void check(const uint64_t *stacks, const uint64_t *ns, size_t n, const char *wanted)
{
    char *lines = stack_lines(stacks, ns, n, true, 0);
    assert_string_equal(lines, wanted);
    free(lines);
}

#define MIXED                                                                                                          \
    "        ns::launch at /src/a b.cu:12 (libmine.so)\n"                                                              \
    "        0xabc (libother.so.2)\n"                                                                                  \
    "        Net.forward at net.py:31 (Python)\n"                                                                      \
    "        no_line in x.c (p)\n"                                                                                     \
    "        0x7f0012 (no module)\n"
#define WORK "        work at /src/w.c:7 (p)\n"

static void a_stack_stands_below_the_header(void **state)
{
    (void)state;
    check((const uint64_t[]){1}, (const uint64_t[]){0}, 1,
          "    Call Stack\n" MIXED "  Launches by Call Stack\n    1 launch\n" MIXED);
    /* no stack; one that is not in the session; a session without any */
    check((const uint64_t[]){0}, (const uint64_t[]){5}, 1, "");
    check((const uint64_t[]){5}, (const uint64_t[]){5}, 1, "");
    char *lines = stack_lines((const uint64_t[]){1}, (const uint64_t[]){5}, 1, false, 0);
    assert_string_equal(lines, "");
    free(lines);
}

static void launches_are_put_together(void **state)
{
    (void)state;
    /* 2 and 3 read the same, and are longer together than 1 */
    check((const uint64_t[]){2, 1, 3, 2}, (const uint64_t[]){1000, 2500, 1000, 1000}, 4,
          "    Call Stack\n" WORK "    Call Stack\n" MIXED "    Call Stack\n" WORK "    Call Stack\n" WORK
          "  Launches by Call Stack\n"
          "    3 launches, 3 us (54.5%)\n" WORK "    1 launch, 2.50 us (45.5%)\n" MIXED);
}

static void long_stacks_are_cut(void **state)
{
    (void)state;
    char *lines = stack_lines((const uint64_t[]){4}, (const uint64_t[]){0}, 1, true, 0);
    size_t n = 0;
    for (const char *c = lines; *c; c++)
        n += *c == '\n';
    assert_int_equal(n, 2 * (1 + 20 + 1) + 1);
    assert_non_null(strstr(lines, "        work at /src/w.c:19 (p)\n        and 3 outer frames\n"));
    assert_null(strstr(lines, "w.c:20"));
    free(lines);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    free(stack_lines((const uint64_t[]){6}, (const uint64_t[]){0}, 1, true, -ENOMEM));
}

static void names_have_no_arguments(void **state)
{
    static const struct {
        const char *mangled, *name;
    } cases[] = {
        {"main", "main"},
        {"_Z3addii", "add"},
        {"_ZN2at6native4reluERKNS_6TensorE", "at::native::relu"},
        {"_ZN2at6native3mapIfLi4EEEvPT_i", "at::native::map"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"},
        {"_ZNSt6vectorIiSaIiEEC2Ev", "std::vector::vector"},
        {"_ZZ4workiENKUliE_clEi", "work::[lambda (instance 1)]::operator ()"},
        {"_Z3addii.cold", "add"},
        {"_Z3addii.constprop.0.isra.1", "add"},
        {"_Znonsense.x", "_Znonsense.x"},
        {"_ZlsRSoi", "operator <<"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *name = kp_demangle_function(cases[i].mangled);
        assert_string_equal(name, cases[i].name);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_stands_below_the_header),
        cmocka_unit_test(launches_are_put_together),
        cmocka_unit_test(long_stacks_are_cut),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(names_have_no_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
