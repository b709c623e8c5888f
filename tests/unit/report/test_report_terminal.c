/* The answer on one screen: what a training step of several hundred launches prints, and in which width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/width.h"
#include "report/define/units.h"
#include "report/judge/rules.h"
#include "report/model/launch_names.h"
#include "report/model/renames.h"
#include "report/model/short_names.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/view/brief.h"
#include "report/write/columns.h"
#include "report/write/fit.h"
#include "tests/support/report_support.h"

/* A step like that of ResNet-50: kernels by their names in PyTorch, cuDNN and CUTLASS, how often each runs, and in how
 * many shapes. */
#define ELEMENTWISE                                                                                                    \
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::%s, std::array<char *, (unsigned "             \
    "long)3>>(int, "                                                                                                   \
    "T2, T3)"
#define CUTLASS "void cutlass::Kernel<cutlass_80_tensorop_%s>(T1::Params)"
static const struct step {
    const char *name, *part;
    size_t launches, shapes;
} steps[] = {
    {CUTLASS, "s1688gemm_128x128_16x5_nn_align4", 20, 3},
    {CUTLASS, "s1688gemm_128x64_16x6_nt_align4", 14, 2},
    {CUTLASS, "s1688gemm_128x128_32x3_tn_align4", 9, 2},
    {CUTLASS, "s1688gemm_256x64_16x4_nn_align4", 9, 1},
    {"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_%s>(T1::Params)", "128x64_16x5_nhwc",
     30, 4},
    {"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_%s>(T1::Params)", "128x64_16x5_nhwc",
     30, 4},
    {"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_%s>(T1::Params)", "128x64_16x5_nhwc",
     30, 4},
    {"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize%s", "128x128x16_stage4_warpsize2x2x1",
     24, 3},
    {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, (int)%s, (bool)1, (int)1>(cudnnTensorStruct, const T1 *)",
     "512", 53, 5},
    {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, (int)%s, (bool)1, (int)1>(T2, T2, T2)", "512", 53, 5},
    {"void cudnn::ops::nchwToNhwcKernel<float, float, float, (bool)0, (bool)1, (cudnnKernelDataType_t)%s>(T1)", "2", 40,
     3},
    {"void cudnn::ops::nhwcToNchwKernel<float, float, float, (bool)1, (bool)0, (cudnnKernelDataType_t)%s>(T1)", "0", 40,
     3},
    {ELEMENTWISE, "CUDAFunctor_add<float>", 16, 4},
    {ELEMENTWISE, "BinaryFunctor<float, float, float, MulFunctor<float>>", 12, 2},
    {ELEMENTWISE, "FillFunctor<float>", 60, 2},
    {ELEMENTWISE, "threshold_kernel_impl<float>::[lambda(float, float) (instance 1)]", 49, 4},
    {ELEMENTWISE, "threshold_kernel_impl<float>::[lambda(float, float) (instance 2)]", 49, 4},
    {"void at::native::max_pool_forward_nchw<float, %s>(int, const T1 *, long)", "int", 1, 1},
    {"void at::native::max_pool_backward_nchw<float, %s>(const T1 *, const long *)", "float", 1, 1},
    {"void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, "
     "%s>>>(T3)",
     "float", 2, 2},
    {"void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<(int)%s>, FusedAdam>(T1, T2)", "4", 20,
     1},
    {"void at::native::cunn_SoftMaxForward<(int)4, float, float, float, at::native::LogSoftMaxForwardEpilogue>(%s)",
     "T4 *", 1, 1},
    {"void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float, float, %s>(T1 *, T1 *)", "long", 1, 1},
};
enum { STEPS = sizeof steps / sizeof *steps, SCREEN = 60 };

static struct kp_recording rec;
static size_t n_ranges; /* NVTX ranges that launches are in, in turn, inside of one more; 0: in none */

static size_t count_shapes(void)
{
    size_t n = 0;
    for (size_t i = 0; i < STEPS; i++)
        n += steps[i].shapes;
    return n;
}

static size_t count_steps(void)
{
    size_t n = 0;
    for (size_t i = 0; i < STEPS; i++)
        n += steps[i].launches;
    return n;
}

/* Calls `fn` with launch `k` of a step: values of a recorded launch, with a shape and a duration of its own. */
static int give(size_t step, size_t k, uint64_t id, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    struct kp_result *r = &rec.results[step % rec.n];
    struct kp_launch_info own = r->launch;
    double ns = 0;
    char *name, none[] = "", step_name[] = "step 7", inner[32];
    struct kp_nvtx_range ranges[] = {{KP_NVTX_PUSH_POP, none, step_name, none, none, 1},
                                     {KP_NVTX_PUSH_POP, none, inner, none, none, 1}};
    assert_true(asprintf(&name, steps[step].name, steps[step].part) > 0);
    assert_true(kp_metric_number(kp_result_find(r, "gpu__time_duration.sum"), &ns));
    r->launch.id = id;
    r->launch.demangled = name;
    r->launch.grid[0] = 64U << (k % steps[step].shapes);
    assert_int_equal(kp_result_set_real(r, "gpu__time_duration.sum", "ns", 1000 * (double)(k + 1)), 0);
    snprintf(inner, sizeof inner, "layer %zu", n_ranges ? id % n_ranges : 0);
    if (n_ranges)
        r->launch.nvtx = (struct kp_nvtx){.ranges = ranges, .n_ranges = 2, .thread = 1};
    int rc = fn(r, arg);
    assert_int_equal(kp_result_set_real(r, "gpu__time_duration.sum", "ns", ns), 0);
    r->launch = own;
    free(name);
    return rc;
}

/* The launches of all steps, in turn. `from`: how many at most. */
static int each(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    uint64_t id = 0;
    int rc = 0;
    (void)err;
    for (size_t k = 0; k < 64; k++)
        for (size_t i = 0; i < STEPS; i++)
            if (!rc && k < steps[i].launches && id < *(const size_t *)from)
                rc = give(i, k, id++, fn, arg);
    return rc;
}

static char *print_of(const struct kp_display *d, size_t launches)
{
    const struct kp_launches all = {.each = each, .from = &launches};
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    assert_int_equal(kp_page_print(&sink, d, &rec.session, &all, &err), 0);
    assert_null(err);
    return t.text;
}

static char *print(const struct kp_display *d)
{
    return print_of(d, SIZE_MAX);
}

static struct kp_display display_of(char *const *env)
{
    struct kp_options o;
    char *err = NULL;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    struct kp_display d = kp_display_of(&o);
    d.trace_columns = d.source_folders = NULL;
    kp_options_free(&o);
    return d;
}

#define DISPLAY(...) display_of((char *const[]){__VA_ARGS__, NULL})

static int make_session(void **state)
{
    (void)state;
    rec = kp_test_recording();
    return 0;
}

static int drop_session(void **state)
{
    (void)state;
    kp_test_recording_free(&rec);
    return 0;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* The widest line, in characters; colours have no width. */
static size_t widest(const char *text)
{
    size_t most = 0, now = 0;
    for (; *text; text++) {
        if (*text == '\033')
            text += strcspn(text, "m");
        else if (*text == '\n')
            now = 0;
        else if (((unsigned char)*text & 0xc0) != 0x80 && ++now > most)
            most = now;
    }
    return most;
}

/* --- the summary --- */

static void the_summary_answers_on_one_screen(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_PAGE=summary");
    char *text = print(&d);
    assert_true(count_steps() > 400);
    assert_in_range(count(text, "\n"), 20, SCREEN);
    assert_in_range(widest(text), 80, 120);
    assert_non_null(strstr(text, "==KPROF== Fix first: "));
    assert_non_null(strstr(text, "Bound by"));
    assert_non_null(strstr(text, "Gain %"));
    assert_non_null(strstr(text, "By Rule"));
    assert_non_null(strstr(text, "; the 15 longest:\n"));
    assert_non_null(strstr(text, "\n and 8 more: --top 0 lists all\n"));
    kp_test_golden(text, "tests/golden/terminal_summary.txt");
    free(text);
    d.rules = 0; /* --apply-rules no */
    text = print(&d);
    assert_null(strstr(text, "Fix first"));
    assert_null(strstr(text, "Bound by"));
    free(text);
}

/* Ranges come in addition: a model has hundreds of them. */
static void the_summary_of_a_program_with_ranges_is_no_longer(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_PAGE=summary");
    n_ranges = 300;
    char *text = print(&d);
    assert_in_range(count(text, "\n"), 40, SCREEN);
    assert_non_null(strstr(text, "\n and 293 more: --top 0 lists all\n"));
    free(text);
    d = DISPLAY("KPROF_PAGE=summary", "KPROF_TOP=0");
    text = print(&d);
    assert_int_equal(count(text, " layer "), 300);
    free(text);
    n_ranges = 0;
}

static void top_is_the_number_of_kernels(void **state)
{
    static const struct {
        char *top;
        size_t kernels;
        const char *head;
    } cases[] = {{"KPROF_TOP=1", 1, "gains are of that; the longest:\n"},
                 {"KPROF_TOP=3", 3, "gains are of that; the 3 longest:\n"},
                 {"KPROF_TOP=0", STEPS, "gains are of that\n"},
                 {"KPROF_TOP=1000", STEPS, "gains are of that\n"},
                 {"KPROF_TOP=auto", 15, "gains are of that; the 15 longest:\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_display d = DISPLAY("KPROF_PAGE=summary", "KPROF_CSV=on", cases[i].top);
        size_t in_csv = strstr(cases[i].top, "auto") ? STEPS : cases[i].kernels;
        char *text = print(&d);
        assert_int_equal(count(text, "\n"), 1 + in_csv);
        assert_non_null(strstr(text, "\"Name\",\"Bound By\",\"Gain (%)\",\"Rule\""));
        free(text);
        d = DISPLAY("KPROF_PAGE=summary", cases[i].top);
        text = print(&d);
        const char *table = strstr(text, "\n Time (%)");
        assert_non_null(strstr(text, cases[i].head));
        size_t more = table && strstr(table, "--top 0") != NULL;
        assert_non_null(table);
        assert_int_equal(count(table + 1, "\n"), 2 + cases[i].kernels + more + 1 + 1); /* a gap, and the account */
        free(text);
    }
}

/* Finds the first row of the table with the verdicts. */
static void assert_first(const char *text, const char *name)
{
    const char *table = strstr(text, "\n  Time %"), *row = table;
    assert_non_null(table);
    for (int i = 0; i < 2; i++)
        row = strchr(row + 1, '\n');
    const char *end = strchr(row + 1, '\n'), *found = strstr(row, name);
    if (!found || found > end)
        fail_msg("not %s:%.*s", name, (int)(end - row), row);
}

static void sort_orders_the_kernels(void **state)
{
    static const struct {
        char *sort;
        const char *first, *words;
    } cases[] = {
        {"KPROF_SORT=time", "vectorized_elementwise_kernel", "the 2 longest"},
        {"KPROF_SORT=duration", "vectorized_elementwise_kernel", "the 2 of the longest launches"},
        {"KPROF_SORT=name", "sm80_xmma_fprop", "the first 2 by name"},
        {"KPROF_SORT=gain", "", "the 2 with the highest gain"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_display d = DISPLAY("KPROF_PAGE=summary", "KPROF_TOP=2", cases[i].sort);
        char *text = print(&d);
        assert_first(text, cases[i].first);
        assert_non_null(strstr(text, cases[i].words));
        free(text);
    }
    struct kp_display d = DISPLAY("KPROF_PAGE=summary", "KPROF_CSV=on", "KPROF_SORT=gain");
    char *text = print(&d), *save = NULL;
    size_t rows = 0;
    double last = 101;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), rows++) {
        char *rule = strrchr(line, ','), *field = rule ? (char *)memrchr(line, ',', (size_t)(rule - line)) : NULL;
        double now = field ? atof(field + 2) : 0;
        assert_non_null(field);
        assert_true(!rows || now <= last);
        last = rows ? now : 101;
    }
    assert_int_equal(rows, 1 + STEPS);
    free(text);
}

/* --- in brief --- */

static int see_launch(struct kp_result *r, void *arg)
{
    return kp_brief_add(arg, r);
}

static void one_launch_stands_for_its_kernel_and_shape(void **state)
{
    size_t all = SIZE_MAX, shown = 0;
    struct kp_brief *b = kp_brief_new();
    char *err = NULL;
    (void)state;
    assert_int_equal(each(&all, see_launch, b, &err), 0);
    assert_int_equal(kp_brief_count(b), count_steps());
    assert_int_equal(kp_brief_choose(b, 0), count_shapes());
    for (uint64_t id = 0; id < count_steps(); id++)
        shown += kp_brief_has(b, id);
    assert_int_equal(shown, count_shapes());
    kp_brief_free(b);
    b = kp_brief_new();
    struct kp_result r = {.launch = {.mangled = kp_strdup("k")}};
    static const double ns[] = {50, 10, 40, 20, 30};
    for (size_t i = 0; i < 5; i++) {
        r.launch.id = i;
        assert_int_equal(kp_result_set_real(&r, "gpu__time_duration.sum", "ns", ns[i]), 0);
        assert_int_equal(kp_brief_add(b, &r), 0);
    }
    assert_int_equal(kp_brief_choose(b, 0), 1);
    assert_true(kp_brief_has(b, 4)); /* 30, the median */
    kp_brief_free(b);
    kp_result_free(&r);
}

/* Of many kernels those are shown that took most time, over all launches that an entry of a rotation stands for. */
static void an_entry_of_a_rotation_takes_the_time_of_all(void **state)
{
    struct kp_brief *b = kp_brief_new();
    static const uint64_t alike[] = {0, 100, 3};
    static const double ns[] = {500, 10, 150};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct kp_result r = {.launch = {.id = i, .grid = {(uint32_t)i}, .alike = alike[i], .mangled = kp_strdup("k")}};
        assert_int_equal(kp_result_set_real(&r, "gpu__time_duration.sum", "ns", ns[i]), 0);
        assert_int_equal(kp_brief_add(b, &r), 0);
        kp_result_free(&r);
    }
    assert_int_equal(kp_brief_choose(b, 1), 1);
    assert_true(kp_brief_has(b, 1));
    kp_brief_free(b);
}

static void a_long_run_is_shown_in_brief(void **state)
{
    char wanted[160];
    (void)state;
    struct kp_display d = DISPLAY("KPROF_LAUNCH_SKIP=0");
    assert_int_equal(d.brief_above, 50);
    d.file = "step.kprof";
    char *text = print(&d);
    size_t shown = count(text, ", CC 9.0\n");
    assert_in_range(shown, 2, count_shapes() - 1);
    assert_in_range(count(text, "\n"), 150, 200);
    snprintf(wanted, sizeof wanted,
             "\n==KPROF== %zu of %zu launches in full, medians of the longest kernels; all: kprof report --page "
             "details step.kprof\n",
             shown, count_steps());
    assert_non_null(strstr(text, wanted));
    /* The answer, for all of them, stands before the launches. */
    snprintf(wanted, sizeof wanted, "==KPROF== %zu launches of %d kernels, ", count_steps(), (int)STEPS);
    const char *answer = strstr(text, "==KPROF== Fix first: "), *all = strstr(text, wanted);
    assert_non_null(answer);
    assert_true(all > answer && all < strstr(text, ", CC 9.0\n"));
    free(text);
    d.brief_lines = 0; /* of a file in HTML, say: one of each kernel and shape */
    text = print(&d);
    assert_int_equal(count(text, ", CC 9.0\n"), count_shapes());
    free(text);
    d.brief_lines = 10; /* one launch is shown, however long it is */
    text = print(&d);
    assert_int_equal(count(text, ", CC 9.0\n"), 1);
    free(text);
    d.brief_lines = 200;
    d.file = "/a/path/that/is/much/too/long/for/the/rest/of/the/line/step.kprof";
    text = print(&d);
    assert_non_null(strstr(text, "; all: kprof report --page details FILE\n"));
    free(text);
    d.file = NULL;
    text = print(&d);
    assert_non_null(strstr(text, "; all: --page details, and --export keeps them\n"));
    free(text);
}

/* All launches are shown up to the bound, and to those who say what they want. */
static void nothing_else_is_in_brief(void **state)
{
    static char *const explicit[] = {"KPROF_PAGE=details",
                                     "KPROF_PRINT_DETAILS=body",
                                     "KPROF_PRINT_UNITS=base",
                                     "KPROF_PRINT_METRIC_NAME=name",
                                     "KPROF_CSV=on",
                                     "KPROF_JSON=on",
                                     "KPROF_PRINT_METRIC_INSTANCES=values",
                                     "KPROF_PRINT_SUMMARY=per-gpu",
                                     "KPROF_BRIEF_ABOVE=0"};
    (void)state;
    for (size_t i = 0; i < sizeof explicit / sizeof *explicit; i++) {
        struct kp_display d = DISPLAY(explicit[i]);
        if (d.brief_above)
            fail_msg("%s is in brief", explicit[i]);
    }
    assert_int_equal(DISPLAY("KPROF_SET=full").brief_above, 50); /* what is measured is not how much is printed */
    struct kp_display d = DISPLAY("KPROF_PAGE=", "KPROF_BRIEF_ABOVE=70");
    d.brief_lines = SIZE_MAX;
    for (size_t n = 70; n <= 71; n++) {
        char *text = print_of(&d, n);
        size_t shown = count(text, ", CC 9.0\n");
        assert_int_equal(shown<n, n> 70);
        assert_int_equal(count(text, " launches in full, "), n > 70);
        free(text);
    }
    d = DISPLAY("KPROF_PAGE=details");
    char *text = print(&d);
    assert_int_equal(count(text, ", CC 9.0\n"), count_steps());
    free(text);
}

/* --- names --- */

static void different_kernels_stay_different(void **state)
{
    static const size_t rooms[] = {KP_SHORT_ROOM_MIN, 24, 50, 200};
    struct kp_long_name names[STEPS];
    size_t marked = 0;
    char **out;
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        char *name;
        assert_true(asprintf(&name, steps[i].name, steps[i].part) > 0);
        names[i] = (struct kp_long_name){name, 0, false};
    }
    for (size_t r = 0; r < sizeof rooms / sizeof *rooms; r++)
        for (enum kp_short_form form = KP_SHORT_SIGNATURE; form <= KP_SHORT_BARE; form++) {
            assert_int_equal(kp_short_names(names, STEPS, STEPS, rooms[r], form, &out), 0);
            for (size_t i = 0; i < STEPS; i++) {
                assert_in_range(strlen(out[i]), 1, rooms[r]);
                for (size_t j = 0; j < i; j++)
                    if (!strcmp(out[i], out[j]))
                        fail_msg("%s is both\n%s and\n%s", out[i], names[i].name, names[j].name);
            }
            kp_short_names_free(out, STEPS);
        }
    /* differences too far apart for the room are numbered */
    const struct kp_long_name far[] = {{"void f<a1, bbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccc1, dd>(int)", 0, false},
                                       {"void f<a1, bbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccc2, dd>(int)", 0, false},
                                       {"void f<a2, bbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccc1, dd>(int)", 0, false},
                                       {"void f<a2, bbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccc2, dd>(int)", 0, false}};
    assert_int_equal(kp_short_names(far, 4, 4, 20, KP_SHORT_BARE, &out), 0);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(out[i], out[j]);
    assert_string_equal(out[0], "f...cc1, dd>(int)#1");
    assert_string_equal(out[2], "f...cc1, dd>(int)#3");
    kp_short_names_free(out, 4);
    /* by a number that is the same in any room, and whichever others are shown */
    for (size_t room = KP_SHORT_ROOM_MIN; room < 50; room++)
        for (size_t shown = 2; shown <= 4; shown++) {
            assert_int_equal(kp_short_names(far, 4, shown, room, KP_SHORT_SIGNATURE, &out), 0);
            for (size_t i = 0; i < shown; i++) {
                const char *mark = strchr(out[i], '#');
                if (mark && (size_t)(mark[1] - '0') != i + 1)
                    fail_msg("number %zu in %zu is %s", i + 1, room, out[i]);
                marked += mark != NULL;
            }
            kp_short_names_free(out, shown);
        }
    assert_true(marked > 10);
    /* wide characters count as two, and none is cut in two */
#define KERNEL "\xe6\xa0\xb8\xe5\x87\xbd\xe6\x95\xb0"
    const struct kp_long_name wide[] = {{"void " KERNEL KERNEL KERNEL KERNEL "<a>(int)", 0, false},
                                        {"void " KERNEL KERNEL KERNEL KERNEL "<b>(int)", 0, false},
                                        {"\xf0\x9f\x9a\x80 " KERNEL KERNEL KERNEL KERNEL "/f(int)", 42, false},
                                        {KERNEL KERNEL KERNEL KERNEL KERNEL, 0, true}};
    for (size_t room = KP_SHORT_ROOM_MIN; room < 40; room++) {
        assert_int_equal(kp_short_names(wide, 4, 4, room, KP_SHORT_SIGNATURE, &out), 0);
        for (size_t i = 0; i < 4; i++) {
            assert_in_range(kp_width(out[i]), 12, room);
            if (i != 2 && room < 37 && strchr(out[i], ' '))
                fail_msg("a character is cut in two: %s", out[i]);
            assert_string_not_equal(out[i], out[(i + 1) % 4]);
        }
        kp_short_names_free(out, 4);
    }
    /* equal names stay equal */
    const struct kp_long_name twice[] = {names[0], names[0], names[1]};
    assert_int_equal(kp_short_names(twice, 3, 3, 30, KP_SHORT_BARE, &out), 0);
    assert_string_equal(out[0], out[1]);
    kp_short_names_free(out, 3);
    for (size_t i = 0; i < STEPS; i++)
        free((char *)names[i].name);
}

