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
#include <unistd.h>

#include "cupti/host.h"
#include "report/define/derive.h"
#include "report/define/section_files.h"
#include "report/define/section_tree.h"
#include "report/define/sections.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* Sections that were loaded stay, so that each test has identifiers of its own. */

static const char folder_of_ours[] = "tests/data/sections";

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void load(const char *folder)
{
    char *err = NULL;
    int rc = kp_sections_load(folder, &err);
    if (rc)
        fail_msg("%d: %s", rc, err ? err : "(no message)");
    assert_null(err);
}

/* Loads a folder of one file. */
static void load_text(const char *text)
{
    const char *folder = kp_test_folder();
    write_file(folder, "test.section", text);
    load(folder);
    kp_test_remove_folder(folder);
}

/* Loads one file that must fail; the message without the folder, malloc'ed. */
static char *load_error(const char *text)
{
    const char *folder = kp_test_folder();
    char *err = NULL;
    write_file(folder, "test.section", text);
    int rc = kp_sections_load(folder, &err);
    if (rc != -EINVAL)
        fail_msg("%d for %s", rc, text);
    assert_memory_equal(err, folder, strlen(folder));
    char *message = strdup(err + strlen(folder) + 1);
    free(err);
    kp_test_remove_folder(folder);
    return message;
}

static void print_section(FILE *f, const struct kp_section *s)
{
    static const char *const sources[] = {"counter", "launch", "occupancy", "derived"};
    static const char *const kinds[] = {"header", "extra",      "body",    "item",
                                        "work",   "work clock", "traffic", "traffic clock"};
    static const char *const bodies[] = {"none", "bars", "bars as", "table", "grid", "roofline", "curve", "chart"};
    fprintf(f, "%s|%s|%d|%s|%s|%d\n", s->id, s->display, s->order, s->sets, s->cc, s->passes);
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct kp_row *r = &s->rows[i];
        if (r->kind == KP_ROW_BODY)
            fprintf(f, "body %s|%s|%s|%s\n", bodies[r->body], r->label, r->group, r->cc);
        else
            fprintf(f, "%s|%s|%s|%s|%s|%s|%s\n", kinds[r->kind], r->group, r->label, r->metric, r->unit, r->cc,
                    sources[r->source]);
    }
}

