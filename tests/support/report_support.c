#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/pages/details.h"
#include "report/write/text_writer.h"
#include "tests/support/report_support.h"

static int append(void *arg, const char *text, size_t len)
{
    struct kp_test_text *t = arg;
    char *grown = realloc(t->text, t->len + len + 1);
    if (!grown)
        return -ENOMEM;
    memcpy(grown + t->len, text, len);
    t->len += len;
    grown[t->len] = '\0';
    t->text = grown;
    return 0;
}

struct kp_sink kp_test_sink(struct kp_test_text *t)
{
    return (struct kp_sink){append, t};
}

/* Sets missing variables, because the folder changes later, and for programs that a test starts. */
__attribute__((constructor)) static void start_in_the_source(void)
{
    char build[PATH_MAX];
    if (realpath(".", build))
        setenv("KP_TEST_SRC", build, 0);
    if (realpath("build", build))
        setenv("KP_TEST_BUILD", build, 0);
}

static const char *below(char path[PATH_MAX], const char *variable, const char *otherwise, const char *name)
{
    const char *root = getenv(variable);
    snprintf(path, PATH_MAX, "%s/%s", root ? root : otherwise, name);
    return path;
}

const char *kp_test_source(const char *name)
{
    static char path[PATH_MAX];
    return below(path, "KP_TEST_SRC", ".", name);
}

const char *kp_test_build(const char *name)
{
    static char path[PATH_MAX];
    return below(path, "KP_TEST_BUILD", "build", name);
}

char *kp_test_read(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        fail_msg("cannot read %s: %s", path, strerror(errno));
    struct kp_test_text t = {calloc(1, 1), 0};
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        assert_int_equal(append(&t, chunk, n), 0);
    fclose(f);
    return t.text;
}

static void compare(const char *text, const char *reference, const char *what_to_do)
{
    const char *path = kp_test_source(reference);
    char *expected = kp_test_read(path);
    const char *a = expected, *b = text;
    for (int line = 1; *a || *b; line++) {
        size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
        if (la != lb || strncmp(a, b, la + (a[la] == '\n')))
            fail_msg("%s:%d\nexpected: %.*s\n     got: %.*s%s", path, line, (int)la, a, (int)lb, b, what_to_do);
        a += la + (a[la] == '\n');
        b += lb + (b[lb] == '\n');
    }
    free(expected);
}

void kp_test_reference(const char *text, const char *reference)
{
    compare(text, reference, "");
}

void kp_test_golden(const char *text, const char *golden)
{
    if (getenv("KP_TEST_UPDATE")) {
        FILE *f = fopen(kp_test_source(golden), "we");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
    }
    compare(text, golden, "\n(if that is what you meant, `make goldens` writes the file anew)");
}

int kp_test_occurrences(const char *path, const char *what)
{
    int n = 0;
    char *text = kp_test_read(path);
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    free(text);
    return n;
}

const char *kp_test_folder(void)
{
    static char path[PATH_MAX];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/kprof-test.XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

void kp_test_remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    char path[PATH_MAX];
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(d);
    assert_int_equal(rmdir(folder), 0);
}

/* A line of the data file split at its tabs. */
static size_t split(char *line, char *fields[8])
{
    size_t n = 0;
    for (char *field; n < 8 && (field = strsep(&line, "\t"));)
        fields[n++] = field;
    return n;
}

