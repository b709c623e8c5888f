#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/host.h"
#include "report/define/units.h"
#include "report/write/advice.h"
#include "tests/support/collect_support.h"
#include "tests/support/rules_support.h"

enum { FIELDS = 8, SECTIONS_MAX = 32 };

/* Rules that Nsight Compute does not have. */
static const char *const ours[] = {"TensorCoreUse", "LocalMemoryTraffic", "SharedMemoryCarveout"};

static bool is_ours(const struct kp_rule *rule)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(rule->id, ours[i]))
            return true;
    return false;
}

static const char *severity(const struct kp_message *m)
{
    static const char *const names[] = {"OPT", "INF", "WRN"};
    return names[m->severity];
}

static void estimate(const struct kp_message *m, char out[64])
{
    snprintf(out, 64, "-");
    if (!isnan(m->speedup))
        snprintf(out, 64, "Est. %sSpeedup: %.4g%%", m->global ? "" : "Local ", m->speedup);
}

/* The recorded figures have six decimals, too few for the smallest estimates of compression. */
static void assert_same_estimate(const struct kp_message *m, const char *expected)
{
    char got[64];
    estimate(m, got);
    const char *colon = strchr(expected, ':');
    if (colon && m->global && strtod(colon + 1, NULL) < 0.01 && fabs(m->speedup - strtod(colon + 1, NULL)) < 1e-4)
        return;
    assert_string_equal(got, expected);
}

/* The reference counts warp instructions by opcode. Of most launches that is not recorded, and by threads one of them,
 * a kernel of one block with predicated code, looks different. */
static bool is_by_threads(const struct kp_message *m)
{
    return !strcmp(m->rule->id, "FPInstructions") && strstr(m->text, "counts by opcode are missing");
}

/* Each number as a word of its own: "4.0" is not in "14.0". */
static bool has_number(const char *text, const char *number)
{
    for (const char *at = text; (at = strstr(at, number)); at++) {
        char before = at == text ? ' ' : at[-1], after = at[strlen(number)];
        if (!strchr("0123456789.,", before) && !(after >= '0' && after <= '9') &&
            !(after == ',' && isdigit((unsigned char)at[strlen(number) + 1])) &&
            !(after == '.' && at[strlen(number) + 1] >= '0' && at[strlen(number) + 1] <= '9'))
            return true;
    }
    return false;
}

/* The same value: large numbers have separators, and bytes a unit that fits. */
static bool says_number(const struct kp_message *m, const char *number)
{
    char separated[64], bytes[KP_NUMBER_MAX + KP_UNIT_MAX];
    size_t whole = strspn(number, "0123456789"), n = 0;
    for (size_t i = 0; number[i]; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            separated[n++] = ',';
        separated[n++] = number[i];
    }
    separated[n] = '\0';
    kp_format_quantity(strtod(number, NULL), "byte", false, bytes);
    return has_number(m->text, separated) || (whole > 2 && strstr(m->text, bytes));
}

static void assert_has_numbers(const struct kp_message *m, char *numbers)
{
    for (char *number; (number = strsep(&numbers, " "));)
        if (*number && !says_number(m, number))
            fail_msg("%s: no %s in: %s", m->rule->id, number, m->text);
}