/* Every construct, as it is read from our files; and what is said to be left out. */
static void constructs(void **state)
{
    char *text = NULL;
    size_t size;
    (void)state;
    load(kp_test_source(folder_of_ours));
    FILE *f = open_memstream(&text, &size);
    print_section(f, kp_section_find("KpMixer"));
    print_section(f, kp_section_find("KpRooflines"));
    const char *const names[] = {"kp__bytes_per_inst", "kp__warps_left", "kp__l1_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(f, "%s = %s\n", names[i], kp_derived_find(names[i])->expression);
    fprintf(f, "%s\n", kp_sections_note());
    fclose(f);
    kp_test_golden(text, "tests/golden/section_files.txt");
    free(text);
}

static void sets_and_order(void **state)
{
    const struct kp_section **chosen;
    size_t n, at = 0;
    char *err;
    (void)state;
    load(kp_test_source(folder_of_ours)); /* again: nothing changes */
    const struct kp_section *s = kp_sections(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(!i || s[i - 1].order <= s[i].order);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(s[i].id, s[j].id);
        at += !strcmp(s[i].id, "KpMixer");
    }
    assert_int_equal(at, 1);
    assert_int_equal(kp_sections_select("mixing", "", &chosen, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_string_equal(chosen[0]->id, "KpRooflines");
    assert_string_equal(chosen[1]->id, "KpMixer");
    free(chosen);
    size_t times = 0;
    for (const char *const *name = kp_set_names(); *name; name++)
        times += !strcmp(*name, "mixing");
    assert_int_equal(times, 1);
}

static void a_built_in_gives_way(void **state)
{
    size_t before, n;
    (void)state;
    const struct kp_section *old = kp_section_find("Occupancy"), *held = kp_sections(&before);
    int order = old->order;
    load_text("Identifier: 'Occupancy' DisplayName: 'Mine' Sets { Identifier: 'basic' }\n"
              "Header { Metrics { Label: 'Grid' Name: 'launch__grid_size' } }");
    const struct kp_section *s = kp_section_find("Occupancy");
    kp_sections(&n);
    assert_int_equal(n, before);
    assert_string_equal(s->display, "Mine");
    assert_int_equal(s->n_rows, 1);
    assert_int_equal(s->order, order);              /* its own, where the file gives none */
    assert_string_equal(old->display, "Occupancy"); /* what a reader holds stays as it was */
    assert_non_null(held[0].id);
    load_text("Identifier: 'Occupancy' Order: 1");
    assert_int_equal(kp_section_find("Occupancy")->order, 1);
    assert_ptr_equal(kp_sections(&n), kp_section_find("Occupancy")); /* it has moved to the front */
}

static void the_quick_section_stays(void **state)
{
    const struct kp_section *quick;
    (void)state;
    load_text("Identifier: 'Quick' Header { Metrics { Name: 'gpu__time_duration.sum' } }");
    quick = kp_section_quick();
    assert_string_equal(quick->id, "Quick");
    assert_int_equal(quick->n_rows, 1);
    assert_int_equal(quick->passes, KP_PASSES_ONE);
    load_text("Identifier: 'Lone'");
    assert_int_equal(kp_section_find("Lone")->passes, KP_PASSES_ANY);
    assert_int_equal(kp_section_find("Lone")->order, INT_MAX);
    assert_string_equal(kp_section_find("Lone")->display, "Lone");
    assert_ptr_equal(kp_section_quick(), kp_section_find("Quick"));
}

/* A table or chart without metrics has the rows of the built-in body of its title. */
static void known_bodies(void **state)
{
    size_t n, bodies = 0;
    const struct kp_section *s = kp_sections_builtin(&n);
    (void)state;
    for (size_t i = 0; i < n && !bodies; i++)
        for (size_t j = 0; j < s[i].n_rows; j++) {
            if (s[i].rows[j].kind != KP_ROW_BODY)
                continue;
            char text[512];
            snprintf(text, sizeof text,
                     "Identifier: 'Known' Body { Items { MemorySharedTable { Label: '%s' } }"
                     " Items { Table { Label: 'T' Metrics { Name: 'sm__cycles_active.sum' } } } }",
                     s[i].rows[j].label);
            load_text(text);
            const struct kp_section *known = kp_section_find("Known");
            assert_int_equal(known->rows[0].body, s[i].rows[j].body);
            size_t end = j + 1;
            for (; end < s[i].n_rows && s[i].rows[end].kind != KP_ROW_BODY; end++)
                assert_string_equal(known->rows[end - j].metric, s[i].rows[end].metric);
            assert_string_equal(known->rows[end - j].label, "T");
            assert_int_equal(known->n_rows, end - j + 2);
            bodies++;
            break;
        }
    load_text("Identifier: 'Unknown' Body { Items { MemoryChart { Label: 'of the deep sea' } } }");
    assert_int_equal(kp_section_find("Unknown")->n_rows, 0);
    assert_string_equal(kp_sections_note(), "ignored in section files: 'MemoryChart' at test.section:1:38");
}

/* A metric may be defined in a file that is read later; a definition goes before all other sources. */
static void sources(void **state)
{
    const char *folder = kp_test_folder();
    (void)state;
    write_file(folder, "a.section",
               "Identifier: 'SourcesA' Header {\n"
               "Metrics { Name: 'kp__later' } Metrics { Name: 'launch__unheard_of' } Metrics { Name: 'device__x' }\n"
               "Metrics { Name: 'launch__waves_per_multiprocessor' } Metrics { Name: 'launch__occupancy_per_x' }\n"
               "Metrics { Name: 'launch__stack_size' } Metrics { Name: 'sm__maximum_warps_per_active_cycle_pct' }\n"
               "Metrics { Name: 'numa__id_cpu' } Metrics { Name: 'sm__cycles_active.sum' } }");
    write_file(folder, "b.section",
               "Identifier: 'SourcesB' MetricDefinitions {\n"
               "MetricDefinitions { Name: 'kp__later' Expression: 'launch__grid_size * 2' }\n"
               "MetricDefinitions { Name: 'launch__stack_size' Expression: '1' } }");
    write_file(folder, ".hidden.section", "this is not read {");
    write_file(folder, "c.section.bak", "nor this {");
    load(folder);
    kp_test_remove_folder(folder);
    static const enum kp_source expected[] = {KP_SRC_DERIVED,   KP_SRC_LAUNCH,    KP_SRC_LAUNCH,
                                              KP_SRC_OCCUPANCY, KP_SRC_OCCUPANCY, KP_SRC_DERIVED,
                                              KP_SRC_OCCUPANCY, KP_SRC_LAUNCH,    KP_SRC_COUNTER};
    const struct kp_section *s = kp_section_find("SourcesA");
    assert_int_equal(s->n_rows, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].source != expected[i])
            fail_msg("%s is of source %d", s->rows[i].metric, s->rows[i].source);
    assert_string_equal(kp_sections_note(), "");
}

static void notes(void **state)
{
    (void)state;
    load_text("Identifier: 'Notes' Ordr: 3 Ordr: 4\nZebra { }\n"
              "Header { Metrics { Label: 'x' Name: 'a__b.sum' Filtre { MinArch: CC_80 } } }\n"
              "Body { Items { Timeline { } } Items { Table { Metrics { Name: 'group:x' } } } }");
    assert_string_equal(kp_sections_note(), "ignored in section files: "
                                            "'Ordr' at test.section:1:21 (did you mean 'Order'?), "
                                            "'Zebra' at test.section:2:1, "
                                            "'Filtre' at test.section:3:48 (did you mean 'Filter'?), "
                                            "'Timeline' at test.section:4:16, 'group:x' at test.section:4:57");
    assert_int_equal(kp_section_find("Notes")->order, INT_MAX);
    assert_string_equal(kp_section_find("Notes")->rows[0].cc, "");
    load_text("Identifier: 'Many' A1{} B2{} C3{} D4{} E5{} F6{} G7{} H8{}");
    assert_non_null(strstr(kp_sections_note(), "'F6' at test.section:1:45 and 2 more"));
    load_text("Identifier: 'None'");
    assert_string_equal(kp_sections_note(), "");
}

static void errors(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "test.section:1:1: section without Identifier"},
        {"DisplayName: 'x'\n Identifer: 'y'",
         "test.section:2:2: unknown field 'Identifer'; did you mean 'Identifier'?"},
        {"Identifier: 'a b'", "test.section:1:1: 'a b' is not an identifier: it has a blank or a comma"},
        {"Identifier: 'Err' Sets { Identifier: 'a,b' }",
         "test.section:1:26: 'a,b' is not an identifier: it has a blank or a comma"},
        {"Identifier: 'Err' Sets { }", "test.section:1:19: set without Identifier"},
        {"Identifier: 'Err' Order: first", "test.section:1:19: Order must be a whole number"},
        {"Identifier: 'Err' Order: 1.5", "test.section:1:19: Order must be a whole number"},
        {"Identifier: 'Err' Order: 99999999999", "test.section:1:19: Order must be a whole number"},
        {"Identifier: 'Err'\nHeader {\n  Metrics {\n    Label: 'x'\n    Nmae: 'y'\n  }\n}",
         "test.section:5:5: unknown field 'Nmae'; did you mean 'Name'?"},
        {"Identifier: 'Err' Header { Metrics { Label: 'x' } }", "test.section:1:28: metric without Name"},
        {"Identifier: 'Err' Header { Metrics { Name: 'x' Options { Label: 'x' } } }",
         "test.section:1:48: metric without Name"},
        {"Identifier: 'Err' Metrics { Metrics { Name: 'a b' } }", "test.section:1:39: 'a b' is not a metric name"},
        {"Identifier: 'Err' Metrics { Metrics { Name: 'x' Filter { MinArch: SM_90 } } }",
         "test.section:1:58: 'SM_90' is not an architecture; write one such as CC_90"},
        {"Identifier: 'Err' Filter { Items { MaxArch: CC_ } }",
         "test.section:1:36: 'CC_' is not an architecture; write one such as CC_90"},
        {"Identifier: 'Err' Filter { MinArch: 99999999999 }",
         "test.section:1:28: '99999999999' is not an architecture; write one such as CC_90"},
        {"Identifier: 'Err' MetricDefinitions { MetricDefinitions { Name: 'x' } }",
         "test.section:1:39: definition without Expression"},
        {"Identifier: 'Err' MetricDefinitions { MetricDefinitions { Name: 'kp__e'\n Expression: '1 + (' } }",
         "test.section:2:2: metric, number or '(' expected at the end of '1 + ('"},
        {"Identifier: 'Err' Body { Items { SuffixTable { BaseNames { BaseName { } } } } }",
         "test.section:1:60: base name without Name"},
        {"Identifier: 'Err' Body { Items { SuffixTable { Suffixes { Suffix { Name: ' x' } }\n"
         "BaseNames { BaseName { Name: 'y' } } } } }",
         "test.section:2:13: 'y x' is not a metric name"},
        {"Identifier: 'Err' Header {\n", "test.section:2:1: '}' expected"},
    };
    size_t before, n;
    (void)state;
    const struct kp_section *held = kp_sections(&before);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *message = load_error(rows[i].text);
        assert_string_equal(message, rows[i].message);
        free(message);
    }
    assert_ptr_equal(kp_sections(&n), held); /* nothing was added */
    assert_null(kp_section_find("Err"));
    assert_null(kp_derived_find("kp__e"));
}