static void add_launch(struct kp_recording *r, char *const *field)
{
    r->results = realloc(r->results, (r->n + 1) * sizeof *r->results);
    assert_non_null(r->results);
    struct kp_result *result = &r->results[r->n];
    *result = (struct kp_result){0};
    struct kp_launch_info *l = &result->launch;
    l->id = l->ordinal = r->n++;
    l->mangled = kp_strdup(field[1]);
    l->demangled = kp_strdup(field[1]);
    assert_int_equal(sscanf(field[2], "%u %u %u", &l->grid[0], &l->grid[1], &l->grid[2]), 3);
    assert_int_equal(sscanf(field[3], "%u %u %u", &l->block[0], &l->block[1], &l->block[2]), 3);
    l->context_id = strtoull(field[4], NULL, 10);
    l->stream_id = strtoull(field[5], NULL, 10);
    l->device = atoi(field[6]);
    assert_int_equal(sscanf(field[7], "%d %d", &l->cc_major, &l->cc_minor), 2);
    l->chip = kp_strdup("GH100");
    l->passes = 10;
    l->profiler_ns = 2.5e8;
}

static void add_metric(struct kp_result *r, char *const *field)
{
    int rc = -1;
    if (!strcmp(field[2], "count"))
        rc = kp_result_set_count(r, field[0], field[1], strtoull(field[3], NULL, 10));
    else if (!strcmp(field[2], "real"))
        rc = kp_result_set_real(r, field[0], field[1], strtod(field[3], NULL));
    else if (!strcmp(field[2], "text"))
        rc = kp_result_set_text(r, field[0], field[1], field[3]);
    assert_int_equal(rc, 0);
}

static void fill_session(struct kp_session *s, size_t launches)
{
    *s = (struct kp_session){
        .pid = 994,
        .exe = kp_strdup("/home/user/bin/patterns"),
        .cmdline = kp_strdup("./patterns 'a b'"),
        .host = kp_strdup("127.0.0.1"),
        .kprof_version = kp_strdup("0.1.0"),
        .start_unix_ns = 1700000000123456789,
        .end_unix_ns = 1700000009123456789,
        .driver_version = 13000,
        .cupti_version = kp_strdup("13.0.85"),
        .set = kp_strdup("basic"),
        .sections = kp_strdup(""),
        .metrics = kp_strdup(""),
        .cache_control = kp_strdup("all"),
        .clock_control = kp_strdup("none"),
        .environment = kp_strdup("CUDA_VISIBLE_DEVICES=0,1\nKPROF_EXPORT=\"a=b\"\nLD_PRELOAD=\n"),
        .launches_seen = launches,
        .launches_profiled = launches,
        .passes = 10 * launches,
        .profiling_ns = 3.5e9 + 0.25, /* is shown in whole ns */
        .complete = true,
    };
}

struct kp_recording kp_test_recording_of(const char *data)
{
    struct kp_recording r = {0};
    char *text = kp_test_read(kp_test_source(data)), *rest = text, *field[8];
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line == '#' || !*line)
            continue;
        size_t n = split(line, field);
        if (n == 8)
            add_launch(&r, field);
        else if (n == 4 && r.n)
            add_metric(&r.results[r.n - 1], field);
        else
            fail_msg("bad line in the data file: %s", line);
    }
    free(text);
    fill_session(&r.session, r.n);
    return r;
}

struct kp_recording kp_test_recording(void)
{
    return kp_test_recording_of("tests/golden/h200_basic.tsv");
}

void kp_test_recording_free(struct kp_recording *r)
{
    for (size_t i = 0; i < r->n; i++)
        kp_result_free(&r->results[i]);
    free(r->results);
    kp_session_free(&r->session);
}

int kp_test_launch(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                   const struct kp_result *r)
{
    struct kp_text_writer t;
    kp_write_text_writer_init(&t, out, d);
    t.base.session = s;
    int rc = kp_details_launch(&t.base, r, NULL), failed = kp_write_end(&t.base);
    return rc ? rc : failed;
}

int kp_test_section(struct kp_out *o, const struct kp_section *s, const struct kp_view *v, bool asked_for)
{
    struct kp_text_writer t;
    kp_write_text_writer_init(&t, o->sink, o->display);
    t.base.session = v->session;
    t.base.launch = &v->result->launch;
    int rc = kp_details_section(&t.base, s, v, asked_for);
    o->rc = kp_write_end(&t.base);
    return rc;
}