static void the_trace_tells_kernels_of_cutlass_apart(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_PAGE=trace");
    char *text = print_of(&d, STEPS);
    assert_null(strstr(text, "\ncutlass::Kernel "));
    assert_non_null(strstr(text, "\nKernel<cutlass_80_tensorop_s1688gemm_128x128_16..."));
    assert_non_null(strstr(text, "\nKernel<cutlass_80_tensorop_s1688gemm_128x128_32..."));
    assert_non_null(strstr(text, "\nsm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f...|"));
    kp_test_golden(text, "tests/golden/terminal_trace.txt");
    free(text);
    text = print_of(&d, 1); /* alone, it says what it is, too */
    assert_non_null(strstr(text, "\nKernel<cutlass_80_tensorop_s1688gemm_128x128_16..."));
    free(text);
}

static void write_to(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void kernels_are_renamed(void **state)
{
    static const char yaml[] =
        "# as ncu writes it\n---\n-\n - Original: 'sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32"
        "_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1'\n - Renamed: \"first \\\"conv\\\"\"\n"
        "-\n - Original: regex:MulFunctor\n - Renamed: multiply # by elements\n";
    char path[PATH_MAX], variable[PATH_MAX + 32], *err = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s/renames.yaml", kp_test_folder());
    snprintf(variable, sizeof variable, "KPROF_RENAME_KERNELS=%s", path);
    write_to(path, yaml);
    struct kp_display d = DISPLAY("KPROF_PAGE=trace", variable);
    char *text = print_of(&d, STEPS);
    assert_non_null(strstr(text, "\nfirst \"conv\" "));
    assert_non_null(strstr(text, "\nmultiply "));
    assert_null(strstr(text, "MulFunctor"));
    assert_non_null(strstr(text, "FillFunctor"));
    free(text);
    assert_string_equal(kp_renames_find("a MulFunctor b"), "multiply");
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"- Original: a\n- Original: b\n", ":2: the Original before it has no Renamed"},
        {"- Renamed: a\n", ":1: this Renamed has no Original before it"},
        {"- Original: a\n", ":1: the last Original has no Renamed"},
        {"- Original:\n- Renamed: b\n", ":1: a name is missing after the ':'"},
        {"- Original: 'a\n- Renamed: b\n", ":1: the quote has no end on this line"},
        {"\n- Orignal: a\n", ":2: neither 'Original: NAME' nor 'Renamed: NAME'"},
        {"- Original: regex:(\n- Renamed: b\n", ":2: bad expression '(': missing closing parenthesis (character 1)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_to(path, bad[i].text);
        assert_int_equal(kp_renames_load(path, &err), -EINVAL);
        assert_string_equal(err + strlen(path), bad[i].why);
        free(err);
    }
    assert_string_equal(kp_renames_find("a MulFunctor b"), "multiply"); /* as it was */
    assert_int_equal(kp_renames_load("off", &err), 0);
    assert_null(kp_renames_find("a MulFunctor b"));
    assert_int_equal(kp_renames_load("no such file", &err), -EINVAL);
    assert_string_equal(err, "cannot read the names in no such file: No such file or directory; name a file, or off");
    free(err);
    assert_int_equal(kp_renames_load("/dev/zero", &err), -EINVAL);
    assert_non_null(strstr(err, "it is longer than 1 MiB"));
    free(err);
    unlink(path);
}