/* What a failure of a later file leaves of an earlier one: nothing. */
static void all_or_nothing(void **state)
{
    const char *folder = kp_test_folder();
    char *err = NULL;
    (void)state;
    write_file(folder, "a.section",
               "Identifier: 'Early' MetricDefinitions {\n"
               "MetricDefinitions { Name: 'kp__early' Expression: '1' } }");
    write_file(folder, "b.section", "Identifier: ");
    assert_int_equal(kp_sections_load(folder, &err), -EINVAL);
    assert_non_null(strstr(err, "/b.section:1:13: value expected"));
    free(err);
    assert_null(kp_section_find("Early"));
    assert_null(kp_derived_find("kp__early"));
    write_file(folder, "b.section", "Identifier: 'Late'"); /* mended, it can be tried again */
    load(folder);
    assert_non_null(kp_section_find("Early"));
    assert_non_null(kp_section_find("Late"));
    kp_test_remove_folder(folder);
}

static void folders_and_files_that_cannot_be_read(void **state)
{
    const char *folder = kp_test_folder();
    char *err = NULL, path[PATH_MAX], expected[2 * PATH_MAX];
    (void)state;
    assert_int_equal(kp_sections_load("/nowhere/at/all", &err), -EINVAL);
    assert_string_equal(err, "cannot read folder '/nowhere/at/all': No such file or directory");
    free(err);
    load(folder); /* an empty one is worth a note */
    snprintf(expected, sizeof expected, "no file *.section in '%s'", folder);
    assert_string_equal(kp_sections_note(), expected);
    kp_test_remove_folder(folder);

    folder = kp_test_folder();
    snprintf(path, sizeof path, "%s/pipe.section", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(kp_sections_load(folder, &err), -EINVAL); /* and does not wait for a writer */
    snprintf(expected, sizeof expected, "cannot read '%s': it is not a file", path);
    assert_string_equal(err, expected);
    free(err);
    unlink(path);
    write_file(folder, "x.section", "");
    snprintf(path, sizeof path, "%s/x.section", folder);
    assert_int_equal(truncate(path, 100), 0); /* all NUL */
    assert_int_equal(kp_sections_load(folder, &err), -EINVAL);
    snprintf(expected, sizeof expected, "cannot read '%s': it is not text", path);
    assert_string_equal(err, expected);
    free(err);
    assert_int_equal(truncate(path, 17 << 20), 0);
    assert_int_equal(kp_sections_load(folder, &err), -EINVAL);
    snprintf(expected, sizeof expected, "cannot read '%s': it is too large", path);
    assert_string_equal(err, expected);
    free(err);
    assert_int_equal(kp_sections_load(path, &err), -EINVAL);
    snprintf(expected, sizeof expected, "cannot read folder '%s': Not a directory", path);
    assert_string_equal(err, expected);
    free(err);
    kp_test_remove_folder(folder);
}

struct chip {
    const char *name;
    int major, minor, opens;
    struct kp_host *host;
};

static int exists(const char *metric, void *arg)
{
    const struct chip *chip = arg;
    struct kp_metric_props props;
    if (kp_host_metric(chip->host, metric, &props))
        fail_msg("%s (CC %d.%d) has no %s", chip->name, chip->major, chip->minor, metric);
    return 0;
}

/* The example of the manual (examples/sections): all of it is used, and every chip that it is for has its metrics. */
static void the_example(void **state)
{
    static struct chip chips[] = {
#define KP_CHIP(name, major, minor, opens, passes) {name, major, minor, opens, NULL},
#include "tests/support/chips.def"
#undef KP_CHIP
    };
    size_t checked = 0;
    (void)state;
    load(kp_test_source("examples/sections"));
    assert_string_equal(kp_sections_note(), "");
    const struct kp_section *s = kp_section_find("TensorCores");
    assert_true(kp_section_in_set(s, "tensor"));
    const struct kp_cupti *cupti = kp_test_real_cupti();
    for (struct chip *chip = chips; chip < chips + sizeof chips / sizeof *chips; chip++) {
        if (!chip->opens || !kp_cc_matches(s->cc, chip->major, chip->minor))
            continue;
        assert_int_equal(kp_host_open(cupti, chip->name, NULL, &chip->host), 0);
        for (size_t i = 0; i < s->n_rows; i++) {
            const struct kp_row *row = &s->rows[i];
            bool option = i && !strcmp(row->label, s->rows[i - 1].label) &&
                          kp_cc_matches(s->rows[i - 1].cc, chip->major, chip->minor);
            if (option || row->kind == KP_ROW_BODY || !kp_cc_matches(row->cc, chip->major, chip->minor))
                continue;
            checked++;
            if (row->source == KP_SRC_DERIVED)
                assert_int_equal(kp_derived_inputs(kp_derived_find(row->metric), exists, chip), 0);
            else
                exists(row->metric, chip);
        }
        kp_host_close(chip->host);
    }
    assert_true(checked > 100);
}

/* --set may stand before the folder that brings the set, and a child that has gone elsewhere finds the folder, too. */
static void the_command_takes_the_folder_first(void **state)
{
    const char *folder = kp_test_folder();
    char line[4 * PATH_MAX], *whole = realpath(folder, NULL), out[PATH_MAX] = "";
    (void)state;
    write_file(folder, "x.section", "Identifier: 'X' Sets { Identifier: 'set_of_x' }");
    snprintf(line, sizeof line, "cd %s && %s --set set_of_x --section-folder . --version >out 2>&1", folder,
             kp_test_build("kprof"));
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, "cd %s && KPROF_SECTION_FOLDER=. %s --section X --version >out 2>&1", folder,
             kp_test_build("kprof"));
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, "cd %s && %s --set set_of_x --section-folder /nowhere --version 2>out", folder,
             kp_test_build("kprof"));
    assert_int_not_equal(system(line), 0);
    snprintf(line, sizeof line, "%s/out", folder);
    char *text = kp_test_read(line);
    assert_string_equal(text, "==ERROR== --section-folder: cannot read folder '/nowhere': No such file or directory\n");
    free(text);
    snprintf(line, sizeof line, "cd %s && KPROF_SECTION_FOLDER=/nowhere %s --version 2>out", folder,
             kp_test_build("kprof"));
    assert_int_not_equal(system(line), 0);
    snprintf(line, sizeof line, "%s/out", folder);
    text = kp_test_read(line);
    assert_string_equal(text,
                        "==ERROR== KPROF_SECTION_FOLDER: cannot read folder '/nowhere': No such file or directory\n");
    free(text);
    snprintf(line, sizeof line, "cd %s && %s --section-folder . sh -c 'echo $KPROF_SECTION_FOLDER' 2>&1", folder,
             kp_test_build("kprof"));
    FILE *f = popen(line, "re");
    assert_non_null(f);
    assert_non_null(fgets(out, sizeof out, f));
    while (fgets(line, sizeof line, f))
        ;
    pclose(f);
    out[strcspn(out, "\n")] = '\0';
    assert_string_equal(out, whole);
    free(whole);
    kp_test_remove_folder(folder);
}