/* Rule, severity, estimate and the numbers of every message, in order, as in the reference report. */
static void the_14_launches_get_ncus_messages(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    char *text = kp_test_read(kp_test_source("tests/data/rules/h200_ncu.tsv")), *rest = text, *line, *field[FIELDS];
    size_t n_sections, compared = 0, by_threads = 0, idle = 0;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n_sections);
    while (*rest == '#')
        rest += strcspn(rest, "\n") + 1;
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages messages;
        assert_int_equal(kp_rules_apply(&r.results[i], &r.session, sections, n_sections, KP_RULES_ALL, &messages), 0);
        for (size_t j = 0; j < messages.n; j++) {
            const struct kp_message *m = &messages.list[j];
            by_threads += is_by_threads(m);
            if (is_ours(m->rule) || is_by_threads(m))
                continue;
            line = strsep(&rest, "\n");
            assert_int_equal(kp_test_fields(line, field, FIELDS), 5);
            if (strncmp(field[0], r.results[i].launch.demangled, strlen(field[0])) || strcmp(field[1], m->rule->id))
                fail_msg("expected %s of %s, got %s of %s: %s", field[1], field[0], m->rule->id,
                         r.results[i].launch.demangled, m->text);
            assert_string_equal(severity(m), field[2]);
            assert_same_estimate(m, field[3]);
            if (strstr(m->text, "executes no FP32 or FP64 arithmetic")) /* ncu prints its shares of the peaks: 0% */
                idle += !strcmp(field[4], "2 1 0%");
            else
                assert_has_numbers(m, field[4]);
            compared++;
        }
        kp_messages_free(&messages);
    }
    assert_string_equal(rest, "");
    assert_int_equal(compared, 139);
    assert_int_equal(by_threads, 1);
    assert_int_equal(idle, 6);
    free(text);
    kp_test_recording_free(&r);
}

static void render_all(struct kp_test_text *t, const struct kp_messages *m, const struct kp_section *const *sections,
                       size_t n)
{
    struct kp_sink out = kp_test_sink(t);
    for (size_t i = 0; i < n; i++) {
        size_t before = t->len;
        if (kp_messages_count(m, sections[i]->id)) {
            out.write(out.arg, "    Section: ", 13);
            out.write(out.arg, sections[i]->display, strlen(sections[i]->display));
            out.write(out.arg, "\n", 1);
            before = t->len;
        }
        assert_int_equal(kp_render_messages(&(struct kp_out){.sink = &out}, m, sections[i]->id), 0);
        assert_int_equal(t->len > before, kp_messages_count(m, sections[i]->id) > 0);
    }
}

static void add_text(struct kp_test_text *t, const char *text)
{
    struct kp_sink out = kp_test_sink(t);
    assert_int_equal(out.write(out.arg, text, strlen(text)), 0);
}

