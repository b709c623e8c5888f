/* `kprof report` with options: what it prints is what the page is with the display that they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/judge/rules.h"
#include "report/pages/page.h"
#include "report/store/store.h"
#include "tests/support/report_support.h"
#include "tests/support/rules_support.h"

static char folder[PATH_MAX / 4], session[PATH_MAX / 2], command[PATH_MAX];

static int write_session(void **state)
{
    struct kp_recording rec = kp_test_recording();
    struct kp_store *s = NULL;
    char *err = NULL;
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    snprintf(session, sizeof session, "%s/done.kprof", folder);
    snprintf(command, sizeof command, "%s", kp_test_build("kprof"));
    assert_int_equal(kp_store_create(session, false, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &rec.session, &err), 0);
    assert_int_equal(kp_store_put_result(s, &rec.results[0], &err), 0);
    kp_store_close(s);
    kp_test_recording_free(&rec);
    return 0;
}

static int remove_session(void **state)
{
    (void)state;
    kp_test_remove_folder(folder);
    return 0;
}

static const char *inside(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Runs the command with the environment variable `env` (NULL = none); returns its exit status, and its outputs. */
static int run(char *const *argv, const char *env, char **out, char **err)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        dup2(open(inside("out"), O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
        dup2(open(inside("err"), O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
        if (env)
            putenv((char *)env);
        execv(command, argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    *out = kp_test_read(inside("out"));
    *err = kp_test_read(inside("err"));
    return WEXITSTATUS(status);
}

#define ARGS(...) ((char *[]){command, __VA_ARGS__, NULL})

static void assert_shows(const struct kp_display *d, const char *env, char *const *argv)
{
    struct kp_test_text page = {0};
    struct kp_sink sink = kp_test_sink(&page);
    struct kp_store *s = NULL;
    char *err = NULL, *out;
    assert_int_equal(kp_store_open(session, &s, &err), 0);
    assert_int_equal(kp_page_print_store(&sink, d, s, &err), 0);
    kp_store_close(s);
    int status = run(argv, env, &out, &err);
    assert_string_equal(err, "");
    assert_int_equal(status, 0);
    assert_string_equal(out, page.text);
    free(page.text);
    free(out);
    free(err);
}

static void print_options_are_flags_or_environment(void **state)
{
    static const struct kp_display plain = {.rules = KP_RULES_ALL},
                                   names = {.naming = KP_NAMING_NAME, .rules = KP_RULES_ALL},
                                   both = {.naming = KP_NAMING_BOTH, .rules = KP_RULES_ALL},
                                   base = {.base_units = true, .naming = KP_NAMING_NAME, .rules = KP_RULES_ALL},
                                   body = {.details = KP_DETAILS_BODY, .rules = KP_RULES_ALL}, mute = {.rules = 0};
    (void)state;
    assert_shows(&plain, NULL, ARGS("report", session));
    assert_shows(&names, NULL, ARGS("report", "--print-metric-name", "name", session));
    assert_shows(&both, "KPROF_PRINT_METRIC_NAME=label-name", ARGS("report", session));
    assert_shows(&base, "KPROF_PRINT_METRIC_NAME=label",
                 ARGS("report", session, "--print-units=base", "--print-metric-name=name"));
    assert_shows(&body, NULL, ARGS("--print-details", "body", "report", session));
    assert_shows(&mute, NULL, ARGS("report", "--apply-rules", "no", session));
    assert_shows(&mute, "KPROF_APPLY_RULES=no", ARGS("report", session));
}

static void what_is_shown_can_be_chosen(void **state)
{
    static const struct kp_display section = {.rules = KP_RULES_ALL, .choose = true, .sections = "Occupancy"},
                                   metrics = {.rules = KP_RULES_ALL,
                                              .choose = true,
                                              .metrics = "launch__grid_size,regex:^sm__"},
                                   several = {.rules = KP_RULES_ALL,
                                              .choose = true,
                                              .set = "quick",
                                              .sections = "LaunchStats",
                                              .base_units = true};
    (void)state;
    assert_shows(&section, NULL, ARGS("report", "--section", "Occupancy", session));
    assert_shows(&metrics, "KPROF_METRICS=launch__grid_size,regex:^sm__", ARGS("report", session));
    assert_shows(&several, "KPROF_SET=quick",
                 ARGS("report", "--print-units", "base", "--section=LaunchStats", session));
}

/* Counts how often a text has a word. */
static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* What shows metrics without their sections shows the chosen ones alone; of sections, all that these show. */
static void pages_of_metrics_show_the_chosen_ones(void **state)
{
    static const struct {
        const char *arguments[6], *has[3], *lacks;
    } cases[] = {
        {{"--page", "raw", "--metrics", "launch__grid_size"}, {"launch__grid_size"}, "launch__block_size"},
        {{"--page", "raw", "--metrics", "regex:^launch__grid,launch__block_size"},
         {"launch__grid_size", "launch__block_size"},
         "gpu__time_duration"},
        {{"--page", "raw", "--csv", "--metrics", "launch__grid_size"},
         {"\"launch__grid_size\"\n"},
         "launch__block_size"},
        {{"--page", "raw", "--section", "LaunchStats"},
         {"launch__grid_size", "launch__block_size"},
         "gpu__time_duration"},
        {{"--page", "raw", "--csv", "--section", "LaunchStats", "--metrics=gpu__time_duration.sum"},
         {"launch__grid_size", "gpu__time_duration"},
         "smsp__cycles_elapsed"},
        {{"--page", "raw", "--print-summary", "per-gpu", "--metrics", "launch__grid_size"},
         {"launch__grid_size"},
         "launch__block_size"},
        {{"--json", "--metrics", "launch__grid_size"}, {"\"launch__grid_size\""}, "\"launch__block_size\""},
        {{"--json", "--section", "LaunchStats"},
         {"\"launch__grid_size\"", "\"launch__block_size\""},
         "\"smsp__cycles_elapsed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *a = cases[i].arguments;
        char *out, *err;
        assert_int_equal(run(ARGS("report", session, (char *)a[0], (char *)a[1], (char *)a[2], (char *)a[3],
                                  (char *)a[4], (char *)a[5]),
                             NULL, &out, &err),
                         0);
        assert_string_equal(err, "");
        for (size_t j = 0; j < 3 && cases[i].has[j]; j++)
            if (count(out, cases[i].has[j]) != 1)
                fail_msg("case %zu: %s is there %zu times", i, cases[i].has[j], count(out, cases[i].has[j]));
        if (strstr(out, cases[i].lacks))
            fail_msg("case %zu has %s", i, cases[i].lacks);
        free(out);
        free(err);
    }
}

/* What is asked for and not in the session is told, once. Where nothing of it is there, so that the page would be
 * empty, nothing is shown, and the status tells. */
static void what_the_session_lacks_is_told(void **state)
{
    static const struct {
        char *option, *value;
        const char *err;
    } cases[] = {
        {"--metrics", "sm__cycles_activ", "did you mean 'sm__cycles_active'?"},
        {"--metrics", "sm__cycles_active.avgg", "did you mean 'sm__cycles_active.avg'?"},
        {"--metrics", "group:memory_chrt", "did you mean 'group:memory_chart'?"},
        {"--metrics", "breakdown:sm__throughput", "the session has nothing of 'breakdown:sm__throughput'"},
        {"--metrics", "pmsampling:sm__cycles_active.avg", "nothing of 'pmsampling:sm__cycles_active.avg'\n"},
        {"--trace-columns", "sm__cycles_active.agv",
         "--trace-columns: the session has nothing of "
         "'sm__cycles_active.agv'; did you mean 'sm__cycles_active.avg'?"},
        {"--trace-columns", "sm__cycles_active.avg,group:memory_chart", "nothing of 'group:memory_chart'\n"},
        {"--metrics", "regex:^nothing$", "the session has nothing of 'regex:^nothing$'"},
        {"--metrics", "zebra", "the session has nothing of 'zebra'; the page raw shows what it has"},
        {"--section", "SchedulerStats", "SchedulerStats was not collected in this session; it has SpeedOfLight,"},
        {"--section", "PmSampling", "PmSampling was not collected in this session; it has SpeedOfLight,"},
        {"--section", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis was not collected in this session; it has"},
        {"--section", "SpeedOfLight_RooflineChart,SourceCounters",
         "SpeedOfLight_RooflineChart, SourceCounters were not collected in this session; it has"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out, *err;
        bool trace = strstr(cases[i].option, "trace");
        assert_int_equal(
            run(ARGS("report", "--page", trace ? "trace" : "details", cases[i].option, cases[i].value, session), NULL,
                &out, &err),
            trace ? 0 : 2);
        const char *second = strchr(err, '\n') + 1;
        if (strncmp(err, "==WARNING== ", 12) || !strstr(err, cases[i].err))
            fail_msg("%s %s: %s", cases[i].option, cases[i].value, err);
        if (trace) {
            assert_string_equal(second, "");
            assert_non_null(strstr(out, "==KPROF== "));
        } else {
            assert_non_null(strstr(second, "==ERROR== "));
            assert_non_null(strstr(second, " contains none of the requested sections or metrics\n"));
            assert_string_equal(out, "");
        }
        free(out);
        free(err);
    }
}

/* What is there beside it is shown. Where nothing of the metrics is, sections that are do not hide it. */
static void what_else_was_chosen_is_shown(void **state)
{
    static const struct {
        const char *metrics, *section;
        int status;
    } cases[] = {
        {"launch__grid_size,sm__cycles_activ", NULL, 0},
        {"sm__cycles_activ", "LaunchStats", 2},
        {"launch__grid_size", "SchedulerStats", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out, *err;
        char *section = (char *)cases[i].section;
        assert_int_equal(run(section
                                 ? ARGS("report", "--metrics", (char *)cases[i].metrics, "--section", section, session)
                                 : ARGS("report", "--metrics", (char *)cases[i].metrics, session),
                             NULL, &out, &err),
                         cases[i].status);
        assert_memory_equal(err, "==WARNING== ", 12);
        assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
        assert_non_null(strstr(out, cases[i].status ? "Grid Size" : "launch__grid_size"));
        assert_null(strstr(out, "Scheduler Statistics"));
        free(out);
        free(err);
    }
}

/* The lines of a report that begin so, with those below them that go on; malloc'ed. */
static char *lines_of(const char *text, const char *start, const char *more)
{
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink to = kp_test_sink(&t);
    bool within = false;
    for (size_t len; *text; text += len) {
        len = strcspn(text, "\n") + 1;
        within = !strncmp(text, start, strlen(start)) || (within && !strncmp(text, more, strlen(more)));
        if (within)
            to.write(to.arg, text, len);
    }
    return t.text;
}

/* A gain is the launch's, whichever of its sections are shown. */
static void gains_do_not_depend_on_what_is_shown(void **state)
{
    static const struct {
        const char *start, *more;
    } of[] = {{"    Gains: ", "           "}, {"==KPROF== Fix first: ", "                     "}};
    struct kp_recording rec = kp_test_rules_recording();
    struct kp_store *s = NULL;
    char *all, *part, *err, path[PATH_MAX];
    (void)state;
    free(rec.session.set);
    rec.session.set = kp_strdup("full");
    snprintf(path, sizeof path, "%s", inside("gains.kprof"));
    assert_int_equal(kp_store_create(path, false, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &rec.session, &err), 0);
    assert_int_equal(kp_store_put_result(s, &rec.results[0], &err), 0);
    kp_store_close(s);
    kp_test_recording_free(&rec);
    assert_int_equal(run(ARGS("report", path), NULL, &all, &err), 0);
    free(err);
    assert_int_equal(run(ARGS("report", "--section", "LaunchStats", path), NULL, &part, &err), 0);
    free(err);
    unlink(path);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *whole = lines_of(all, of[i].start, of[i].more), *shown = lines_of(part, of[i].start, of[i].more);
        assert_true(strlen(whole) > strlen(of[i].start));
        assert_string_equal(shown, whole);
        free(whole);
        free(shown);
    }
    assert_null(strstr(part, "    OPT   "));
    free(all);
    free(part);
}

/* The folder's notes are told, and its definitions hold for what was stored before them. */
static void section_files_hold_for_stored_sessions(void **state)
{
    char *out, *err;
    (void)state;
    FILE *f = fopen(inside("x.section"), "we");
    assert_non_null(f);
    fputs("Identifier: 'X'\nHeadr { }\nHeader { Metrics { Label: 'Twice' Name: 'twice' } }\n"
          "MetricDefinitions { MetricDefinitions { Name: 'twice' Expression: 'launch__grid_size * 2' } }\n",
          f);
    fclose(f);
    assert_int_equal(run(ARGS("report", "--section-folder", folder, "--section", "X", session), NULL, &out, &err), 0);
    assert_non_null(
        strstr(err, "==WARNING== ignored in section files: 'Headr' at x.section:2:1 (did you mean 'Header'?)"));
    assert_non_null(strstr(out, "Twice"));
    assert_null(strstr(out, "n/a"));
    free(out);
    free(err);
    unlink(inside("x.section"));
}

static size_t count_launches(const char *text)
{
    size_t n = 0;
    for (; (text = strstr(text, ", CC ")); text++)
        n++;
    return n;
}

/* As when profiling: by the base name, and of those that match. */
static char renames[PATH_MAX];

static void launches_can_be_chosen(void **state)
{
    static const struct {
        const char *arguments[6];
        size_t launches;
        const char *said; /* where none is left; beside data, if it is */
    } cases[] = {
        {{"-c", "2"}, 2, NULL},
        {{"-s", "1"}, 3, NULL},
        {{"-s", "3", "-c", "2"}, 1, NULL},
        {{"-k", "stream_triad"}, 2, NULL},
        {{"--kernel-name=regex:^fp64"}, 1, NULL},
        {{"-k", "stream_triad", "--launch-skip", "1"}, 1, NULL},
        {{"-k", "stream_tria"},
         0,
         "matches 'stream_tria' (kernel-name); did you mean 'stream_triad' or 'regex:stream_tria'?\n"},
        {{"-k", "regex:^triad"}, 0, "matches 'regex:^triad' (kernel-name).\n"},
        {{"-k", "stream_triad", "-s", "2"}, 0, "2 of this session match, but all come before"},
        {{"-k", "My Triad", "--rename-kernels", renames}, 2, NULL},
        {{"-s", "99"}, 0, "4 of this session match, but all come before"},
        {{"-s", "99", "--page", "raw", "--csv"}, 0, "4 of this session match"},
    };
    static const char *const symbols[] = {"_Z12stream_triadPf", "_Z10fp64_boundPd", "", "_Z9wmma_gemmPf"};
    struct kp_recording rec = kp_test_recording_of("tests/golden/h200_bodies.tsv");
    struct kp_store *s = NULL;
    char *err = NULL, *out, path[PATH_MAX];
    (void)state;
    snprintf(renames, sizeof renames, "%s", inside("renames.yaml"));
    FILE *f = fopen(renames, "we");
    assert_non_null(f);
    fputs("- Original: regex:stream_triad\n- Renamed: My Triad\n", f);
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s", inside("many.kprof"));
    assert_int_equal(kp_store_create(path, false, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &rec.session, &err), 0);
    for (size_t i = 0; i < 4; i++) { /* the third is one more of the first */
        struct kp_launch_info *l = &rec.results[i == 2 ? 0 : i].launch;
        l->id = i;
        if (i != 2) {
            free(l->mangled);
            l->mangled = kp_strdup(symbols[i]);
        }
        assert_int_equal(kp_store_put_result(s, &rec.results[i == 2 ? 0 : i], &err), 0);
    }
    kp_store_close(s);
    kp_test_recording_free(&rec);
    setenv("KPROF_BRIEF_ABOVE", "0", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[10] = {command, "report", path};
        for (size_t k = 0; k < 6; k++)
            argv[3 + k] = (char *)cases[i].arguments[k];
        assert_int_equal(run(argv, NULL, &out, &err), cases[i].launches ? 0 : 2);
        assert_int_equal(count_launches(out), cases[i].launches);
        assert_null(strstr(cases[i].launches ? out : "", "No launch is shown"));
        bool data = !strncmp(out, "\"ID\"", 4);
        char last[160];
        snprintf(last, sizeof last, "==KPROF== Shown above: the %zu of 4 stored launches that the filters choose\n",
                 cases[i].launches);
        if (!data && !strstr(out, last))
            fail_msg("no '%s' in %s", last, out);
        assert_true(data || strstr(out, "==KPROF== The whole session: "));
        if (cases[i].said && (!strstr(data ? err : out, cases[i].said) || !strstr(data ? err : out, "  seen: ") ||
                              strstr(data ? out : err, "No launch")))
            fail_msg("%s %s:\n%s%s", cases[i].arguments[0], cases[i].arguments[1], out, err);
        free(out);
        free(err);
    }
    char *several[] = {command, "report", "-k", "stream_tria", path, path, NULL};
    assert_int_equal(run(several, NULL, &out, &err), 2);
    free(out);
    free(err);
    char *const *whole[] = {ARGS("report", "-c", "1", "--page", "timeline", path),
                            ARGS("report", "-c", "1", "--page", "session", path)};
    for (size_t i = 0; i < 2; i++) { /* pages without launches */
        assert_int_equal(run(whole[i], NULL, &out, &err), 0);
        assert_null(strstr(out, "Shown above"));
        free(out);
        free(err);
    }
    unlink(path);
    unsetenv("KPROF_BRIEF_ABOVE");
}

/* What rules say stands below their sections, the verdict above them, the summary before the account. */
static void the_page_has_advice(void **state)
{
    char *out, *err;
    (void)state;
    assert_int_equal(
        run(ARGS("report", "--rule", "SOLBottleneck,regex:.*Occupancy", "--section", "Occupancy,SpeedOfLight", session),
            NULL, &out, &err),
        0);
    assert_string_equal(err, "");
    kp_test_golden(out, "tests/golden/report_advice.txt");
    free(out);
    free(err);
}

static void wrong_options_are_told(void **state)
{
    (void)state;
    struct {
        char *const *argv;
        const char *env;
    } cases[] = {
        {ARGS("report", "--cold", session), NULL},
        {ARGS("report", "--print-metric=all", session), NULL}, /* what it may abbreviate is named */
        {ARGS("report", "--print-detials=all", session), NULL},
        {ARGS("report", "--log-file", "x", session), NULL},
        {ARGS("report", "-x", session), NULL},
        {ARGS("report", "-i", session), NULL},
        {ARGS("report", "-ix.ncu-rep"), NULL},
        {ARGS("report", "--import", session), NULL},
        {ARGS("report", "--rename-kernels=no.yaml", session), NULL},
        {ARGS("report", "--rename-kernels-path=no.yaml", session), NULL},
        {ARGS("report", "--sort=gian", session), NULL},
        {ARGS("report", "--sort", "durations", session), NULL},
        {ARGS("report", "--top=many", session), NULL},
        {ARGS("report", "--brief-above=-1", session), NULL},
        {ARGS("report", "--color=allways", session), NULL},
        {ARGS("report", "--colour=never", session), NULL},
        {ARGS("report", session, "--section"), NULL},
        {ARGS("report", "--print-units=bases", session), NULL},
        {ARGS("report", "--section=Ocupancy", session), NULL},
        {ARGS("report", session), "KPROF_PRINT_DETAILS=bodies"},
        {ARGS("report", session), "KPROF_PRINT_DETIALS=body"},
        {ARGS("report", "--print-units=base"), NULL},
        {ARGS("report", "--metrics", "regex:(", session), NULL},
    };
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out, *err;
        assert_int_equal(run(cases[i].argv, cases[i].env, &out, &err), 2);
        assert_string_equal(out, "");
        sink.write(sink.arg, err, strlen(err));
        free(out);
        free(err);
    }
    kp_test_golden(t.text, "tests/golden/report_show_errors.txt");
    free(t.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_options_are_flags_or_environment),
        cmocka_unit_test(what_is_shown_can_be_chosen),
        cmocka_unit_test(pages_of_metrics_show_the_chosen_ones),
        cmocka_unit_test(what_the_session_lacks_is_told),
        cmocka_unit_test(what_else_was_chosen_is_shown),
        cmocka_unit_test(gains_do_not_depend_on_what_is_shown),
        cmocka_unit_test(section_files_hold_for_stored_sessions),
        cmocka_unit_test(launches_can_be_chosen),
        cmocka_unit_test(the_page_has_advice),
        cmocka_unit_test(wrong_options_are_told),
    };
    return cmocka_run_group_tests_name("report/show", tests, write_session, remove_session);
}