/* --- width and colours --- */

static void no_line_is_wider_than_the_terminal(void **state)
{
    static char *const pages[] = {"KPROF_PAGE=details", "KPROF_PAGE=raw",    "KPROF_PAGE=session", "KPROF_PAGE=summary",
                                  "KPROF_PAGE=trace",   "KPROF_PAGE=source", "KPROF_PAGE=pm"};
    static char *const more[] = {"KPROF_PRINT_DETAILS=all", "KPROF_PRINT_METRIC_NAME=label-name",
                                 "KPROF_PRINT_SUMMARY=per-kernel"};
    static const size_t widths[] = {40, 60, 80, 100, 120, 160};
    (void)state;
    for (size_t p = 0; p < sizeof pages / sizeof *pages; p++)
        for (size_t m = 0; m < sizeof more / sizeof *more; m++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                struct kp_display d = DISPLAY(pages[p], more[m]);
                size_t most = widths[w];
                d.width = widths[w];
                d.colors = w % 2;
                char *text = print_of(&d, STEPS);
                if (widest(text) > most)
                    fail_msg("%s, %s: %zu columns of %zu", pages[p], more[m], widest(text), most);
                free(text);
            }
}

/* A list of names is broken between them in a narrow terminal, too. */
static void lists_are_broken_between_names(void **state)
{
    static const size_t widths[] = {70, 80};
    char *own = rec.session.sections;
    (void)state;
    rec.session.sections = "SpeedOfLight_RooflineChart,SpeedOfLight_HierarchicalDoubleRooflineChart,"
                           "MemoryWorkloadAnalysis_Tables,SpeedOfLight,SpeedOfLight_HierarchicalHalfRooflineChart";
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct kp_display d = DISPLAY("KPROF_PAGE=session");
        d.width = widths[w];
        char *text = print_of(&d, 1);
        assert_null(strstr(text, "_\n"));
        assert_non_null(strstr(text, " SpeedOfLight_HierarchicalDoubleRooflineChart,"));
        free(text);
    }
    rec.session.sections = own;
}