static void the_14_launches_as_text(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_test_text t = {0};
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages m;
        add_text(&t, "  ");
        add_text(&t, r.results[i].launch.demangled);
        add_text(&t, "\n");
        assert_int_equal(kp_rules_apply(&r.results[i], &r.session, sections, n, KP_RULES_ALL, &m), 0);
        render_all(&t, &m, sections, n);
        kp_messages_free(&m);
    }
    kp_test_golden(t.text, "tests/golden/rules_h200.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* A made-up launch of tests/data/rules/cases.tsv. */
struct made_up {
    const char *name, *sections;
    struct kp_result result;
    struct kp_messages messages;
    size_t next; /* message that has not been expected yet */
};

static void end_case(struct made_up *c)
{
    if (c->name && c->next < c->messages.n)
        fail_msg("%s: not expected: %s: %s", c->name, c->messages.list[c->next].rule->id,
                 c->messages.list[c->next].text);
    kp_messages_free(&c->messages);
    kp_result_free(&c->result);
    *c = (struct made_up){0};
}

static void begin_case(struct made_up *c, char *const field[])
{
    end_case(c);
    c->name = field[1];
    c->sections = field[3];
    assert_int_equal(sscanf(field[2], "%d %d", &c->result.launch.cc_major, &c->result.launch.cc_minor), 2);
    for (int i = 0; i < 3; i++)
        c->result.launch.grid[i] = c->result.launch.block[i] = 1;
}

static void apply_case(struct made_up *c)
{
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections(c->sections, &n);
    kp_messages_free(&c->messages);
    assert_int_equal(kp_rules_apply(&c->result, NULL, sections, n, KP_RULES_ALL, &c->messages), 0);
}

/* "says", rule, severity, estimate, words of the message, all of which must be there, separated by bars. */
static void expect(struct made_up *c, char *const field[])
{
    if (c->next == c->messages.n)
        fail_msg("%s: %s is silent", c->name, field[1]);
    const struct kp_message *m = &c->messages.list[c->next++];
    char *words = field[4], got[64];
    estimate(m, got);
    if (strcmp(m->rule->id, field[1]) || strcmp(severity(m), field[2]) || strcmp(got, field[3]))
        fail_msg("%s: the next message was to be %s %s %s, but is %s %s %s: %s", c->name, field[1], field[2], field[3],
                 m->rule->id, severity(m), got, m->text);
    for (char *word; (word = strsep(&words, "|"));)
        if (!strstr(m->text, word))
            fail_msg("%s: no '%s' in: %s", c->name, word, m->text);
}

static size_t rule_index(const char *id)
{
    size_t n;
    const struct kp_rule *rule = kp_rule_find(id);
    if (!rule)
        fail_msg("no rule %s", id);
    return (size_t)(rule - kp_rules(&n));
}

static void note_silence(struct made_up *c, const char *rule, bool *silent)
{
    for (size_t i = 0; i < c->messages.n; i++)
        if (!strcmp(c->messages.list[i].rule->id, rule))
            fail_msg("%s: %s speaks: %s", c->name, rule, c->messages.list[i].text);
    silent[rule_index(rule)] = true;
}

/* Each rule speaks in one made-up launch and is silent in another that has all it looks at. */
static void made_up_launches_get_their_messages(void **state)
{
    (void)state;
    char *text = kp_test_read(kp_test_source("tests/data/rules/cases.tsv")), *rest = text, *field[FIELDS] = {0};
    struct made_up c = {0};
    bool fired[64] = {0}, silent[64] = {0};
    bool applied = false;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line == '#' || !*line)
            continue;
        size_t n = kp_test_fields(line, field, FIELDS);
        bool metric = strcmp(field[0], "case") && strcmp(field[0], "says") && strcmp(field[0], "silent");
        if (!metric && strcmp(field[0], "case") && !applied)
            apply_case(&c);
        applied = !metric && strcmp(field[0], "case");
        if (!strcmp(field[0], "case")) {
            assert_int_equal(n, 4);
            begin_case(&c, field);
        } else if (!strcmp(field[0], "says")) {
            assert_int_equal(n, 5);
            expect(&c, field);
            fired[rule_index(field[1])] = true;
        } else if (!strcmp(field[0], "silent")) {
            note_silence(&c, field[1], silent);
        } else {
            assert_int_equal(n, 4);
            kp_test_add_metric(&c.result, field);
        }
    }
    end_case(&c);
    size_t n;
    const struct kp_rule *rules = kp_rules(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rules[i].id, "Compute") && strcmp(rules[i].id, "Memory") && (!fired[i] || !silent[i]))
            fail_msg("no launch on which %s %s: it needs such a case in tests/data/rules/cases.tsv", rules[i].id,
                     fired[i] ? "is silent" : "speaks");
    free(text);
}

/* Without what a rule cannot do without, it says nothing; a launch without metrics gets no message at all. */
static void a_launch_without_metrics_gets_no_message(void **state)
{
    (void)state;
    struct kp_result r = {.launch = {.cc_major = 9}};
    struct kp_messages m;
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    r.launch.kind = KP_WORKLOAD_GRAPH; /* a kernel has at least its grid and block */
    assert_int_equal(kp_rules_apply(&r, NULL, sections, n, KP_RULES_ALL, &m), 0);
    assert_int_equal(m.n, 0);
    kp_messages_free(&m);
}

static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

static void assert_numbers_are_known(const struct kp_messages *m, const char *missing)
{
    for (size_t i = 0; i < m->n; i++)
        if (has_word(m->list[i].text, "nan") || has_word(m->list[i].text, "inf"))
            fail_msg("without %s: %s", missing, m->list[i].text);
}

