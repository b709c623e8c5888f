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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/path.h"
#include "base/text.h"
#include "report/options/config.h"
#include "report/options/options.h"
#include "tests/support/report_support.h"

/* Options from a few NAME=value strings; fails the test on an error. */
#define READ(...) read_options((char *const[]){__VA_ARGS__, NULL})

static struct kp_options read_options(char *const *env)
{
    struct kp_options o;
    char *err = NULL;
    int rc = kp_options_from_env(&o, env, &err);
    if (rc)
        fail_msg("%d: %s", rc, err ? err : "(no message)");
    assert_null(err);
    return o;
}

static void assert_chosen(const struct kp_choices *c, const unsigned char *wanted, size_t n)
{
    assert_int_equal(c->n, n);
    assert_memory_equal(c->at, wanted, n);
    for (size_t i = 0; i < n; i++)
        assert_true(kp_choices_has(c, wanted[i]));
    assert_false(kp_choices_has(c, UINT8_MAX));
}

static void defaults(void **state)
{
    (void)state;
    struct kp_options o = READ("HOME=/root", "KPROF=1", "KPROF_EXPORT=");
    assert_string_equal(o.config, "");
    assert_string_equal(o.set, "basic");
    assert_string_equal(o.section, "");
    assert_string_equal(o.metrics, "");
    assert_string_equal(o.kernel_name, "");
    assert_int_equal(o.launch_skip, 0);
    assert_int_equal(o.launch_count, 0);
    assert_int_equal(o.kernel_name_base, KP_NAME_BASE_FUNCTION);
    assert_string_equal(o.kernel_id, "");
    assert_int_equal(o.launch_skip_before_match, 0);
    assert_int_equal(o.filter_mode, KP_FILTER_GLOBAL);
    assert_int_equal(o.devices, 0);
    assert_int_equal(o.delay, 0);
    assert_int_equal(o.duration, 0);
    assert_int_equal(o.target_processes, KP_TARGETS_ALL);
    assert_string_equal(o.target_processes_filter, "");
    assert_int_equal(o.application, 0);
    assert_int_equal(o.replay_mode, KP_REPLAY_AUTO);
    assert_int_equal(o.fallback, KP_FALLBACK_ROTATE);
    assert_int_equal(o.rotate_launches, 3);
    assert_int_equal(o.rotate_key, KP_ROTATE_BY_SHAPE);
    assert_int_equal(o.save_time, 10000000000);
    assert_int_equal(o.save, KP_SAVE_AUTO);
    assert_int_equal(o.window, 704);
    assert_int_equal(o.window_memory, 1 << 30);
    assert_true(o.window_reads);
    assert_true(o.cupti_leaves);
    assert_int_equal(o.budget, 60000000000);
    assert_int_equal(o.app_replay_match, KP_MATCH_GRID);
    assert_int_equal(o.app_replay_mode, KP_APP_BALANCED);
    assert_true(o.replay_run == 0);
    assert_string_equal(o.replay_folder, "");
    assert_int_equal(o.graph_profiling, KP_GRAPHS_BY_NODE);
    assert_int_equal(o.cache_control, KP_CACHES_FLUSHED);
    assert_int_equal(o.clock_control, KP_CLOCKS_LEFT);
    assert_int_equal(o.face, KP_FACE_KPROF);
    assert_false(o.null_stdin);
    assert_string_equal(o.preload_library, "");
    assert_false(o.check_exit_code);
    assert_false(o.kill);
    assert_false(o.print_fp);
    assert_int_equal(o.print_kernel_base, KP_PRINTED_DEMANGLED);
    assert_true(o.import_sass);
    assert_false(o.disable_profiler_start_stop);
    assert_false(o.unprinted);
    assert_int_equal(o.pm_sampling_interval, 0);
    assert_int_equal(o.pm_sampling_buffer_size, 0);
    assert_int_equal(o.pm_sampling_max_passes, 0);
    assert_string_equal(o.log_file, "stderr");
    assert_string_equal(o.export_file, "");
    assert_false(o.force_overwrite);
    assert_false(o.quiet);
    assert_true(o.profile_from_start);
    assert_false(o.nvtx);
    assert_string_equal(o.nvtx_include, "");
    assert_string_equal(o.nvtx_exclude, "");
    assert_int_equal(o.nvtx_push_pop_scope, KP_SCOPE_THREAD);
    assert_string_equal(o.cupti_dir, "");
    assert_string_equal(o.session_file, "");
    assert_string_equal(o.section_folder, "");
    assert_int_equal(o.print_details, KP_DETAILS_HEADER);
    assert_int_equal(o.print_metric_name, KP_NAMING_LABEL);
    assert_int_equal(o.print_units, KP_SCALING_AUTO);
    assert_int_equal(o.print_metric_instances, KP_INSTANCES_NONE);
    assert_chosen(&o.page, (const unsigned char[]){KP_PAGE_DETAILS}, 1);
    assert_false(o.csv);
    assert_false(o.json);
    assert_int_equal(o.print_summary, KP_GROUPING_NONE);
    assert_int_equal(o.print_nvtx_rename, KP_NVTX_RENAME_NONE);
    assert_int_equal(o.warp_sampling_interval, KP_OPTION_AUTO);
    assert_int_equal(o.warp_sampling_buffer_size, 0);
    assert_string_equal(o.trace_columns, "");
    assert_chosen(&o.print_source, (const unsigned char[]){KP_SOURCE_LINES, KP_SOURCE_SASS}, 2);
    assert_false(o.import_source);
    assert_string_equal(o.source_folders, "");
    assert_int_equal(o.debug.n, 0);
    kp_options_free(&o);
    assert_null(o.set);
}