/* A rule of dashes that is broken has the rest of it below. */
static bool has_broken_rule(const char *text)
{
    bool was = false;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        bool is =
            strspn(line, " -") == (size_t)(end - line) && end - line > 4 && memchr(line, '-', (size_t)(end - line));
        if (is && was)
            return true;
        was = is;
    }
    return false;
}

static void tables_are_laid_out_for_narrow_terminals(void **state)
{
    static char *const pages[] = {"KPROF_PAGE=details", "KPROF_PAGE=summary", "KPROF_PAGE=source",
                                  "KPROF_PAGE=session", "KPROF_PAGE=raw",     "KPROF_PAGE=pm"};
    (void)state;
    for (size_t p = 0; p < sizeof pages / sizeof *pages; p++)
        for (size_t width = 40; width <= 100; width += 5) {
            struct kp_display d = DISPLAY(pages[p], "KPROF_PRINT_DETAILS=header");
            d.width = width;
            char *text = print_of(&d, STEPS);
            if (has_broken_rule(text))
                fail_msg("%s at %zu columns: a table is broken in\n%s", pages[p], width, text);
            free(text);
        }
}

/* What was broken is still there, but for blanks. */
static void breaking_loses_nothing(void **state)
{
    (void)state;
    for (size_t width = 40; width <= 120; width += 20) {
        struct kp_display d = DISPLAY("KPROF_PAGE=session"), wide = d;
        d.width = width;
        wide.width = 5000;
        char *narrow = print_of(&d, 1), *whole = print_of(&wide, 1), *a = narrow, *b = whole;
        while (*a || *b) {
            a += strspn(a, " -\n");
            b += strspn(b, " -\n");
            if (*a != *b)
                fail_msg("at width %zu '%.20s' is '%.20s'", width, b, a);
            a += *a != '\0';
            b += *b != '\0';
        }
        free(narrow);
        free(whole);
    }
}