/* Taking one metric away from a launch changes messages, but never breaks, and never says what is not known. */
static void any_metric_may_be_missing(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    for (struct kp_result *launch = r.results; launch < r.results + r.n; launch++)
        for (size_t i = 0; i < launch->n_metrics; i++) {
            enum kp_value_kind kind = launch->metrics[i].kind;
            struct kp_messages m;
            launch->metrics[i].kind = KP_VALUE_NA;
            assert_int_equal(kp_rules_apply(launch, &r.session, sections, n, KP_RULES_ALL, &m), 0);
            assert_numbers_are_known(&m, launch->metrics[i].name);
            launch->metrics[i].kind = kind;
            kp_messages_free(&m);
        }
    kp_test_recording_free(&r);
}

/* Nor where all that a device says of itself is missing, as in sessions that did not ask for it. */
static void a_recorded_launch_says_only_what_is_known(void **state)
{
    (void)state;
    struct kp_recording recordings[] = {kp_test_rules_recording(), kp_test_recording()};
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < recordings[k].n; i++) {
            struct kp_result *launch = &recordings[k].results[i];
            struct kp_messages m;
            for (size_t j = 0; j < launch->n_metrics; j++)
                if (!strncmp(launch->metrics[j].name, "device__", strlen("device__")))
                    launch->metrics[j].kind = KP_VALUE_NA;
            assert_int_equal(kp_rules_apply(launch, &recordings[k].session, sections, n, KP_RULES_ALL, &m), 0);
            assert_numbers_are_known(&m, "device__");
            kp_messages_free(&m);
        }
        kp_test_recording_free(&recordings[k]);
    }
}

/* A section printed alone has the advice that it has among all others. */
static void estimates_are_the_same_whatever_is_shown(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    const struct kp_section *sections[SECTIONS_MAX];
    size_t n, compared = 0;
    const struct kp_section *const *all_sections = kp_test_rule_sections("", &n);
    assert_true(n <= SECTIONS_MAX);
    memcpy(sections, all_sections, n * sizeof *sections);
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages all, one;
        size_t next = 0;
        assert_int_equal(kp_rules_apply(&r.results[i], &r.session, sections, n, KP_RULES_ALL, &all), 0);
        for (size_t j = 0; j < n; j++) {
            assert_int_equal(kp_rules_apply(&r.results[i], &r.session, &sections[j], 1, KP_RULES_ALL, &one), 0);
            for (size_t k = 0; k < one.n; k++, next++, compared++) {
                assert_true(next < all.n);
                assert_ptr_equal(one.list[k].section, sections[j]);
                assert_string_equal(one.list[k].text, all.list[next].text);
                assert_true(one.list[k].global == all.list[next].global);
                assert_memory_equal(&one.list[k].speedup, &all.list[next].speedup, sizeof(double));
            }
            kp_messages_free(&one);
        }
        assert_int_equal(next, all.n);
        kp_messages_free(&all);
    }
    assert_true(compared > 139);
    kp_test_recording_free(&r);
}

