/* What can be collected, as the kprof command lists it: run as a user runs it, over the real CUPTI without a GPU, and
 * over the fake driver. */
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
#include <sys/wait.h>

#include "cmd/catalog.h"
#include "collectors/plan/chips.h"
#include "collectors/providers/providers.h"
#include "cupti/host.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

enum { PAGE_WIDTH = 120 };

/* ---- chips ---- */

static void test_every_chip_has_a_compute_capability(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *const *names;
    int major, minor;
    size_t n;
    (void)state;
    assert_int_equal(kp_host_chips(c, &names, &n), 0);
    for (size_t i = 0; i < n; i++)
        if (!kp_chip_cc(names[i], &major, &minor)) {
            print_message("%s has no row in collectors/plan/chips.def\n", names[i]);
            assert_string_not_equal(kp_cupti_version(c), "13.0");
        }
    assert_true(kp_chip_cc("GA102", &major, &minor));
    assert_true(major == 8 && minor == 6);
    assert_false(kp_chip_cc("ZZ999", &major, &minor));
}

static void test_some_capabilities_are_of_one_chip(void **state)
{
    (void)state;
    assert_string_equal(kp_chip_only(9, 0), "GH100");
    assert_string_equal(kp_chip_only(7, 0), "GV100");  /* the first row */
    assert_string_equal(kp_chip_only(12, 1), "GB20B"); /* the last one */
    assert_null(kp_chip_only(8, 6));                   /* five chips */
    assert_null(kp_chip_only(10, 0));                  /* two */
    assert_null(kp_chip_only(6, 0));
    assert_null(kp_chip_only(0, 0));
}

/* ---- the operations ---- */

struct counts {
    size_t kinds[KP_CATALOG_KINDS], full_names;
    struct kp_catalog *catalog;
};

static int count_full_name(const struct kp_catalog_metric *m, void *arg)
{
    struct counts *n = arg;
    assert_true(!strncmp(m->name, "sm__throughput.", strlen("sm__throughput.")));
    n->full_names++;
    return 0;
}

static int count_metric(const struct kp_catalog_metric *m, void *arg)
{
    struct counts *n = arg;
    assert_true(*m->name && m->unit && m->description);
    n->kinds[m->kind]++;
    if (m->kind > KP_CATALOG_THROUGHPUT) /* counters may have the same base names */
        assert_int_equal(m->kind == KP_CATALOG_SOURCE, kp_providers_is_metric(m->name));
    if (strcmp(m->name, "sm__throughput"))
        return 0;
    assert_string_equal(m->unit, "%");
    return kp_catalog_full_names(n->catalog, m, NULL, count_full_name, n);
}

static int stop(const struct kp_catalog_metric *m, void *arg)
{
    (void)m;
    (void)arg;
    return -7;
}

static void test_operations(void **state)
{
    const struct kp_section *const quick = kp_section_quick();
    struct counts n = {.full_names = 0};
    char *note = NULL, *err = NULL;
    size_t metrics, passes;
    (void)state;
    kp_test_real_cupti(); /* or skip */
    assert_int_equal(kp_catalog_open("GH100", getenv("KP_REAL_CUPTI"), false, &n.catalog, &note, &err), 0);
    assert_null(note);
    assert_int_equal(kp_catalog_metrics(n.catalog, count_metric, &n), 0);
    for (size_t i = 0; i < KP_CATALOG_KINDS; i++)
        assert_true(n.kinds[i] > 0);
    assert_true(n.full_names > 4);
    assert_int_equal(kp_catalog_metrics(n.catalog, stop, NULL), -7);
    assert_int_equal(kp_catalog_cost(n.catalog, &quick, 1, false, &metrics, &passes, &err), 0);
    assert_int_equal(passes, 1);
    assert_int_equal(kp_catalog_cost(n.catalog, &quick, 1, true, &metrics, &passes, &err), 0);
    assert_int_equal(passes, 1);
    assert_true(metrics > 10);
    kp_catalog_close(n.catalog);
    kp_catalog_close(NULL);
    assert_int_equal(kp_catalog_open("GH10", getenv("KP_REAL_CUPTI"), false, &n.catalog, &note, &err), -EINVAL);
    assert_null(n.catalog);
    free(err);
}