/* One change: a byte replaced, a stretch taken out or doubled, the rest cut off, or a telling word put in. */
static void mutate(char *text, size_t size, unsigned *seed)
{
    static const char *const words[] = {"{",        "}",         "<",        ">",         "[",
                                        "]",        "\"",        "'",        "\\",        ":",
                                        "#",        "Items {",   "Filter {", "Metrics {", "MinArch: CC_999",
                                        "Name: ''", "Options {", "\\u",      "-",         "0x"};
    size_t len = strlen(text), at = (size_t)rand_r(seed) % (len + 1), n = (size_t)rand_r(seed) % 40;
    if (n > len - at)
        n = len - at;
    switch (rand_r(seed) % 5) {
    case 0:
        if (at < len)
            text[at] = (char)(1 + rand_r(seed) % 255);
        break;
    case 1:
        memmove(text + at, text + at + n, len - at - n + 1);
        break;
    case 2:
        if (len + n < size) {
            memmove(text + at + n, text + at, len - at + 1);
            memcpy(text + at, text + at + n, n);
        }
        break;
    case 3:
        text[at] = rand_r(seed) % 8 ? text[at] : '\0';
        break;
    default: {
        const char *word = words[(size_t)rand_r(seed) % (sizeof words / sizeof *words)];
        if (len + strlen(word) < size) {
            memmove(text + at + strlen(word), text + at, len - at + 1);
            memcpy(text + at, word, strlen(word));
        }
    }
    }
}