static void assert_says(const struct kp_result *r, const char *raw, const char *expected)
{
    char *text = kp_message_text(r, raw);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void texts_have_names_of_sections_and_separators(void **state)
{
    (void)state;
    struct kp_result r = {.launch = {.cc_major = 9}};
    assert_says(&r, "", "");
    assert_says(&r, "999 of 1000, 16327153.50 of 100000 in 1234567 FP32 l1tex12345 0.12345%",
                "999 of 1,000, 16,327,153.50 of 100,000 in 1,234,567 FP32 l1tex12345 0.12345%");
    assert_says(&r, "Look at @MemoryWorkloadAnalysis, @SchedulerStats and @Nothing.",
                "Look at Memory Workload Analysis (set detailed), Scheduler Statistics (set full) and Nothing.");
    assert_says(&r, "Look at @C2CLink.", "Look at C2CLink (section C2CLink).");
    assert_says(&r, "Unroll.{ Look at @SourceCounters for 1000 lines.}", "Unroll.");
    assert_says(&r, "A{, B} and C.", "A and C.");
    const struct kp_section *s = kp_section_find("SchedulerStats");
    for (size_t i = 0; i < s->n_rows;
         i++) /* what cannot be had is as good as there: asking for the set would not help */
        if (s->rows[i].kind != KP_ROW_BODY)
            assert_int_equal(
                kp_result_set_why(&r, s->rows[i].metric, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission")),
                0);
    assert_says(&r, "@SchedulerStats", "Scheduler Statistics");
    assert_int_equal(kp_result_set_count(&r, "smsp__pcsamp_sample_count", "", 0), 0);
    assert_says(&r, "Unroll.{ Look at 1000 lines.}", "Unroll. Look at 1,000 lines.");
    kp_result_free(&r);
}

/* What the advice points to is there, or has a name to ask for. */
static void every_section_that_a_text_names_exists(void **state)
{
    (void)state;
    const char *const files[] = {"report/judge/rules.def", "report/judge/rules.c"};
    size_t found = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = kp_test_read(kp_test_source(files[i])), name[64];
        for (const char *at = text; (at = strchr(at, '@')); found++) {
            at++;
            assert_int_equal(sscanf(at, "%63[A-Za-z0-9_]", name), 1);
            if (!kp_section_find(name))
                fail_msg("%s: no section %s", files[i], name);
        }
        free(text);
    }
    assert_true(found > 30);
}

/* A session without samples and without counts by line does not send its reader to them. */
static void lines_are_named_only_where_there_are_any(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    size_t n, with = 0;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    for (size_t i = 0; i < r.n; i++) {
        struct kp_result *launch = &r.results[i];
        struct kp_messages m;
        assert_true(kp_rules_has_lines(launch));
        assert_int_equal(kp_rules_apply(launch, &r.session, sections, n, KP_RULES_ALL, &m), 0);
        for (size_t j = 0; j < m.n; j++)
            with += strstr(m.list[j].text, "Source Counters") != NULL;
        kp_messages_free(&m);
        for (size_t j = 0; j < launch->n_metrics; j++)
            if (!strncmp(launch->metrics[j].name, "memory_l", 8) || strstr(launch->metrics[j].name, "__pcsamp_"))
                launch->metrics[j].kind = KP_VALUE_NA;
        assert_false(kp_rules_has_lines(launch));
        assert_int_equal(kp_rules_apply(launch, &r.session, sections, n, KP_RULES_ALL, &m), 0);
        for (size_t j = 0; j < m.n; j++)
            if (strstr(m.list[j].text, "Source Counters"))
                fail_msg("%s: %s", launch->launch.demangled, m.list[j].text);
        kp_messages_free(&m);
    }
    assert_true(with > 10);
    kp_test_recording_free(&r);
}

static void rules_are_chosen_by_name(void **state)
{
    (void)state;
    kp_rule_choice all, some;
    char *err = NULL;
    assert_int_equal(kp_rules_select("", &all, &err), 0);
    assert_true(all == KP_RULES_ALL);
    assert_int_equal(kp_rules_select(" CPIStall , regex:.*Occupancy", &some, &err), 0);
    assert_true(some ==
                ((kp_rule_choice)1 << rule_index("CPIStall") | (kp_rule_choice)1 << rule_index("AchievedOccupancy") |
                 (kp_rule_choice)1 << rule_index("TheoreticalOccupancy")));
    assert_int_equal(kp_rules_select("CPIStal", &some, &err), -EINVAL);
    assert_string_equal(err, "unknown rule 'CPIStal'; did you mean 'CPIStall'?");
    free(err);
    assert_int_equal(kp_rules_select("Nosuch", &some, &err), -EINVAL);
    assert_string_equal(err, "unknown rule 'Nosuch'; `kprof --list-rules` lists them");
    free(err);
    assert_int_equal(kp_rules_select("regex:Occupancy", &some, &err), -EINVAL);
    assert_string_equal(err, "no rule matches 'regex:Occupancy'");
    free(err);
    assert_int_equal(kp_rules_select("regex:(", &some, &err), -EINVAL);
    free(err);
}

/* What was not chosen is not heard, but still hands its values on: the estimate stays the same. */
static void a_chosen_rule_has_its_parents_values(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_messages all, one;
    kp_rule_choice chosen;
    char *err;
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    assert_int_equal(kp_rules_select("AchievedOccupancy", &chosen, &err), 0);
    assert_int_equal(kp_rules_apply(&r.results[0], &r.session, sections, n, KP_RULES_ALL, &all), 0);
    assert_int_equal(kp_rules_apply(&r.results[0], &r.session, sections, n, chosen, &one), 0);
    assert_int_equal(one.n, 1);
    assert_true(one.list[0].global);
    for (size_t i = 0; i < all.n; i++)
        if (all.list[i].rule == one.list[0].rule)
            assert_true(all.list[i].speedup == one.list[0].speedup);
    kp_messages_free(&all);
    kp_messages_free(&one);
    kp_test_recording_free(&r);
}

/* The device has them, though the launch may be limited to fewer. */
static void the_sms_are_those_of_the_launchs_device(void **state)
{
    (void)state;
    struct kp_device_info devices[] = {{.ordinal = 0, .sm_count = 4}, {.ordinal = 3, .sm_count = 8}};
    struct kp_session s = {.devices = devices, .n_devices = 2};
    struct kp_result r = {.launch = {.device = 3, .cc_major = 9, .grid = {2, 1, 1}, .block = {4, 8, 2}}};
    struct kp_messages m;
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("LaunchStats", &n);
    assert_int_equal(kp_result_set_count(&r, "launch__sm_count", "", 2), 0);
    assert_int_equal(kp_rules_apply(&r, &s, sections, n, KP_RULES_ALL, &m), 0);
    assert_int_equal(m.n, 1);
    assert_non_null(strstr(m.list[0].text, "2 blocks for 8 SMs"));
    kp_messages_free(&m);
    kp_result_free(&r);
}

static int note_input(const struct kp_rule_input *in, void *arg)
{
    struct kp_test_text *t = arg;
    add_text(t, in->metric);
    add_text(t, in->required ? " required\n" : "\n");
    return 0;
}

static int refuse_input(const struct kp_rule_input *in, void *arg)
{
    (void)in;
    ++*(int *)arg;
    return -7;
}

/* The chip's names, and nothing that only a source of its own could give. */
static void a_section_names_the_inputs_of_its_rules(void **state)
{
    (void)state;
    struct kp_test_text t = {0};
    assert_int_equal(kp_rule_inputs("MemoryWorkloadAnalysis_Chart", 9, 0, note_input, &t), 0);
    assert_string_equal(t.text, "lts__t_sectors_srcunit_tex.avg.pct_of_peak_sustained_elapsed required\n"
                                "lts__t_sectors_srcunit_tex_lookup_miss.sum required\n"
                                "lts__t_sectors_srcunit_tex_aperture_peer_lookup_miss.sum\n"
                                "lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum\n"
                                "dram__bytes.sum.per_second\n"
                                "lrc__ilc_input_sectors.sum\n"
                                "lrc__average_ilc_input_sector_success_rate.pct\n"
                                "lts__t_sectors.sum required\n"
                                "dram__bytes_read.sum.pct_of_peak_sustained_elapsed required\n"
                                "l1tex__m_l1tex2xbar_write_bytes.sum\n");
    free(t.text);
    t = (struct kp_test_text){0}; /* an attribute of the device: no pass */
    assert_int_equal(kp_rule_inputs("LaunchStats", 9, 0, note_input, &t), 0);
    assert_non_null(strstr(t.text, "device__attribute_max_shared_memory_per_multiprocessor required\n"));
    free(t.text);
    int calls = 0;
    assert_int_equal(kp_rule_inputs("Occupancy", 8, 0, refuse_input, &calls), -7);
    assert_int_equal(calls, 1);
    assert_int_equal(kp_rule_inputs("NoSection", 8, 0, refuse_input, &calls), 0);
}

static const struct chip {
    const char *name;
    int major, minor, opens, passes;
} chips[] = {
#define KP_CHIP(...) {__VA_ARGS__},
#include "tests/support/chips.def"
};

struct look_up {
    struct kp_host *host;
    const struct chip *chip;
    size_t n;
};

static int look_up(const struct kp_rule_input *in, void *arg)
{
    struct look_up *l = arg;
    struct kp_metric_props props;
    if (in->source == KP_SRC_COUNTER && kp_host_metric(l->host, in->metric, &props))
        fail_msg("%s does not have %s", l->chip->name, in->metric);
    l->n += in->source == KP_SRC_COUNTER;
    return 0;
}

static void every_counter_is_on_the_chips_of_its_row(void **state)
{
    (void)state;
    const struct kp_cupti *c = kp_test_real_cupti();
    size_t n, n_sections;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n_sections);
    for (n = 0; n < sizeof chips / sizeof *chips; n++) {
        struct look_up l = {.chip = &chips[n]};
        if (!chips[n].opens)
            continue;
        assert_int_equal(kp_host_open(c, chips[n].name, NULL, &l.host), 0);
        for (size_t i = 0; i < n_sections; i++)
            kp_rule_inputs(sections[i]->id, chips[n].major, chips[n].minor, look_up, &l);
        kp_host_close(l.host);
        assert_true(l.n > 80);
    }
}