/* ---- the command ---- */

static char folder[PATH_MAX / 4];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s", kp_test_folder());
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    kp_test_remove_folder(folder);
    return 0;
}

/* Which CUPTI, and whether there is a driver. */
enum machine { CUPTI_ONLY, FAKE_GPU };

static const char *read_back(const char *name)
{
    static char *texts[2];
    char path[PATH_MAX];
    size_t slot = !strcmp(name, "err");
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    free(texts[slot]);
    return texts[slot] = kp_test_read(path);
}

/* Runs `kprof arguments`, under `env` ("A=1 B=2 "); *out and *err stay until the next call. Returns the exit status. */
static int run(enum machine machine, const char *env, const char *arguments, const char **out, const char **err)
{
    char line[8 * PATH_MAX], cupti[PATH_MAX], fake[PATH_MAX];
    kp_test_real_cupti(); /* or skip */
    snprintf(fake, sizeof(fake), "%s", kp_test_build("fake"));
    snprintf(cupti, sizeof(cupti), "%s", machine == FAKE_GPU ? fake : getenv("KP_REAL_CUPTI"));
    /* Leaks are looked for in this process, see test_operations. */
    snprintf(line, sizeof(line),
             "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" LD_LIBRARY_PATH='%s' KPROF_CUPTI_DIR='%s' %s '%s' %s "
             ">'%s/out' 2>'%s/err'",
             machine == FAKE_GPU ? fake : "", cupti, env, kp_test_build("kprof"), arguments, folder, folder);
    int status = system(line);
    *out = read_back("out");
    *err = read_back("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *output_of(const char *arguments)
{
    const char *out, *err;
    int status = run(CUPTI_ONLY, "", arguments, &out, &err);
    if (status || *err)
        fail_msg("%s: %d\n%s", arguments, status, err);
    return out;
}

static void check_width(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > PAGE_WIDTH)
            fail_msg("a line of %zu columns: %.*s", strcspn(line, "\n"), (int)strcspn(line, "\n"), line);
}

static bool is_known_version(void)
{
    return !strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0");
}

static void test_goldens(void **state)
{
    static const struct {
        const char *arguments, *golden;
    } rows[] = {
        {"list-sets --chip GH100 --set quick", "tests/golden/catalog_sets.txt"},
        {"list-sections --chip GA100 --section Occupancy", "tests/golden/catalog_sections.txt"},
        {"list-rules", "tests/golden/catalog_rules.txt"},
        {"list-chips", "tests/golden/catalog_chips.txt"},
        {"query-metrics --chip GH100 --metrics '"
         "regex:^dram__,regex:t_sector_hit_rate$,sm__throughput,launch__grid_size,inst_executed,regex:pcsamp.*_imc_"
         "miss,"
         "FE_A.TriageCompute.gpu__scheduler_engine_gr_queue_async_cycles_stalled_cmd_semacquire'",
         "tests/golden/catalog_metrics.txt"},
        {"query-metrics --chip GH100 --metrics group:memory__dram_table,launch__grid_size,"
         "breakdown:gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
         "tests/golden/catalog_listed.txt"},
        {"query-metrics --chip GA102 --metrics 'regex:pcsamp_interval thread_inst_executed,"
         "group:smsp__pcsamp_warp_stall_reasons_not_issued'",
         "tests/golden/catalog_source.txt"},
        {"query-metrics --chip TU102 --query-metrics-mode suffix --metrics dram__bytes,l1tex__t_sector_hit_rate",
         "tests/golden/catalog_suffixes.txt"},
        {"query-metrics --chip TU102 --query-metrics-mode=all --metrics gpu__dram_throughput,launch__grid_size",
         "tests/golden/catalog_full_names.txt"},
    };
    (void)state;
    if (!is_known_version())
        skip();
    /* The last rows differ in what the vendor's library does, which takes a sanitised build seconds. */
    for (size_t i = 0; i < (kp_test_is_sanitized() ? 5 : sizeof(rows) / sizeof(*rows)); i++) {
        const char *out = output_of(rows[i].arguments);
        check_width(out);
        kp_test_golden(out, rows[i].golden);
    }
}

/* Each query is a flag as well as a sub-command. */
static void test_flags_and_commands_are_the_same(void **state)
{
    kp_test_skip_sanitized();
    static const struct {
        const char *name, *flag;
    } rows[] = {{"list-sets", "--chip TU102"},
                {"list-sections", "--chip TU102"},
                {"list-rules", "--config /dev/null"},
                {"list-chips", "--config /dev/null"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char arguments[128];
        snprintf(arguments, sizeof(arguments), "%s %s", rows[i].name, rows[i].flag);
        char *command = strdup(output_of(arguments));
        snprintf(arguments, sizeof(arguments), "%s --%s", rows[i].flag, rows[i].name);
        assert_string_equal(output_of(arguments), command);
        if (!strcmp(rows[i].name, "list-rules")) { /* sets take the longest */
            snprintf(arguments, sizeof(arguments), "%s %s", rows[i].flag, rows[i].name);
            assert_string_equal(output_of(arguments), command);
        }
        free(command);
    }
}

/* All metrics of a chip, each kind under a heading of its own. */
static void test_all_metrics(void **state)
{
    static const char *const headings[] = {
        "\nCounters",        "\nRatios", "\nThroughputs", "\nLaunch and device metrics", "\nMetrics by instruction",
        "\nDerived metrics", "\nGroups"};
    const char *at = output_of("query-metrics --chip GB202"), *all = at;
    (void)state;
    for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++) {
        at = strstr(at, headings[i]);
        if (!at)
            fail_msg("no %s", headings[i] + 1);
    }
    assert_non_null(strstr(all, "\nsm__cycles_active  "));
    assert_non_null(strstr(all, "\nlaunch__grid_size  "));
    assert_non_null(strstr(all, "\nmemory__l2_cache_table  "));
    assert_non_null(strstr(all, "\nsmsp__pcsamp_warp_stall_reasons  "));
    assert_non_null(strstr(all, "\nsmsp__pcsamp_warp_stall_reasons_not_issued  "));
    const char *source = strstr(all, "\nsmsp__pcsamp_sample_count  ");
    assert_non_null(source);
    assert_null(strstr(source + 1, "\nsmsp__pcsamp_sample_count  ")); /* each once */
    const char *group = strstr(all, "\nhotspot_locations  ");
    assert_non_null(group);
    assert_null(strstr(group + 1, "\nhotspot_locations  "));
    assert_null(strstr(all, "_warpgroup_arrive")); /* of other chips */
    check_width(all);
}

/* Names as the mode "all" lists them, and those of what is sampled, stand for their base name. */
static void test_full_names(void **state)
{
    kp_test_skip_sanitized();
    static const char *const names[] = {"dram__bytes.sum", "pmsampling:dram__bytes", "pmsampling:dram__bytes.avg"};
    static const char *const modes[] = {"base", "suffix", "all"};
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        char arguments[128];
        snprintf(arguments, sizeof(arguments), "query-metrics --chip GH100 --query-metrics-mode %s --metrics ",
                 modes[i]);
        size_t len = strlen(arguments);
        snprintf(arguments + len, sizeof(arguments) - len, "dram__bytes");
        char *base = strdup(output_of(arguments));
        for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
            if (i && i != k) /* all names in one mode, another in each of the others */
                continue;
            snprintf(arguments + len, sizeof(arguments) - len, "%s", names[k]);
            assert_string_equal(output_of(arguments), base);
        }
        free(base);
    }
}