static int read_broken(const char *text, char **err)
{
    struct kp_section_reader r = {.file = "broken.section"};
    struct kp_arena tree = {0};
    const struct kp_field *root;
    struct kp_section_file file;
    int rc = kp_prototext_parse(&tree, text, &root, err);
    if (!rc)
        rc = kp_section_tree_read(&r, root, &file, err);
    if (!rc)
        for (size_t i = 0; i < file.section.n_rows; i++) { /* whole, whatever the text was */
            const struct kp_row *row = &file.rows[i];
            assert_true(row->label && row->metric && row->unit && row->cc && row->group);
            assert_true(!strpbrk(row->metric, " ,\n"));
        }
    kp_arena_free(&tree);
    kp_arena_free(&r.arena);
    return rc;
}

/* Broken files end in a message or in a section, never worse; the sanitised builds see the rest. */
static void broken_files(void **state)
{
    static const char *const names[] = {"tests/data/sections/mixer.section", "tests/data/sections/rooflines.section"};
    size_t failed = 0, read = 0;
    unsigned seed = 4711;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *good = kp_test_read(kp_test_source(names[i])), *err = NULL;
        size_t size = 2 * strlen(good);
        char *text = malloc(size);
        assert_int_equal(read_broken(good, &err), 0);
        for (int round = 0; round < 1000; round++) {
            strcpy(text, good);
            for (int changes = 1 + round % 4; changes; changes--)
                mutate(text, size, &seed);
            char *tight = strdup(text); /* so that a step beyond its end is seen */
            int rc = read_broken(tight, &err);
            assert_true(rc == 0 || rc == -EINVAL);
            assert_int_equal(rc == -EINVAL, err != NULL);
            failed += rc != 0;
            read += rc == 0;
            free(err);
            free(tight);
        }
        free(text);
        free(good);
    }
    assert_true(failed > 500);
    assert_true(read > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructs),
        cmocka_unit_test(sets_and_order),
        cmocka_unit_test(a_built_in_gives_way),
        cmocka_unit_test(the_quick_section_stays),
        cmocka_unit_test(known_bodies),
        cmocka_unit_test(sources),
        cmocka_unit_test(notes),
        cmocka_unit_test(errors),
        cmocka_unit_test(all_or_nothing),
        cmocka_unit_test(folders_and_files_that_cannot_be_read),
        cmocka_unit_test(the_example),
        cmocka_unit_test(the_command_takes_the_folder_first),
        cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("report/section_files", tests, NULL, NULL);
}