static void colours_change_nothing_else(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_COLOR=never");
    d.brief_lines = 0;
    char *plain = print(&d), *from, *to;
    assert_null(strchr(plain, '\033'));
    d.colors = true;
    char *coloured = print(&d);
    assert_true(count(coloured, "\033[") > 2 * count_shapes());
    assert_int_equal(count(coloured, "\033["), 2 * count(coloured, "\033[0m"));
    for (from = to = coloured; *from;) {
        if (*from == '\033')
            from += strcspn(from, "m") + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
    assert_string_equal(plain, coloured);
    free(plain);
    free(coloured);
    d = DISPLAY("KPROF_CSV=on");
    d.colors = true;
    char *csv = print_of(&d, STEPS);
    assert_null(strchr(csv, '\033'));
    free(csv);
}

/* Without a locale that has one, ncu separates no thousands. */
static void the_face_ncu_separates_as_the_locale_does(void **state)
{
    (void)state;
    struct kp_display d = {0};
    char text[KP_NUMBER_MAX];
    setenv("LC_ALL", "C", 1);
    kp_display_fit(&d, &(struct kp_options){.face = KP_FACE_NCU}, -1);
    kp_format_count(1234567, text);
    assert_string_equal(text, "1234567");
    kp_display_fit(&d, &(struct kp_options){.face = KP_FACE_KPROF}, -1);
    kp_format_count(1234567, text);
    assert_string_equal(text, "1,234,567");
    unsetenv("LC_ALL");
}

static void the_environment_tells_the_terminal(void **state)
{
    static const struct {
        const char *columns;
        size_t width;
    } cases[] = {{"100", 100}, {"", 0}, {"x", 0}, {"80x", 0}, {"-5", 0}, {"99999999", 0}};
    char *err = NULL, *always[] = {"KPROF_COLOR=always", NULL}, *automatic[] = {"KPROF_COLOR=auto", NULL};
    struct kp_options o;
    struct kp_display d;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("COLUMNS", cases[i].columns, 1);
        assert_int_equal(kp_terminal_width(-1), cases[i].width);
    }
    unsetenv("COLUMNS");
    assert_int_equal(kp_terminal_width(-1), 0);
    assert_false(kp_terminal_has_colors(-1));
    setenv("NO_COLOR", "1", 1);
    assert_int_equal(kp_options_from_env(&o, always, &err), 0);
    d = kp_display_of(&o);
    kp_display_fit(&d, &o, -1);
    assert_true(d.colors); /* asked for by name */
    kp_options_free(&o);
    assert_int_equal(kp_options_from_env(&o, automatic, &err), 0);
    kp_display_fit(&d, &o, -1);
    assert_false(d.colors);
    kp_options_free(&o);
    unsetenv("NO_COLOR");
}