/* The guide's example: a mode is a query; and so is a collection. */
static void test_queries_without_their_flag(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    char *query =
        strdup(output_of("query-metrics --query-metrics-mode suffix --metrics sm__inst_executed --chip GA100"));
    assert_string_equal(output_of("--query-metrics-mode suffix --metrics sm__inst_executed --chip ga100"), query);
    assert_non_null(strstr(query, "Metrics of GA100"));
    free(query);
    const char *out = output_of("--query-metrics-collection pmsampling --chip GH100");
    assert_non_null(strstr(out, "\npcie__read_bytes "));
    assert_null(strstr(out, "launch__grid_size")); /* which no sampler has */
    assert_null(strstr(out, "smsp__sass_inst_executed"));
}

static void test_several_chips(void **state)
{
    char both[2][4096];
    (void)state;
    kp_test_skip_sanitized();
    snprintf(both[0], sizeof both[0], "%s", output_of("query-metrics --chip TU102 --metrics dram__bytes"));
    snprintf(both[1], sizeof both[1], "%s", output_of("query-metrics --chip GH100 --metrics dram__bytes"));
    const char *out = output_of("--query-metrics --chips 'tu102, GH100' --metrics dram__bytes");
    assert_memory_equal(out, both[0], strlen(both[0]));
    assert_true(out[strlen(both[0])] == '\n');
    assert_string_equal(out + strlen(both[0]) + 1, both[1]);
}