/* Identifiers are unique, parents stand before children, sections are known to the tests, so to the report. */
static void the_table_is_consistent(void **state)
{
    (void)state;
    size_t n, n_sections;
    const struct kp_rule *rules = kp_rules(&n);
    for (size_t i = 0; i < n; i++) {
        const struct kp_rule *parent = kp_rule_find(rules[i].parent);
        assert_ptr_equal(kp_rule_find(rules[i].id), &rules[i]);
        assert_true(!*rules[i].parent || (parent && parent < &rules[i]));
        kp_test_rule_sections(rules[i].section, &n_sections);
        assert_int_equal(n_sections, 1);
        assert_true(*rules[i].about);
    }
    assert_null(kp_rule_find("NoRule"));
}

static int write_some(void *arg, const char *text, size_t len)
{
    (void)text, (void)len;
    int *left = arg;
    return (*left)-- ? 0 : -ENOSPC;
}

static void a_failing_sink_ends_the_rendering(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_messages m;
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    assert_int_equal(kp_rules_apply(&r.results[0], &r.session, sections, n, KP_RULES_ALL, &m), 0);
    int rc = -ENOSPC, writes = 0;
    for (; rc; writes++) {
        int left = writes;
        struct kp_sink out = {write_some, &left};
        rc = kp_render_messages(&(struct kp_out){.sink = &out}, &m, "WarpStateStats");
        assert_true(rc == 0 || (rc == -ENOSPC && left == -1));
    }
    assert_true(writes > 5);
    kp_messages_free(&m);
    kp_test_recording_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_14_launches_get_ncus_messages),
        cmocka_unit_test(the_14_launches_as_text),
        cmocka_unit_test(made_up_launches_get_their_messages),
        cmocka_unit_test(a_launch_without_metrics_gets_no_message),
        cmocka_unit_test(any_metric_may_be_missing),
        cmocka_unit_test(a_recorded_launch_says_only_what_is_known),
        cmocka_unit_test(estimates_are_the_same_whatever_is_shown),
        cmocka_unit_test(texts_have_names_of_sections_and_separators),
        cmocka_unit_test(every_section_that_a_text_names_exists),
        cmocka_unit_test(lines_are_named_only_where_there_are_any),
        cmocka_unit_test(rules_are_chosen_by_name),
        cmocka_unit_test(a_chosen_rule_has_its_parents_values),
        cmocka_unit_test(the_sms_are_those_of_the_launchs_device),
        cmocka_unit_test(a_section_names_the_inputs_of_its_rules),
        cmocka_unit_test(every_counter_is_on_the_chips_of_its_row),
        cmocka_unit_test(the_table_is_consistent),
        cmocka_unit_test(a_failing_sink_ends_the_rendering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