/* --- tables --- */

static char *table_of(const char *const *cells, size_t width)
{
    static const char *const headings[] = {"Name", "A Number", "Another One", "Last"};
    struct kp_columns table = {.headings = headings, .n = 4};
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_display d = {.width = width};
    struct kp_out o = {.sink = &sink, .display = &d};
    assert_int_equal(kp_columns_add(&table, cells), 0);
    assert_int_equal(kp_columns_add(&table, cells), 0);
    kp_columns_print(&o, &table, &(struct kp_columns_look){2, 1, true});
    assert_int_equal(o.rc, 0);
    kp_columns_free(&table);
    return t.text;
}

static void columns_are_as_wide_as_they_are_shown(void **state)
{
    static const char *const cells[] = {"\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8", "1", "2", "3"};
    (void)state;
    char *text = table_of(cells, 80);
    assert_string_equal(text, "  ------ -------- ----------- ----\n"
                              "    Name A Number Another One Last\n"
                              "  ------ -------- ----------- ----\n"
                              "  \xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8        1           2    3\n"
                              "  \xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8        1           2    3\n"
                              "  ------ -------- ----------- ----\n");
    free(text);
}

/* Columns of 8 that do not fit all the same would be broken by the terminal. */
static void a_table_that_does_not_fit_is_a_list(void **state)
{
    static const char *const cells[] = {"a name", "1,234,567,890", "9,876,543,210", "1,111,111,111"};
    (void)state;
    char *text = table_of(cells, 40);
    assert_non_null(strstr(text, "  ------ ---------"));
    free(text);
    static const char *const more[] = {"a longer name", "1,234,567,890", "9,876,543,210", "1,111,111,111"};
    static const char *const headings[] = {"Name", "B", "C", "D", "E"};
    struct kp_columns table = {.headings = headings, .n = 5};
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_display d = {.width = 40};
    struct kp_out o = {.sink = &sink, .display = &d};
    assert_int_equal(kp_columns_add(&table, (const char *const[]){more[0], more[1], more[2], more[3], "5"}), 0);
    assert_int_equal(kp_columns_add(&table, (const char *const[]){more[3], more[2], more[1], more[0], "123456789"}), 0);
    kp_columns_print(&o, &table, &(struct kp_columns_look){2, 1, true});
    kp_columns_free(&table);
    assert_string_equal(t.text, "  Name  a longer name\n  B     1,234,567,890\n  C     9,876,543,210\n"
                                "  D     1,111,111,111\n  E     5\n\n"
                                "  Name  1,111,111,111\n  B     9,876,543,210\n  C     1,234,567,890\n"
                                "  D     a longer name\n  E     123456789\n");
    free(t.text);
}