/* A full name that matches lists its base name, and nothing else. */
static void test_expressions_for_full_names(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    char *names = strdup(output_of("query-metrics --chip GH100 --metrics dram__bytes_read,dram__bytes_write"));
    assert_string_equal(output_of("query-metrics --chip GH100 --metrics 'regex:^dram__bytes_(read|write).sum$'"),
                        names);
    free(names);
}

static void test_every_set_on_every_chip(void **state)
{
    static const char *const chips[] = {"TU102", "GA100"};
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++) {
        char arguments[64], line[64];
        snprintf(arguments, sizeof(arguments), "list-sets --chip %s", chips[i]);
        const char *out = output_of(arguments);
        assert_true(!strncmp(out, "Sets on ", 8) && !strncmp(out + 8, chips[i], strlen(chips[i])));
        for (const char *const *set = kp_set_names(); *set; set++) {
            snprintf(line, sizeof(line), "\n%-12s ", *set);
            if (!strstr(out, line))
                fail_msg("no set %s in\n%s", *set, out);
        }
    }
}

/* ---- which chip ---- */

/* The cheapest query of a chip. */
#define METRIC "query-metrics --metrics dram__bytes"

static void test_without_a_gpu(void **state)
{
    const char *out, *err;
    (void)state;
    assert_int_equal(run(CUPTI_ONLY, "", METRIC, &out, &err), 0);
    if (!strstr(err, "==KPROF== no GPU was found"))
        skip(); /* there is one */
    assert_non_null(strstr(err, "GH100"));
    assert_non_null(strstr(out, "Metrics of GH100 (CC 9.0)"));
    assert_int_equal(run(CUPTI_ONLY, "", "list-chips", &out, &err), 0);
    assert_string_equal(err, ""); /* where it does not matter */
}

static void test_the_first_gpu(void **state)
{
    const char *out, *err;
    (void)state;
    assert_int_equal(run(FAKE_GPU, "FAKE_CC=8.6", METRIC, &out, &err), 0);
    assert_string_equal(err, "");
    assert_non_null(strstr(out, "Metrics of GA102 (CC 8.6)"));
    assert_int_equal(run(FAKE_GPU, "FAKE_CC=8.6", METRIC " --chip TU102", &out, &err), 0);
    assert_non_null(strstr(out, "Metrics of TU102 (CC 7.5)"));
    assert_int_equal(run(CUPTI_ONLY, "", METRIC " --chip tu102", &out, &err), 0); /* as ncu writes it */
    assert_non_null(strstr(out, "Metrics of TU102 (CC 7.5)"));
}

/* ---- errors ---- */