/* The face of ncu is other defaults: what is given holds in it, too. */
static void the_face_of_ncu_is_defaults(void **state)
{
    (void)state;
    struct kp_options o = READ("KPROF_FACE=ncu");
    assert_int_equal(o.face, KP_FACE_NCU);
    assert_int_equal(o.replay_mode, KP_REPLAY_KERNEL);
    assert_string_equal(o.log_file, "stdout");
    assert_int_equal(o.brief_above, 0);
    assert_true(o.check_exit_code);
    assert_false(o.unprinted);
    kp_options_free(&o);
    o = READ("KPROF_FACE=ncu", "KPROF_REPLAY_MODE=rotate", "KPROF_LOG_FILE=x", "KPROF_BRIEF_ABOVE=9",
             "KPROF_CHECK_EXIT_CODE=no", "KPROF_EXPORT=r", "KPROF_PAGE=raw");
    assert_int_equal(o.replay_mode, KP_REPLAY_ROTATE);
    assert_string_equal(o.log_file, "x");
    assert_int_equal(o.brief_above, 9);
    assert_false(o.check_exit_code);
    assert_string_equal(o.export_file, "r.kprof");
    assert_false(o.unprinted); /* a page is named */
    kp_options_free(&o);
    static const char *const names[][2] = {{"KPROF_EXPORT=a.kprof", "a.kprof"},
                                           {"KPROF_EXPORT=a.ncu-rep", "a.ncu-rep"},
                                           {"KPROF_EXPORT=a.b", "a.b.kprof"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        o = READ("KPROF_FACE=ncu", (char *)(uintptr_t)names[i][0]);
        assert_string_equal(o.export_file, names[i][1]);
        assert_true(o.unprinted);
        kp_options_free(&o);
    }
}

static void every_field_has_its_variable(void **state)
{
    (void)state;
    struct kp_options o = READ(
        "KPROF_CONFIG=/dev/null", "KPROF_SET=basic", "KPROF_SECTION=Occupancy", "KPROF_METRICS=a,b",
        "KPROF_KERNEL_NAME=regex:^k", "KPROF_LAUNCH_SKIP=5", "KPROF_LAUNCH_COUNT=18446744073709551615",
        "KPROF_WINDOW=1", "KPROF_WINDOW_MEMORY=64M", "KPROF_WINDOW_READS=off", "KPROF_CUPTI_LEAVES=off",
        "KPROF_GRAPH_PROFILING=graph", "KPROF_REPLAY_MODE=application", "KPROF_BUDGET=1.5m", "KPROF_FALLBACK=quick",
        "KPROF_ROTATE_LAUNCHES=4", "KPROF_ROTATE_KEY=nvtx", "KPROF_SAVE_TIME=3s", "KPROF_SAVE=changes",
        "KPROF_VARY=", "KPROF_APP_REPLAY_MATCH=all", "KPROF_APP_REPLAY_MODE=relaxed", "KPROF_REPLAY_RUN=3",
        "KPROF_REPLAY_FOLDER=/tmp/r", "KPROF_CACHE_CONTROL=none", "KPROF_CLOCK_CONTROL=boost", "KPROF_LOG_FILE=stdout",
        "KPROF_EXPORT=x%p", "KPROF_FORCE_OVERWRITE=yes", "KPROF_QUIET=TRUE", "KPROF_STRICT=on",
        "KPROF_DEBUG=lock,window", "KPROF_METRICS_TOLD=a,c", "KPROF_STATUS_FILE=/tmp/t", "KPROF_PROFILE_FROM_START=off",
        "KPROF_CUPTI_DIR=/opt/c", "KPROF_SESSION_FILE=/tmp/s", "KPROF_SECTION_FOLDER=/", "KPROF_PRINT_DETAILS=all",
        "KPROF_PRINT_METRIC_NAME=label-name", "KPROF_PRINT_UNITS=base", "KPROF_PRINT_METRIC_INSTANCES=values",
        "KPROF_APPLY_RULES=no", "KPROF_RULE=CPIStall,regex:SOL.*", "KPROF_KERNEL_NAME_BASE=mangled",
        "KPROF_KERNEL_ID=1:7:regex:f:2", "KPROF_LAUNCH_SKIP_BEFORE_MATCH=8", "KPROF_FILTER_MODE=per-gpu",
        "KPROF_DEVICES=63,0", "KPROF_DELAY=500ms", "KPROF_DURATION=2", "KPROF_TARGET_PROCESSES=application-only",
        "KPROF_TARGET_PROCESSES_FILTER=a,regex:b", "KPROF_APPLICATION=4711", "KPROF_NVTX=on",
        "KPROF_NVTX_INCLUDE=a/;[b", "KPROF_NVTX_EXCLUDE=regex:c.*/", "KPROF_NVTX_PUSH_POP_SCOPE=process",
        "KPROF_PAGE=raw", "KPROF_CSV=yes", "KPROF_PRINT_SUMMARY=per-gpu", "KPROF_TRACE_COLUMNS=a,b",
        "KPROF_PRINT_NVTX_RENAME=kernel", "KPROF_PRINT_SOURCE=sass,ptx", "KPROF_IMPORT_SOURCE=yes",
        "KPROF_SOURCE_FOLDERS=a, /b", "KPROF_PM_SAMPLING_INTERVAL=2000", "KPROF_PM_SAMPLING_BUFFER_SIZE=8M",
        "KPROF_PM_SAMPLING_MAX_PASSES=3", "KPROF_TIMELINE=on", "KPROF_HTML=/a/b.html", "KPROF_CALL_STACK=python,native",
        "KPROF_SORT=gain", "KPROF_TOP=7", "KPROF_BRIEF_ABOVE=9", "KPROF_RENAME_KERNELS=/dev/null", "KPROF_COLOR=always",
        "KPROF_REPORT_PIPE=77", "KPROF_RANGE_FILTER=yes:2:[1-3]", "KPROF_FACE=kprof", "KPROF_NULL_STDIN=on",
        "KPROF_PRELOAD_LIBRARY=libx.so", "KPROF_CHECK_EXIT_CODE=yes", "KPROF_KILL=yes", "KPROF_PRINT_FP=on",
        "KPROF_PRINT_KERNEL_BASE=mangled", "KPROF_IMPORT_SASS=no", "KPROF_DISABLE_PROFILER_START_STOP=on",
        "KPROF_WARP_SAMPLING_INTERVAL=31", "KPROF_WARP_SAMPLING_BUFFER_SIZE=2K");
    assert_string_equal(o.config, "/dev/null");
    assert_int_equal(o.sort, KP_SORT_GAIN);
    assert_int_equal(o.top, 7);
    assert_int_equal(o.brief_above, 9);
    assert_string_equal(o.rename_kernels, "/dev/null");
    assert_int_equal(o.color, KP_COLOR_ALWAYS);
    assert_int_equal(o.report_pipe, 77);
    assert_true(o.null_stdin);
    assert_string_equal(o.preload_library, "libx.so");
    assert_true(o.check_exit_code);
    assert_true(o.kill);
    assert_string_equal(o.range_filter, "yes:2:[1-3]");
    assert_true(o.print_fp);
    assert_int_equal(o.print_kernel_base, KP_PRINTED_MANGLED);
    assert_false(o.import_sass);
    assert_true(o.disable_profiler_start_stop);
    assert_string_equal(o.set, "basic");
    assert_string_equal(o.section, "Occupancy");
    assert_string_equal(o.metrics, "a,b");
    assert_string_equal(o.kernel_name, "regex:^k");
    assert_int_equal(o.launch_skip, 5);
    assert_true(o.launch_count == UINT64_MAX);
    assert_int_equal(o.kernel_name_base, KP_NAME_BASE_MANGLED);
    assert_string_equal(o.kernel_id, "1:7:regex:f:2");
    assert_int_equal(o.launch_skip_before_match, 8);
    assert_int_equal(o.filter_mode, KP_FILTER_PER_GPU);
    assert_true(o.devices == (UINT64_C(1) << 63 | 1));
    assert_int_equal(o.delay, 500000000);
    assert_int_equal(o.duration, 2000000000);
    assert_int_equal(o.target_processes, KP_TARGETS_APPLICATION);
    assert_string_equal(o.target_processes_filter, "a,regex:b");
    assert_int_equal(o.application, 4711);
    assert_int_equal(o.budget, 90000000000);
    assert_int_equal(o.fallback, KP_FALLBACK_QUICK);
    assert_int_equal(o.rotate_launches, 4);
    assert_int_equal(o.rotate_key, KP_ROTATE_BY_NVTX);
    assert_int_equal(o.save_time, 3000000000);
    assert_int_equal(o.save, KP_SAVE_CHANGES);
    assert_int_equal(o.window, 1);
    assert_int_equal(o.window_memory, 64 << 20);
    assert_false(o.window_reads);
    assert_false(o.cupti_leaves);
    assert_int_equal(o.replay_mode, KP_REPLAY_APPLICATION);
    assert_int_equal(o.app_replay_match, KP_MATCH_ALL);
    assert_int_equal(o.app_replay_mode, KP_APP_RELAXED);
    assert_true(o.replay_run == 3);
    assert_string_equal(o.replay_folder, "/tmp/r");
    assert_int_equal(o.graph_profiling, KP_GRAPHS_WHOLE);
    assert_int_equal(o.cache_control, KP_CACHES_LEFT);
    assert_int_equal(o.clock_control, KP_CLOCKS_BOOST);
    assert_int_equal(o.pm_sampling_interval, 2000);
    assert_int_equal(o.pm_sampling_buffer_size, 8 << 20);
    assert_int_equal(o.pm_sampling_max_passes, 3);
    assert_string_equal(o.log_file, "stdout");
    assert_string_equal(o.export_file, "x%p.kprof");
    assert_true(o.force_overwrite);
    assert_true(o.quiet);
    assert_true(o.strict);
    assert_int_equal(o.debug.n, 2);
    assert_int_equal(o.debug.at[0], KP_DEBUGS_LOCK);
    assert_int_equal(o.debug.at[1], KP_DEBUGS_WINDOW);
    assert_string_equal(o.metrics_told, "a,c");
    assert_string_equal(o.status_file, "/tmp/t");
    assert_false(o.profile_from_start);
    assert_true(o.nvtx);
    assert_string_equal(o.nvtx_include, "a/;[b");
    assert_string_equal(o.nvtx_exclude, "regex:c.*/");
    assert_int_equal(o.nvtx_push_pop_scope, KP_SCOPE_PROCESS);
    assert_string_equal(o.cupti_dir, "/opt/c");
    assert_string_equal(o.session_file, "/tmp/s");
    assert_string_equal(o.section_folder, "/");
    assert_int_equal(o.print_details, KP_DETAILS_ALL);
    assert_int_equal(o.print_metric_name, KP_NAMING_BOTH);
    assert_int_equal(o.print_units, KP_SCALING_BASE);
    assert_int_equal(o.print_metric_instances, KP_INSTANCES_VALUES);
    assert_false(o.apply_rules);
    assert_string_equal(o.rule, "CPIStall,regex:SOL.*");
    assert_chosen(&o.page, (const unsigned char[]){KP_PAGE_RAW}, 1);
    assert_true(o.csv);
    assert_false(o.json);
    assert_int_equal(o.print_summary, KP_GROUPING_GPU);
    assert_string_equal(o.trace_columns, "a,b");
    assert_true(o.timeline);
    assert_string_equal(o.html_file, "/a/b.html");
    assert_chosen(&o.call_stack, (const unsigned char[]){KP_CALL_STACK_PYTHON, KP_CALL_STACK_NATIVE}, 2);
    assert_int_equal(o.warp_sampling_interval, 31);
    assert_int_equal(o.warp_sampling_buffer_size, 2048);
    assert_int_equal(o.print_nvtx_rename, KP_NVTX_RENAME_KERNEL);
    assert_chosen(&o.print_source, (const unsigned char[]){KP_SOURCE_SASS, KP_SOURCE_PTX}, 2);
    assert_true(o.import_source);
    assert_string_equal(o.source_folders, "a, /b");
    kp_options_free(&o);
    o = READ("KPROF_CALL_STACK=");
    assert_chosen(&o.call_stack, (const unsigned char[]){0}, 0);
    kp_options_free(&o);
    o = READ("KPROF_JSON=yes", "KPROF_PAGE=raw, trace");
    assert_true(o.json);
    assert_chosen(&o.page, (const unsigned char[]){KP_PAGE_RAW, KP_PAGE_TRACE}, 2);
    kp_options_free(&o);
}

/* A row that was forgotten above would not be noticed there. */
static void every_row_is_tested_here(void **state)
{
    (void)state;
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    char name[KP_OPTION_NAME_MAX], quoted[KP_OPTION_NAME_MAX + 2];
    char *source = kp_test_read(kp_test_source("tests/unit/report/test_report_options.c"));
    for (size_t i = 0; i < n; i++) {
        kp_option_env_name(&rows[i], name);
        snprintf(quoted, sizeof quoted, "\"%s=", name);
        if (!strstr(source, quoted))
            fail_msg("%s is not tested: give it a value in every_field_has_its_variable", name);
        assert_true(strlen(rows[i].help) > 0);
    }
    free(source);
}

static void debug_takes_the_domains(void **state)
{
    (void)state;
    static const char *const domains[] = {
#define KP_DEBUG_DOMAIN(id, name, what) name,
#include "base/debug.def"
#undef KP_DEBUG_DOMAIN
    };
    const struct kp_option *row = kp_option_row(offsetof(struct kp_options, debug));
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        assert_string_equal(row->words[i], domains[i]);
    assert_null(row->words[sizeof domains / sizeof *domains]);
}

static void the_set_gives_way(void **state)
{
    (void)state;
    struct kp_options o = READ("KPROF_SECTION=Occupancy");
    assert_string_equal(o.set, "");
    kp_options_free(&o);
    o = READ("KPROF_METRICS=dram__bytes.sum");
    assert_string_equal(o.set, "");
    kp_options_free(&o);
    o = READ("KPROF_SET=", "KPROF_METRICS=dram__bytes.sum");
    assert_string_equal(o.set, "");
    kp_options_free(&o);
    o = READ("KPROF_METRICS=dram__bytes.sum", "KPROF_SET=basic");
    assert_string_equal(o.set, "basic");
    kp_options_free(&o);
}

/* The page of one line a launch asks for no more than it shows, unless it is told to. */
static void the_trace_chooses_what_is_collected(void **state)
{
    static const struct {
        char *env[3];
        const char *set, *metrics;
    } rows[] = {
        {{"KPROF_PAGE=trace"}, "quick", ""},
        {{"KPROF_PAGE=trace,trace"}, "quick", ""},
        {{"KPROF_PAGE=trace,details"}, "basic", ""},
        {{"KPROF_PAGE=summary"}, "basic", ""},
        {{"KPROF_PAGE=trace", "KPROF_SET=full"}, "full", ""},
        {{"KPROF_PAGE=trace", "KPROF_SECTION=Occupancy"}, "", ""},
        {{"KPROF_PAGE=trace", "KPROF_METRICS=m"}, "", "m"},
        {{"KPROF_PAGE=trace", "KPROF_TRACE_COLUMNS=gpu__time_duration.sum, lts__t_sectors.sum"}, "quick", ""},
        {{"KPROF_PAGE=trace", "KPROF_TRACE_COLUMNS=gpu__time_duration.sum,other"}, "", "gpu__time_duration.sum,other"},
        {{"KPROF_TRACE_COLUMNS=other"}, "basic", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_options o = read_options(rows[i].env);
        assert_string_equal(o.set, rows[i].set);
        assert_string_equal(o.metrics, rows[i].metrics);
        assert_int_equal(o.only_columns, strchr(rows[i].metrics, ',') != NULL);
        kp_options_free(&o);
    }
}

static void switches(void **state)
{
    static const char *const words[][2] = {{"on", "off"}, {"yes", "no"}, {"true", "false"}, {"1", "0"}};
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, "KPROF_QUIET=%s", words[i / 2][i % 2]);
        struct kp_options o = READ(entry);
        assert_int_equal(o.quiet, i % 2 == 0);
        kp_options_free(&o);
    }
}