/* A line of the trace would be broken by the terminal, too. */
static void a_narrow_trace_is_a_list(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_PAGE=trace");
    d.width = 80;
    char *text = print_of(&d, 1);
    assert_non_null(strstr(text, " Duration (ns) Tensor (%) DRAM (%)\n"));
    free(text);
    d.width = 40;
    text = print_of(&d, 1);
    assert_null(strstr(text, " Duration (ns) Tensor (%)"));
    assert_non_null(strstr(text, "\n  Duration (ns)  "));
    assert_non_null(strstr(text, "\n  Tensor (%)     "));
    free(text);
}

/* Values of metrics stand below their names where a table has no room. */
static void a_narrow_table_of_metrics_is_a_list(void **state)
{
    (void)state;
    struct kp_display d = DISPLAY("KPROF_PAGE=details", "KPROF_PRINT_DETAILS=header");
    d.width = 56;
    char *text = print_of(&d, 1);
    assert_non_null(strstr(text, " Metric Unit Metric Value\n"));
    free(text);
    d.width = 40;
    text = print_of(&d, 1);
    assert_null(strstr(text, "Metric Value"));
    assert_non_null(strstr(text, "\n    Duration\n      "));
    free(text);
}

/* --- lines that are broken --- */

static void assert_fitted(size_t width, const char *text, const char *wanted)
{
    for (size_t piece = 1; piece < 9; piece += 3) {
        struct kp_test_text t = {calloc(1, 1), 0};
        struct kp_sink sink = kp_test_sink(&t);
        struct kp_fit fit;
        kp_fit_init(&fit, &sink, width);
        for (size_t at = 0; at < strlen(text); at += piece)
            assert_int_equal(fit.sink.write(fit.sink.arg, text + at, strnlen(text + at, piece)), 0);
        assert_int_equal(kp_fit_end(&fit), 0);
        assert_string_equal(t.text, wanted);
        free(t.text);
    }
}