static void test_errors(void **state)
{
    static const struct {
        const char *env, *arguments;
        int status;
        const char *says;
    } rows[] = {
        {"", "list-sets --chip GH10", 2, "--chip: unknown chip 'GH10'; did you mean 'GH100'?"},
        {"", "list-sets --chip GV11B", 2, "lists GV11B, but has no metrics for it"},
        {"", "--list-sets --chip", 2, "option --chip needs a value"},
        {"", "list-sets GH100", 2, "kprof list-sets does not accept 'GH100'"},
        {"", "--list-sections true", 2, "kprof list-sections does not accept 'true'"},
        {"", "--list-sets=GH100", 2, "--list-sets accepts no value"},
        {"", "query-metrics --chip GH100 --query-metrics-mode bas", 2,
         "--query-metrics-mode: unknown value 'bas'; did you mean 'base'?"},
        {"", "query-metrics --chip GH100 --metrics dram__byte", 2, "matches 'dram__byte'; did you mean 'dram__bytes'?"},
        {"", "query-metrics --chip GH100 --metrics smsp__pcsamp_sample_cout", 2,
         "matches 'smsp__pcsamp_sample_cout'; did you mean 'smsp__pcsamp_sample_count'?"},
        {"", "query-metrics --chip GH100 --metrics group:smsp__pcsamp_warp_stal_reasons", 2,
         "did you mean group:smsp__pcsamp_warp_stall_reasons?"},
        {"", "query-metrics --chip GH100 --metrics group:foo", 2, "--metrics: GH100 has no group \"foo\"; valid: "},
        {"", "query-metrics --chip GH100 --metrics dram__bytes.nothing", 2,
         "GH100 has no metric \"dram__bytes.nothing\"; dram__bytes does not have that suffix"},
        {"", "query-metrics --chip GH100 --metrics dram__bytes.summ", 2, "did you mean dram__bytes.sum?"},
        {"", "query-metrics --chip GH100 --metrics pmsampling:dram__byte", 2,
         "matches 'dram__byte'; did you mean 'dram__bytes'?"},
        {"", "query-metrics --chip GH100 --metrics 'sm__throughput,regex:zzz'", 2, "matches 'regex:zzz'"},
        {"", "query-metrics --chip GH100 --metrics 'regex:('", 2, "bad expression '('"},
        {"", "list-sections --set basci", 2, "--set: unknown set 'basci'; did you mean 'basic'?"},
        {"KPROF_SET=basci", "list-sections", 2, "KPROF_SET: unknown set 'basci'; did you mean 'basic'?"},
        {"", "query-metrics --chip GH100 --query-metrics-collection pm", 2,
         "--query-metrics-collection: unknown value 'pm'; did you mean 'pmsampling'?"},
        {"", "--query-metrics-collection pmsampling true", 2,
         "--query-metrics-collection cannot be used with a program"},
        {"", "--chips TU102,GH10 --query-metrics --metrics dram__bytes", 2, "--chip: unknown chip 'GH10'"},
        {"", "--chip GH100 true", 2, "--chip cannot be used with a program"},
        {"", "list-set", 127, "did you mean `kprof list-sets`?"},
        {"", "--lst-sets", 2, "did you mean --list-sets?"},
        {"KPROF_CUPTI_DIR=/nowhere", "list-sets", 1,
         "libcupti not found in /nowhere, the only folder searched (cupti-dir): name one that has it"},
        {"", "list-sets --cupti-dir /nowhere", 1, "unset cupti-dir (KPROF_CUPTI_DIR)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *out, *err;
        int status = run(CUPTI_ONLY, rows[i].env, rows[i].arguments, &out, &err);
        const char *line = strstr(err, "==ERROR== ");
        if (status != rows[i].status || !line || !strstr(line, rows[i].says))
            fail_msg("%s %s: %d\n%s", rows[i].env, rows[i].arguments, status, err);
        if (strstr(rows[i].arguments, "group:") && *out)
            fail_msg("%s: an empty table\n%s", rows[i].arguments, out);
    }
}

static void test_a_full_device(void **state)
{
    const char *out, *err;
    (void)state;
    assert_int_equal(run(CUPTI_ONLY, "", "list-chips", &out, &err), 0); /* leaves the files that are read */
    assert_int_equal(run(CUPTI_ONLY, "", "list-chips >/dev/full 2>/dev/null #", &out, &err), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chip_has_a_compute_capability),
        cmocka_unit_test(test_some_capabilities_are_of_one_chip),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_flags_and_commands_are_the_same),
        cmocka_unit_test(test_all_metrics),
        cmocka_unit_test(test_full_names),
        cmocka_unit_test(test_queries_without_their_flag),
        cmocka_unit_test(test_several_chips),
        cmocka_unit_test(test_expressions_for_full_names),
        cmocka_unit_test(test_every_set_on_every_chip),
        cmocka_unit_test(test_without_a_gpu),
        cmocka_unit_test(test_the_first_gpu),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_a_full_device),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