static void sizes(void **state)
{
    static const struct {
        const char *entry;
        uint64_t bytes;
    } rows[] = {
        {"KPROF_WINDOW_MEMORY=1M", 1 << 20},
        {"KPROF_WINDOW_MEMORY=1048576", 1 << 20},
        {"KPROF_WINDOW_MEMORY=12345678", 12345678},
        {"KPROF_WINDOW_MEMORY=3000k", 3000 << 10},
        {"KPROF_WINDOW_MEMORY=3000K", 3000 << 10},
        {"KPROF_WINDOW_MEMORY=250m", 250 << 20},
        {"KPROF_WINDOW_MEMORY=0016G", UINT64_C(16) << 30},
        {"KPROF_WINDOW_MEMORY=18446744073709551615", UINT64_MAX},
        {"KPROF_WINDOW_MEMORY=17179869183G", UINT64_C(17179869183) << 30},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_options o = READ((char *)rows[i].entry);
        if (o.window_memory != rows[i].bytes)
            fail_msg("%s gave %ju", rows[i].entry, (uintmax_t)o.window_memory);
        kp_options_free(&o);
        assert_int_equal(o.window_memory, 0);
    }
}

static void times(void **state)
{
    static const struct {
        const char *entry;
        uint64_t ns;
    } rows[] = {
        {"KPROF_DELAY=0", 0},
        {"KPROF_DELAY=3", UINT64_C(3000000000)},
        {"KPROF_DELAY=3s", UINT64_C(3000000000)},
        {"KPROF_DELAY=1.5", UINT64_C(1500000000)},
        {"KPROF_DELAY=0.25s", 250000000},
        {"KPROF_DELAY=20ms", 20000000},
        {"KPROF_DELAY=0.001ms", 1000},
        {"KPROF_DELAY=0.0000000019", 1}, /* what is below is cut off */
        {"KPROF_DELAY=2m", UINT64_C(120000000000)},
        {"KPROF_DELAY=1.5m", UINT64_C(90000000000)},
        {"KPROF_DELAY=307445733m", UINT64_C(18446743980000000000)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_options o = READ((char *)rows[i].entry);
        if (o.delay != rows[i].ns)
            fail_msg("%s gave %ju", rows[i].entry, (uintmax_t)o.delay);
        kp_options_free(&o);
    }
}

/* Every message, as a reader sees it. */
static void assert_clash(char *a, char *b, const char *message)
{
    char *env[] = {a, b, NULL}, *err = NULL;
    struct kp_options o;
    assert_int_equal(kp_options_from_env(&o, env, &err), -EINVAL);
    assert_string_equal(err, message);
    assert_null(o.set);
    free(err);
}

static void values_that_do_not_go_together(void **state)
{
    (void)state;
    assert_clash("KPROF_CSV=on", "KPROF_JSON=on",
                 "csv and json exclude each other; a stored session can be printed as both, one by one");
    assert_clash("KPROF_CSV=on", "KPROF_PAGE=raw,trace",
                 "csv prints one page, not 'raw,trace'; a stored session can be printed page by page");
    assert_clash("KPROF_LOG_FILE=run.%p.kprof", "KPROF_EXPORT=run.%p.kprof",
                 "log-file and export are the same file 'run.%p.kprof'; name another for the report, such as "
                 "'run.%p.kprof.txt'");
    assert_clash("KPROF_EXPORT=run", "KPROF_LOG_FILE=.//run.kprof",
                 "log-file and export are the same file 'run.kprof'; name another for the report, such as "
                 "'run.kprof.txt'");
    assert_clash("KPROF_HTML=run", "KPROF_LOG_FILE=./run",
                 "log-file and html are the same file 'run'; name another for the report, such as 'run.txt'");
    assert_clash("KPROF_EXPORT=run.x", "KPROF_HTML=run.x",
                 "export and html are the same file 'run.x'; name another for html, such as 'run.x.html'");
    assert_clash("KPROF_EXPORT=-", "KPROF_LOG_FILE=-",
                 "export needs a file name because a session is a database; write 'run.kprof', or './-'");
    assert_clash(
        "KPROF_HTML=-", "KPROF_EXPORT=run",
        "html needs a file name because stdout is the program's; write 'run.html', or run `kprof report --html - FILE` "
        "afterwards");
    assert_int_equal(kp_options_log_target("-"), KP_LOG_TO_STDOUT);
    assert_int_equal(kp_options_log_target("./-"), KP_LOG_TO_FILE);
    struct kp_options o = READ("KPROF_LOG_FILE=stdout", "KPROF_EXPORT=stdout"); /* a stream and a file */
    kp_options_free(&o);
}

/* A session has the ending of its kind, unless its name has an extension. */
static void a_session_has_its_ending(void **state)
{
    static const char *const names[][2] = {
        {"r", "r.kprof"},
        {"r.kprof", "r.kprof"},
        {"a.b/r", "a.b/r.kprof"},
        {"r.db", "r.db"},
        {"v1.5", "v1.5.kprof"},
        {"r.%p", "r.%p.kprof"},
        {"./-", "./-.kprof"},
        {".r", ".r.kprof"},
        {"r.a-b_1", "r.a-b_1"},
        {"r.", "r..kprof"},
        {"r.%q{HOME}", "r.%q{HOME}.kprof"},
        {"folder/", "folder/"},
        {"../r", "../r.kprof"},
        {"r.x.%i", "r.x.%i.kprof"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *entry = kp_asprintf("KPROF_EXPORT=%s", names[i][0]);
        struct kp_options o = READ(entry);
        assert_string_equal(o.export_file, names[i][1]);
        kp_options_free(&o);
        free(entry);
    }
}

static void errors(void **state)
{
    static const char *const entries[] = {
        "KPROF_KERNELNAME=x",
        "KPROF_LAUNCHSKIP=1",
        "KPROF_SECTIONS=Occupancy",
        "KPROF_LUNCH_CUONT=3",
        "KPROF_UNHEARD_OF=1",
        "KPROF_=1",
        "KPROF_SET=bassic",
        "KPROF_SET=everything",
        "KPROF_SECTION=Ocupancy",
        "KPROF_SECTION=regex:(",
        "KPROF_SECTION=regex:None",
        "KPROF_RULE=CPIStal",
        "KPROF_RULE=regex:None",
        "KPROF_APPLY_RULES=nope",
        "KPROF_KERNEL_NAME=regex:[a",
        "KPROF_METRICS=gpu__time_duration,regex:[a",
        "KPROF_LAUNCH_SKIP=five",
        "KPROF_LAUNCH_SKIP=-1",
        "KPROF_LAUNCH_SKIP= 1",
        "KPROF_LAUNCH_COUNT=1k",
        "KPROF_LAUNCH_COUNT=18446744073709551616",
        "KPROF_KERNEL_NAME_BASE=mangeld",
        "KPROF_KERNEL_ID=foo",
        "KPROF_KERNEL_ID=::foo",
        "KPROF_KERNEL_ID=main:7:foo:1",
        "KPROF_KERNEL_ID=:stream:foo:1",
        "KPROF_KERNEL_ID=::regex:foo",
        "KPROF_KERNEL_ID=::regex:(:",
        "KPROF_KERNEL_ID=:(::",
        "KPROF_KERNEL_ID=1 2:::",
        "KPROF_KERNEL_ID=::foo:1,0",
        "KPROF_KERNEL_ID=::foo:1-3",
        "KPROF_KERNEL_ID=99999999999999999999:::",
        "KPROF_LAUNCH_SKIP_BEFORE_MATCH=x",
        "KPROF_FILTER_MODE=per-device",
        "KPROF_DEVICES=0-3",
        "KPROF_DEVICES=gpu0",
        "KPROF_DEVICES=64",
        "KPROF_DELAY=5h",
        "KPROF_DELAY=ms",
        "KPROF_DELAY=-1",
        "KPROF_DELAY=1.",
        "KPROF_DELAY=1,5",
        "KPROF_DURATION=999999999999",
        "KPROF_TARGET_PROCESSES=applicaton-only",
        "KPROF_TARGET_PROCESSES_FILTER=python,regex:[",
        "KPROF_DEVICE=1",
        "KPROF_WINDOW=0",
        "KPROF_WINDOW=1K",
        "KPROF_WINDOW_MEMORY=0",
        "KPROF_WINDOW_MEMORY=1048575",
        "KPROF_WINDOW_MEMORY=1023K",
        "KPROF_WINDOW_MEMORY=lots",
        "KPROF_WINDOW_MEMORY=-1",
        "KPROF_WINDOW_MEMORY= 1",
        "KPROF_WINDOW_MEMORY=1GB",
        "KPROF_WINDOW_MEMORY=1 G",
        "KPROF_WINDOW_MEMORY=1T",
        "KPROF_WINDOW_MEMORY=M",
        "KPROF_WINDOW_MEMORY=1.5G",
        "KPROF_WINDOW_MEMORY=17179869184G",
        "KPROF_WINDOW_MEMORY=18446744073709551616",
        "KPROF_WINDOW_MEMORY=18446744073709551616K",
        "KPROF_PROFILE_FROM_START=maybe",
        "KPROF_NVTX=maybe",
        "KPROF_NVTX_INCLUDE=a/;b//c",
        "KPROF_NVTX_EXCLUDE=a[0]/",
        "KPROF_NVTX_PUSH_POP_SCOPE=proces",
        "KPROF_CACHE_CONTROL=nnoe",
        "KPROF_CACHE_CONTROL=sometimes",
        "KPROF_CLOCK_CONTROL=bsae",
        "KPROF_PRINT_KERNEL_BASE=demangeld",
        "KPROF_FACE=nsys",
        "KPROF_RANGE_FILTER=2",
        "KPROF_RANGE_FILTER=maybe:2:",
        "KPROF_RANGE_FILTER=:[:",
        "KPROF_APP_REPLAY_BUFFER=file",
        "KPROF_REPLAY_MODE=kernels",
        "KPROF_REPLAY_MODE=app-ranges",
        "KPROF_APP_REPLAY_MATCH=names",
        "KPROF_APP_REPLAY_MODE=ballanced",
        "KPROF_ROTATE_LAUNCHES=0",
        "KPROF_CALL_STACK_TYPE=native",
        "KPROF_QUIET=onn",
        "KPROF_QUIET=2",
        "KPROF_QUIET=perhaps",
        "KPROF_SECTION_FOLDER=/nowhere",
        "KPROF_PRINT_DETAILS=heder",
        "KPROF_PAGE=detials",
        "KPROF_PAGE=raw,everything",
        "KPROF_PAGE=,",
        "KPROF_METRICS=,",
        "KPROF_METRICS= ",
        "KPROF_SECTION=, ,",
        "KPROF_RULE=,",
        "KPROF_DEVICES=,",
        "KPROF_TARGET_PROCESSES_FILTER=,",
        "KPROF_TRACE_COLUMNS=,",
        "KPROF_PRINT_SUMMARY=per-kernle",
        "KPROF_EXPORT=out-%z",
        "KPROF_EXPORT=out-%",
        "KPROF_LOG_FILE=%q{KP_TEST_UNSET}",
        "KPROF_LOG_FILE=%qHOME",
        "KPROF_SESSION_FILE=%q{}",
        "KPROF_WARP_SAMPLING_INTERVAL=32",
        "KPROF_WARP_SAMPLING_INTERVAL=-1",
        "KPROF_WARP_SAMPLING_INTERVAL=Auto",
        "KPROF_WARP_SAMPLING_INTERVAL=5x",
        "KPROF_WARP_SAMPLING_INTERVAL=18446744073709551616",
    };
    (void)state;
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char *env[] = {"KPROF_LAUNCH_SKIP=1", (char *)entries[i], NULL}, *err = NULL;
        struct kp_options o;
        assert_int_equal(kp_options_from_env(&o, env, &err), -EINVAL);
        assert_null(o.set);
        out.write(out.arg, err, strlen(err));
        out.write(out.arg, "\n", 1);
        free(err);
    }
    kp_test_golden(t.text, "tests/golden/report_option_errors.txt");
    free(t.text);
}

/* Asked of an environment before anything else is. */
static void nvtx_is_wanted_by_a_switch_or_a_filter(void **state)
{
    static const struct {
        char *env[3];
        bool wanted;
    } cases[] = {
        {{NULL}, false},
        {{"HOME=/root", "KPROF_SET=full"}, false},
        {{"KPROF_NVTX=on"}, true},
        {{"KPROF_NVTX=Yes"}, true},
        {{"KPROF_NVTX=off"}, false},
        {{"KPROF_NVTX=0"}, false},
        {{"KPROF_NVTX="}, false},
        {{"KPROF_NVTX"}, false},
        {{"KPROF_NVTX=maybe"}, false},
        {{"KPROF_NVTXX=on"}, false},
        {{"NVTX=on", "XKPROF_NVTX=on"}, false},
        {{"KPROF_NVTX_INCLUDE=a/"}, true},
        {{"KPROF_NVTX_EXCLUDE=a/"}, true},
        {{"KPROF_NVTX_INCLUDE=", "KPROF_NVTX_EXCLUDE="}, false},
        {{"KPROF_NVTX=off", "KPROF_NVTX_EXCLUDE=a/"}, true},
        {{"KPROF_NVTX_EXCLUDE=a/", "KPROF_NVTX=off"}, true},
        {{"KPROF_NVTX_PUSH_POP_SCOPE=process"}, false},
        {{"KPROF_PRINT_NVTX_RENAME=kernel"}, true},
        {{"KPROF_PRINT_NVTX_RENAME=none"}, false},
        {{"KPROF_PRINT_SUMMARY=per-nvtx"}, true},
        {{"KPROF_PRINT_SUMMARY=per-kernel"}, false},
        {{"KPROF_ROTATE_KEY=nvtx"}, true},
        {{"KPROF_ROTATE_KEY=shape"}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kp_options_want_nvtx((char *const *)cases[i].env) != cases[i].wanted)
            fail_msg("%s", cases[i].env[0]);
    struct kp_options o = READ("KPROF_NVTX=off", "KPROF_PRINT_SUMMARY=per-nvtx");
    assert_true(o.nvtx);
    kp_options_free(&o);
}

/* What a folder brings can be named before the folder is, and the folder by a path that is not absolute. */
static void a_section_folder_comes_first(void **state)
{
    (void)state;
    const char *folder = kp_test_folder();
    char entry[512], cwd[512], *err = NULL;
    struct kp_options o;
    snprintf(entry, sizeof entry, "%s/mine.section", folder);
    FILE *f = fopen(entry, "we");
    assert_non_null(f);
    fputs("Identifier: 'OfMine' Sets { Identifier: 'mine' } Header { Metrics { Name: 'sm__cycles_active.sum' } }", f);
    fclose(f);
    char *const early[] = {"KPROF_SET=mine", "KPROF_SECTION=OfMine", NULL};
    assert_int_equal(kp_options_from_env(&o, early, &err), -EINVAL);
    assert_non_null(strstr(err, "KPROF_SET: unknown set 'mine'"));
    free(err);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(folder), 0);
    o = READ("KPROF_SET=mine", "KPROF_SECTION=OfMine", "KPROF_SECTION_FOLDER=./.");
    assert_int_equal(chdir(cwd), 0);
    assert_string_equal(o.set, "mine");
    char *whole = realpath(folder, NULL);
    assert_string_equal(o.section_folder, whole);
    free(whole);
    kp_options_free(&o);
    kp_test_remove_folder(folder);
}

static void nearest(void **state)
{
    static const char *const words[] = {"basic", "detailed", "full", "roofline", NULL};
    (void)state;
    assert_string_equal(kp_nearest("basic", words), "basic");
    assert_string_equal(kp_nearest("BASIC", words), "basic");
    assert_string_equal(kp_nearest("detaled", words), "detailed");
    assert_string_equal(kp_nearest("ful", words), "full");
    assert_string_equal(kp_nearest("rooflnie", words), "roofline"); /* swapped letters count once */
    assert_string_equal(kp_nearest("abscc", words), "basic");
    assert_string_equal(kp_nearest("Ro", words), "roofline"); /* its beginning */
    assert_null(kp_nearest("r", words));
    assert_null(kp_nearest("ab", (const char *const[]){"abcdefgh", "abstract", NULL})); /* of two */
    assert_null(kp_nearest("nvlink", words));
    assert_null(kp_nearest("x", words));
    assert_null(kp_nearest("", words));
    char huge[1000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_null(kp_nearest(huge, words));
}

static void assert_expands(const char *pattern, const char *expected)
{
    char *path = NULL, *err = NULL;
    assert_int_equal(kp_expand_path(pattern, 4711, "node7", &path, &err), 0);
    assert_string_equal(path, expected);
    assert_null(err);
    free(path);
}

static void paths(void **state)
{
    (void)state;
    setenv("KP_TEST_WORD", "w%p", 1);
    assert_expands("plain", "plain");
    assert_expands("", "");
    assert_expands("a-%p.%h/%%p", "a-4711.node7/%p");
    assert_expands("%q{KP_TEST_WORD}x", "w%px"); /* what the environment gives is not expanded again */
    char *path = NULL, *err = NULL;
    assert_int_equal(kp_expand_path("a%p%y", 1, "h", &path, &err), -EINVAL);
    assert_null(path);
    assert_string_equal(err, "unknown %y in 'a%p%y'; valid: %p %h %q{NAME} %i %r %%");
    free(err);
}

static void ranks(void **state)
{
    static const char *const names[] = {"RANK",        "SLURM_PROCID",        "FLUX_TASK_RANK",
                                        "PALS_RANKID", "MV2_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK",   "OMPI_COMM_WORLD_RANK"};
    enum { N = sizeof names / sizeof *names };
    (void)state;
    unsetenv("WORLD_SIZE");
    for (size_t i = 0; i < N; i++)
        unsetenv(names[i]);
    assert_expands("r%r", "r0");
    setenv("WORLD_SIZE", "16", 1);
    assert_expands("r%r", "r0");
    unsetenv("WORLD_SIZE");
    for (size_t i = 0; i < N; i++) { /* each later one goes before those already set */
        char value[8], expected[8];
        snprintf(value, sizeof value, "%zu", i + 1);
        snprintf(expected, sizeof expected, "r%zu", i + 1);
        setenv(names[i], value, 1);
        assert_expands("r%r", expected);
    }
    setenv("WORLD_SIZE", "16", 1); /* torchrun below srun, or in a batch job */
    assert_expands("r%r", "r1");
    setenv("RANK", "", 1);
    assert_expands("r%r", "r8");
    unsetenv("WORLD_SIZE");
    for (size_t i = 0; i < N; i++)
        unsetenv(names[i]);
}

static void lowest_unused_number(void **state)
{
    (void)state;
    const char *folder = kp_test_folder();
    char pattern[512], expected[512];
    snprintf(pattern, sizeof pattern, "%s/f%%i-%%i", folder);
    for (int i = 1; i < 13; i++) {
        snprintf(expected, sizeof expected, "%s/f%d-%d", folder, i, i);
        assert_expands(pattern, expected);
        FILE *f = fopen(expected, "we");
        assert_non_null(f);
        fclose(f);
    }
    snprintf(expected, sizeof expected, "%s/f3-3", folder);
    unlink(expected);
    assert_expands(pattern, expected);
    kp_test_remove_folder(folder);
}

/* ---- a file of options ---- */

static char config_variable[PATH_MAX];

/* Writes the file; returns KPROF_CONFIG=path. */
static char *config(const char *text)
{
    static char folder[PATH_MAX / 2];
    if (!*folder)
        snprintf(folder, sizeof folder, "%s", kp_test_folder());
    snprintf(config_variable, sizeof config_variable, "KPROF_CONFIG=%s/options", folder);
    FILE *f = fopen(strchr(config_variable, '=') + 1, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return config_variable;
}

static void a_file_sets_what_the_environment_does_not(void **state)
{
    (void)state;
    char *file = config("# of the team\n\n  launch-skip = 3\nKPROF_SET=full\nprint-units =base \r\n"
                        "metrics= a,b\nlaunch-count=4\nlaunch-count=5\n\tquiet =\nsource-folders = a b, c");
    struct kp_options o = READ(file, "KPROF_SET=detailed", "KPROF_METRICS=");
    assert_string_equal(o.set, "detailed"); /* the environment's */
    assert_int_equal(o.launch_skip, 3);
    assert_int_equal(o.launch_count, 5); /* the last one */
    assert_int_equal(o.print_units, KP_SCALING_BASE);
    assert_string_equal(o.metrics, "a,b"); /* an empty variable is none */
    assert_false(o.quiet);
    assert_string_equal(o.source_folders, "a b, c");
    assert_string_equal(o.config, strchr(file, '=') + 1);
    assert_false(o.nvtx);
    kp_options_free(&o);
    o = READ(config(""));
    assert_string_equal(o.set, "basic");
    kp_options_free(&o);
}

static void a_file_can_want_nvtx(void **state)
{
    (void)state;
    assert_true(kp_options_want_nvtx((char *const[]){config("nvtx-include = step/"), NULL}));
    struct kp_options o = READ(config_variable);
    assert_true(o.nvtx);
    kp_options_free(&o);
    assert_false(kp_options_want_nvtx((char *const[]){config("set = full"), NULL}));
    assert_false(kp_options_want_nvtx((char *const[]){"KPROF_CONFIG=/no/such/file", NULL}));
}

static void one_value_of_file_or_environment(void **state)
{
    (void)state;
    char *file = config("set = full\n"), *value;
    assert_string_equal(value = kp_options_value((char *const[]){file, NULL}, "KPROF_SET"), "full");
    free(value);
    assert_string_equal(value = kp_options_value((char *const[]){"KPROF_SET=x", file, NULL}, "KPROF_SET"), "x");
    free(value);
    assert_null(kp_options_value((char *const[]){file, NULL}, "KPROF_SETS"));
    assert_null(kp_options_value((char *const[]){"KPROF_CONFIG=/no/such/file", NULL}, "KPROF_SET"));
}

/* Neither waited for nor read without end. */
static void what_is_no_file_of_options(void **state)
{
    struct kp_options o;
    char *err;
    (void)state;
    const char *path = strchr(config("set = full"), '=') + 1;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(kp_options_from_env(&o, (char *const[]){config_variable, NULL}, &err), -EINVAL);
    assert_non_null(strstr(err, "options: a pipe cannot be read by every process"));
    free(err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kp_options_from_env(&o, (char *const[]){"KPROF_CONFIG=/dev/zero", NULL}, &err), -EINVAL);
    assert_string_equal(err, "cannot read the options in /dev/zero: it is longer than 1 MiB");
    free(err);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fwrite("se\0t = full\n", 1, 12, f);
    fclose(f);
    assert_int_equal(kp_options_from_env(&o, (char *const[]){config_variable, NULL}, &err), -EINVAL);
    assert_non_null(strstr(err, "options:1: the line is not NAME = VALUE"));
    free(err);
}

/* Every process of a program reads the file, so that many names must not cost much. */
static void a_file_of_very_many_names(void **state)
{
    enum { NAMES = 20000, WIDTH = sizeof "n00000=00000\n" - 1 };
    char *text = malloc(2 * NAMES * WIDTH + 1), *err, expected[64];
    struct kp_config_file c;
    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 2 * NAMES; i++) /* each twice */
        snprintf(text + i * WIDTH, WIDTH + 1, "n%05d=%05d\n", i % NAMES, i);
    const char *path = strchr(config(text), '=') + 1;
    clock_t begin = clock();
    assert_int_equal(kp_options_file_read(path, &c, &err), 0);
    assert_true(clock() - begin < CLOCKS_PER_SEC); /* of the processor's time; pair by pair it takes ten times that */
    assert_int_equal(c.n, NAMES);
    for (int i = 0; i < NAMES; i++) {
        snprintf(expected, sizeof expected, "KPROF_N%05d=%05d", i, NAMES + i);
        assert_string_equal(c.entries[i], expected);
        assert_int_equal(c.lines[i], NAMES + i + 1);
    }
    kp_options_file_free(&c);
    free(text);
}

static void what_is_wrong_in_a_file_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"\nset=bsic", "options:2: KPROF_SET: unknown set 'bsic'; did you mean 'basic'?"},
        {"launch-skp = 1", "options:1: unknown KPROF_LAUNCH_SKP; did you mean KPROF_LAUNCH_SKIP?"},
        {"# x\nlaunch-skip 1", "options:2: the line is not NAME = VALUE"},
        {"= 1", "options:1: the line is not NAME = VALUE"},
        {"set", "options:1: the line is not NAME = VALUE"},
        {"config = other", "options:1: a file of options cannot name another"},
        {"csv = yes\njson = yes", "csv and json exclude each other"},
    };
    struct kp_options o;
    char *err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(kp_options_from_env(&o, (char *const[]){config(rows[i].text), NULL}, &err), -EINVAL);
        if (!strstr(err, rows[i].says))
            fail_msg("%s", err);
        free(err);
    }
    assert_int_equal(kp_options_from_env(&o, (char *const[]){"KPROF_CONFIG=/no/such/file", NULL}, &err), -EINVAL);
    assert_string_equal(err, "cannot read the options in /no/such/file: No such file or directory");
    free(err);
    assert_int_equal(kp_options_from_env(&o, (char *const[]){"KPROF_CONFIG=/", NULL}, &err), -EINVAL);
    assert_string_equal(err, "cannot read the options in /: Is a directory");
    free(err);
    char *slash = strrchr(config_variable, '/');
    *slash = '\0';
    kp_test_remove_folder(strchr(config_variable, '=') + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(the_face_of_ncu_is_defaults),
        cmocka_unit_test(every_field_has_its_variable),
        cmocka_unit_test(every_row_is_tested_here),
        cmocka_unit_test(debug_takes_the_domains),
        cmocka_unit_test(the_set_gives_way),
        cmocka_unit_test(the_trace_chooses_what_is_collected),
        cmocka_unit_test(values_that_do_not_go_together),
        cmocka_unit_test(a_session_has_its_ending),
        cmocka_unit_test(switches),
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(errors),
        cmocka_unit_test(nvtx_is_wanted_by_a_switch_or_a_filter),
        cmocka_unit_test(a_section_folder_comes_first),
        cmocka_unit_test(nearest),
        cmocka_unit_test(paths),
        cmocka_unit_test(ranks),
        cmocka_unit_test(lowest_unused_number),
        cmocka_unit_test(a_file_sets_what_the_environment_does_not),
        cmocka_unit_test(a_file_can_want_nvtx),
        cmocka_unit_test(one_value_of_file_or_environment),
        cmocka_unit_test(what_is_no_file_of_options),
        cmocka_unit_test(a_file_of_very_many_names),
        cmocka_unit_test(what_is_wrong_in_a_file_is_said_with_its_line), /* removes the files */
    };
    return cmocka_run_group_tests_name("report/options", tests, NULL, NULL);
}