/* In a file a header, and a row, is one line. */
static void nothing_is_broken_in_files(void **state)
{
    static const char text[] =
        "a header of a launch whose kernel has a long name                         (1, 1, 1)x(256, 1, "
        "1), Context 1, Stream 7, Device 0, CC 9.0 \n==KPROF== and the next\nno end";
    (void)state;
    assert_fitted(0, text, text);
}

static void lines_are_broken_at_blanks(void **state)
{
    (void)state;
    assert_fitted(40, "short\n\n  as wide as it may be, forty columns xx\n",
                  "short\n\n  as wide as it may be, forty columns xx\n");
    assert_fitted(40, "  a line that is wider than forty columns\nno end",
                  "  a line that is wider than forty\n    columns\nno end");
    assert_fitted(40, "==KPROF== a line about the whole run that is too wide\n",
                  "==KPROF== a line about the whole run\n          that is too wide\n");
    assert_fitted(40, "0123456789012345678901234567890123456789abc\n",
                  "0123456789012345678901234567890123456789\n  abc\n");
    assert_fitted(40, "blanks behind the text stay \n", "blanks behind the text stay \n");
    assert_fitted(40, "where a terminal would not wrap them          \n", "where a terminal would not wrap them\n");
    /* a character of two columns counts as two */
    assert_fitted(40, "0123456789012345678901234567890123456 \xe6\xa0\xb8\n",
                  "0123456789012345678901234567890123456 \xe6\xa0\xb8\n");
    assert_fitted(40, "01234567890123456789012345678901234567 \xe6\xa0\xb8\n",
                  "01234567890123456789012345678901234567\n  \xe6\xa0\xb8\n");
    assert_fitted(40, "\033[1m\xc3\xa9\xc3\xa9 0123456789 0123456789 0123456789 0123\033[0m\n",
                  "\033[1m\xc3\xa9\xc3\xa9 0123456789 0123456789 0123456789 0123\033[0m\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_summary_answers_on_one_screen),
        cmocka_unit_test(the_summary_of_a_program_with_ranges_is_no_longer),
        cmocka_unit_test(top_is_the_number_of_kernels),
        cmocka_unit_test(sort_orders_the_kernels),
        cmocka_unit_test(one_launch_stands_for_its_kernel_and_shape),
        cmocka_unit_test(an_entry_of_a_rotation_takes_the_time_of_all),
        cmocka_unit_test(a_long_run_is_shown_in_brief),
        cmocka_unit_test(nothing_else_is_in_brief),
        cmocka_unit_test(different_kernels_stay_different),
        cmocka_unit_test(the_trace_tells_kernels_of_cutlass_apart),
        cmocka_unit_test(kernels_are_renamed),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(lists_are_broken_between_names),
        cmocka_unit_test(tables_are_laid_out_for_narrow_terminals),
        cmocka_unit_test(breaking_loses_nothing),
        cmocka_unit_test(colours_change_nothing_else),
        cmocka_unit_test(the_environment_tells_the_terminal),
        cmocka_unit_test(columns_are_as_wide_as_they_are_shown),
        cmocka_unit_test(a_table_that_does_not_fit_is_a_list),
        cmocka_unit_test(a_narrow_trace_is_a_list),
        cmocka_unit_test(a_narrow_table_of_metrics_is_a_list),
        cmocka_unit_test(lines_are_broken_at_blanks),
        cmocka_unit_test(the_face_ncu_separates_as_the_locale_does),
        cmocka_unit_test(nothing_is_broken_in_files),
    };
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests_name("report/terminal", tests, make_session, drop_session);
}
