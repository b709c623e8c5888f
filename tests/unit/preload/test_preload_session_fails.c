/* The session where things fail, one at a time: each step of the file, and each piece of memory. No result is lost
 * without a word. The file, stacks, the timeline and the outcome are this test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/text.h"
#include "preload/os/outcome.h"
#include "preload/session/session.h"
#include "preload/who/stack.h"
#include "preload/who/timeline.h"
#include "report/store/store.h"
#include "tests/support/child_support.h"
#include "tests/support/collect_support.h"
#include "tests/support/end_support.h"
#include "tests/support/report_support.h"

/* ---- what fails, and what was done ---- */

static struct {
    const char *fails; /* a step of the file */
    int nth;           /* time that it comes, from 1 */
    bool silent;       /* there is no memory for a message */
    int met;           /* how often it came */
    int begun, ended;  /* transactions */
    int stored, removed, timeline_stops;
    kp_failure_set failures;
    bool python_missing, refused, timeline;
    uint64_t dropped, stacks;
    uint64_t launches; /* that the file has */
    struct kp_session facts;
    char device[16], metrics[32];
} now;

/* A step of the file. */
static int step(const char *name, char **err)
{
    if (!now.fails || strcmp(name, now.fails) || ++now.met != now.nth)
        return 0;
    if (now.silent || asprintf(err, "%s failed", name) < 0)
        *err = NULL;
    return -EIO;
}

static bool has_failed(enum kp_failure kind)
{
    return now.failures & kp_failure_bit(kind);
}

/* ---- the file ---- */

static char a_store;

int kp_store_create(const char *path, bool overwrite, struct kp_store **out, char **err)
{
    (void)overwrite;
    CHECK(*path == '/');
    int rc = step("create", err);
    *out = rc ? NULL : (struct kp_store *)&a_store;
    return rc;
}

void kp_store_close(struct kp_store *s)
{
    CHECK(!s || s == (struct kp_store *)&a_store);
}

bool kp_store_is_database(const char *path)
{
    return strstr(path, "database");
}

void kp_store_remove(const char *path)
{
    CHECK(*path == '/');
    now.removed++;
}

int kp_store_begin(struct kp_store *s, char **err)
{
    CHECK(s);
    int rc = step("begin", err);
    now.begun += !rc;
    return rc;
}

int kp_store_commit(struct kp_store *s, char **err)
{
    CHECK(s);
    int rc = step("commit", err);
    now.ended += !rc;
    return rc;
}

int kp_store_put_session(struct kp_store *s, const struct kp_session *session, char **err)
{
    CHECK(s);
    now.facts = *session;
    snprintf(now.device, sizeof(now.device), "%s", session->n_devices ? session->devices[0].chip : "");
    snprintf(now.metrics, sizeof(now.metrics), "%s", session->metrics);
    return step("put_session", err);
}

int kp_store_put_result(struct kp_store *s, const struct kp_result *result, char **err)
{
    CHECK(s && result->launch.mangled);
    int rc = step("put_result", err);
    now.launches += !rc;
    return rc;
}

int kp_store_replace_result(struct kp_store *s, const struct kp_result *result, char **err)
{
    CHECK(s && result->launch.mangled);
    return step("replace_result", err);
}

int kp_store_put_alike(struct kp_store *s, const struct kp_launch_info *l, char **err)
{
    CHECK(s && !l->id && l->alike == 5);
    return step("put_alike", err);
}

int kp_store_put_stack(struct kp_store *s, const struct kp_stack *stack, char **err)
{
    CHECK(s && stack->id == 1);
    return step("put_stack", err);
}

int kp_store_put_code(struct kp_store *s, const struct kp_code *code, char **err)
{
    (void)s, (void)code, (void)err;
    CHECK(false);
    return 0;
}

int kp_store_put_activities(struct kp_store *s, const struct kp_activity *at, size_t n, char **err)
{
    CHECK(s && at && n == 1);
    return step("put_activities", err);
}

int kp_store_put_activity_name(struct kp_store *s, uint32_t number, const char *name, char **err)
{
    CHECK(s && number < 2 && !strcmp(name, number ? "copy" : "k()"));
    return step("put_activity_name", err);
}

int kp_store_link_activities(struct kp_store *s, const struct kp_launch_note *notes, size_t n, char **err)
{
    CHECK(s && notes && n == 1);
    return step("link_activities", err);
}

int kp_store_each_result(struct kp_store *s, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    (void)fn, (void)arg;
    CHECK(s);
    return step("each_result", err);
}

/* What pages of a file call, and what other tests share: no session is read here. */
int kp_store_open(const char *path, struct kp_store **out, char **err)
{
    (void)path, (void)out, (void)err;
    return -ENOENT;
}

int kp_store_each_result_with(struct kp_store *s, const char *const *only, int (*fn)(struct kp_result *r, void *arg),
                              void *arg, char **err)
{
    (void)only;
    return kp_store_each_result(s, fn, arg, err);
}

int kp_store_get_session(struct kp_store *s, struct kp_session *out, char **err)
{
    (void)s, (void)out, (void)err;
    return -ENOENT;
}

struct kp_lookup kp_store_lookup(struct kp_store *s)
{
    (void)s;
    return (struct kp_lookup){.arg = NULL};
}

/* ---- stacks ---- */

static const struct kp_stack a_stack = {.id = 1};

int kp_stack_each_new(int (*fn)(const struct kp_stack *s, void *arg), void *arg)
{
    return now.stacks ? fn(&a_stack, arg) : 0;
}

uint64_t kp_stack_name_all(void)
{
    return now.stacks;
}

const char *kp_stack_python_missing(void)
{
    return now.python_missing ? "it is a test" : NULL;
}

/* Of two the second one is gone. */
int kp_stack_get(uint64_t id, struct kp_stack *out)
{
    *out = id == 1 ? a_stack : (struct kp_stack){0};
    return id == 1 ? 0 : -ENOENT;
}

/* ---- the timeline ---- */

bool kp_timeline_has_begun(void)
{
    return now.timeline;
}

bool kp_timeline_is_on(void)
{
    return now.timeline;
}

void kp_timeline_stop(void)
{
    now.timeline_stops++;
}

bool kp_timeline_refused(void)
{
    return now.refused;
}

size_t kp_timeline_take(struct kp_activity **at, uint32_t *names)
{
    *at = calloc(1, sizeof(**at));
    CHECK(*at);
    *names = 2;
    return 1;
}

const char *kp_timeline_text(uint32_t name, bool *mangled)
{
    *mangled = !name;
    return name ? "copy" : "_Z1kv";
}

uint64_t kp_timeline_dropped(void)
{
    return now.dropped;
}

struct kp_launch_note *kp_timeline_notes(size_t *n)
{
    struct kp_launch_note *notes = calloc(1, sizeof(*notes));
    CHECK(notes && !now.dropped);
    *n = 1;
    return notes;
}

/* ---- the outcome ---- */

void kp_outcome_failed(enum kp_failure kind)
{
    now.failures |= kp_failure_bit(kind);
}

void kp_outcome_stored(const char *path)
{
    CHECK(*path == '/');
    now.stored++;
}

bool kp_outcome_is_awaited(void)
{
    return false;
}

char *kp_outcome_ended(uint64_t seen, uint64_t matched)
{
    (void)seen, (void)matched;
    return NULL;
}

/* ---- memory ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { HAS_HOOK = true };
static __thread int fails_in; /* the number of the piece that is missing; 0: all are there */
static __thread bool all;     /* what follows it is, too */
static __thread int asked;    /* pieces so far */

static bool has_none(void)
{
    int n = ++asked;
    return fails_in && (n == fails_in || (all && n > fails_in));
}

/* In front of the C library's, which itself calls these, too. */
#define HOOK __attribute__((visibility("default")))
HOOK void *malloc(size_t bytes);
HOOK void *calloc(size_t n, size_t bytes);
HOOK void *realloc(void *old, size_t bytes);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes)
{
    return has_none() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return has_none() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return has_none() ? NULL : __libc_realloc(old, bytes);
}
#else
enum { HAS_HOOK = false };
static int fails_in, asked;
static bool all;
#endif

/* From here on the `nth` piece of memory is missing, and with `and_all` all that follow. 0: all are there. */
static void miss(int nth, bool and_all)
{
    all = and_all;
    asked = 0;
    fails_in = nth;
}

/* ---- a session, which is one a process ---- */

static char folder[PATH_MAX / 2], log_file[PATH_MAX];
static struct kp_options options;
/* Of several cases the one that is tried now; a child inherits it. */
static int current;

/* How a child has ended that ran it. */
static int end_of(void (*body)(void))
{
    int status = -1;
    snprintf(folder, sizeof(folder), "%s", kp_test_folder());
    snprintf(log_file, sizeof(log_file), "%s/log", folder);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        body();
        kp_test_end(RIGHT);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    kp_test_remove_folder(folder);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void in_a_child(void (*body)(void))
{
    int code = end_of(body);
    if (code)
        fail_msg("case %d ended with %d", current, code);
}

static CUresult driver_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

/* With options NAME=value beside those of the files; `export` NULL: nobody asks for one. */
static void choose(const char *export, char *one, char *other)
{
    char *env[] = {NULL, one ? one : "", other ? other : "", NULL, NULL}, *err = NULL;
    CHECK(asprintf(&env[0], "KPROF_LOG_FILE=%s", log_file) > 0);
    if (export)
        CHECK(asprintf(&env[3], "KPROF_EXPORT=%s/%s", folder, export) > 0);
    CHECK(!kp_options_from_env(&options, env, &err));
    free(env[0]);
    free(env[3]);
}

static int open_session(void)
{
    static const struct kp_driver driver = {.cuDriverGetVersion = driver_version};
    static const struct kp_section *const none[] = {NULL};
    return kp_session_open(&options, &driver, none, 0);
}

static struct kp_result launch(uint64_t ordinal)
{
    struct kp_result r = {.launch = {.ordinal = ordinal,
                                     .mangled = kp_strdup("_Z1kv"),
                                     .demangled = kp_strdup("k()"),
                                     .chip = kp_strdup(""),
                                     .passes = 1,
                                     .counted = 1,
                                     .profiler_ns = 1e6}};
    kp_result_set_count(&r, "ordinal", "", ordinal);
    return r;
}

static void results(struct kp_result *r, size_t n)
{
    struct kp_session_entry entries[4];
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct kp_session_entry){.result = &r[i], .base = "k", .profiled = true};
    kp_session_results(entries, n);
    for (size_t i = 0; i < n; i++)
        CHECK(!r[i].metrics && !r[i].launch.mangled); /* taken */
}

static void window(size_t n)
{
    struct kp_result r[4];
    uint64_t first = kp_session_seen(n);
    for (size_t i = 0; i < n; i++)
        r[i] = launch(first + i);
    results(r, n);
}

static int lines_with(const char *what)
{
    return kp_test_occurrences(log_file, what);
}

/* Two launches, of which the first one goes on, with stacks and a timeline. */
static void whole(void)
{
    struct kp_session_told told = {1, 1, 1e6};
    struct kp_result more = launch(0);
    now.stacks = 2;
    now.timeline = true;
    kp_session_seen(1);
    window(2);
    more.launch.counted = 2;
    kp_session_replace(&more, "k", &told);
    CHECK(!more.metrics && told.counted == 2);
    kp_session_alike(&(struct kp_launch_info){.alike = 5});
    kp_session_timeline();
    kp_session_timeline_end();
    kp_session_close();
}

/* ---- each step of the file ---- */

static const struct kp_step {
    const char *fails;
    int nth;
    const char *says;  /* behind the step's message */
    const char *quiet; /* instead of the message where there is none */
    int in_report;     /* launches: those that the file has are not seen by this test's report */
} steps[] = {
    {"begin", 1, "; results from here on are in the report only", "the session file failed", 2},
    {"put_stack", 1, "; results from here on are in the report only", "the session file failed", 2},
    {"put_result", 1, "; results from here on are in the report only", "the session file failed", 2},
    {"put_result", 2, "; results from here on are in the report only", "the session file failed", 2},
    {"put_session", 2, "; results from here on are in the report only", "the session file failed", 2},
    {"commit", 1, "; results from here on are in the report only", "the session file failed", 2},
    {"begin", 2, "; results from here on are in the report only", "the session file failed", 1},
    {"replace_result", 1, "; results from here on are in the report only", "the session file failed", 1},
    {"put_session", 3, "; results from here on are in the report only", "the session file failed", 1},
    {"commit", 2, "; results from here on are in the report only", "the session file failed", 1},
    {"put_alike", 1, "\n", "the session file failed", 0},
    {"begin", 3, "; the timeline ends here", "the session file failed", 0},
    {"put_activity_name", 1, "; the timeline ends here", "the session file failed", 0},
    {"put_activity_name", 2, "; the timeline ends here", "the session file failed", 0},
    {"put_activities", 1, "; the timeline ends here", "the session file failed", 0},
    {"commit", 3, "; the timeline ends here", "the session file failed", 0},
    {"begin", 4, "; the timeline ends here", "the session file failed", 0},
    {"put_activities", 2, "; the timeline ends here", "the session file failed", 0},
    {"link_activities", 1, "; the timeline ends here", "the session file failed", 0},
    {"begin", 5, "\n", "the session file has no names of call stacks", 0},
    {"put_stack", 2, "\n", "the session file has no names of call stacks", 0},
    {"commit", 5, "\n", "the session file has no names of call stacks", 0},
    {"put_session", 4, "\n", "the session file cannot be written", 0},
    {"each_result", 1, "\n", NULL, 0},
};

enum { STEPS = sizeof(steps) / sizeof(*steps) };

/* Whether the failure means that the export lacks something that was to be in it. */
static bool is_told(const struct kp_step *s)
{
    return *s->says == ';' || !strcmp(s->fails, "put_session") || !strcmp(s->fails, "each_result");
}

static void check_step(const struct kp_step *s)
{
    char line[256];
    char *err = NULL;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err) && now.stored == 1);
    whole();
    CHECK(now.met >= s->nth);
    if (now.silent)
        snprintf(line, sizeof(line), "==ERROR== %s%s", s->quiet, s->says);
    else
        snprintf(line, sizeof(line), "==ERROR== %s failed%s", s->fails, s->says);
    CHECK(lines_with(line) == 1 && lines_with("==ERROR==") == 1);
    CHECK(lines_with("\n  k") == s->in_report);
    CHECK(has_failed(KP_FAILURE_EXPORT) == is_told(s));
    CHECK(lines_with("3 launches seen, 3 profiled") == 1);
    bool loses_timeline = strstr(s->says, "timeline");
    CHECK(now.timeline_stops == (loses_timeline ? 2 : 1));
    bool in_report_only = strstr(s->says, "report only");
    CHECK(now.facts.complete == !in_report_only);
    CHECK(!now.removed); /* an export stays */
}

static void the_step(void)
{
    now.fails = steps[current].fails;
    now.nth = steps[current].nth;
    check_step(&steps[current]);
}

static void the_step_silently(void)
{
    now.silent = true;
    the_step();
}

static void test_each_step(void **state)
{
    (void)state;
    for (current = 0; current < STEPS; current++) {
        in_a_child(the_step);
        if (steps[current].quiet)
            in_a_child(the_step_silently);
    }
}

/* ---- the file that cannot be made ---- */

/* With an export it is an error, and the session is over: the program runs on. */
static void no_export(void)
{
    static const char *const first[] = {"create", "put_session"};
    char *err = NULL;
    now.fails = first[current];
    now.nth = 1;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && kp_session_begin(true, &err) == -EIO);
    CHECK(!strncmp(err, now.fails, strlen(now.fails)));
    free(err);
    CHECK(!kp_session_is_open() && has_failed(KP_FAILURE_EXPORT) && !now.stored);
    window(2);
    CHECK(!now.begun);
    CHECK(!kp_session_begin(true, &err) && !err); /* not again */
}

static void test_no_export(void **state)
{
    (void)state;
    for (current = 0; current < 2; current++)
        in_a_child(no_export);
}

static int entries_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : (int)st.st_nlink - 2; /* folders in it */
}

/* A file of our own that fails is missed by the report alone, which then has all; nothing of it stays. */
static void no_own_file(void)
{
    static const char *const first[] = {"create", "put_session"};
    char *err = NULL, line[128];
    now.fails = first[current];
    now.nth = 1;
    CHECK(!setenv("TMPDIR", folder, 1));
    choose(NULL, NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err) && !err);
    snprintf(line, sizeof(line), "==WARNING== %s; results are lost if the program is killed\n",
             now.silent ? "no session file"
             : current  ? "put_session failed"
                        : "create failed");
    CHECK(lines_with(line) == 1);
    CHECK(now.removed == 1 && entries_of(folder) == 0);
    now.timeline = true;
    window(2);
    kp_session_timeline();
    kp_session_timeline_end();
    kp_session_close();
    CHECK(!now.begun && !now.failures && !now.stored);
    CHECK(lines_with("\n  k") == 2);
    CHECK(lines_with("==WARNING== There is no timeline: it needs a session file\n") == 1);
}

static void no_own_file_silently(void)
{
    now.silent = true;
    no_own_file();
}

static void test_no_own_file(void **state)
{
    (void)state;
    for (current = 0; current < 2; current++) {
        in_a_child(no_own_file);
        in_a_child(no_own_file_silently);
    }
}

static void own_file(void)
{
    char *err = NULL;
    CHECK(!setenv("TMPDIR", ".", 1) && !chdir(folder));
    choose(NULL, NULL, NULL);
    CHECK(!open_session() && !chdir("/")); /* the folder is that of the start */
    CHECK(!kp_session_begin(true, &err) && entries_of(folder) == 1);
    CHECK(lines_with("session.kprof, removed at the end; after a kill: kprof report /") == 1);
    window(1);
    kp_session_close();
    CHECK(now.removed == 1 && entries_of(folder) == 0);
}

/* It is dropped where the options end profiling before the first launch. */
static void own_file_that_is_not_needed(void)
{
    char *err = NULL;
    CHECK(!setenv("TMPDIR", folder, 1));
    choose(NULL, NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err) && entries_of(folder) == 1);
    kp_session_discard_if_empty();
    CHECK(now.removed == 1 && entries_of(folder) == 0 && !kp_session_is_open());
    kp_session_discard_if_empty();
    CHECK(now.removed == 1);
}

/* With a launch it goes on. */
static void own_file_that_is_needed(void)
{
    char *err = NULL;
    CHECK(!setenv("TMPDIR", folder, 1));
    choose(NULL, NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    window(1);
    kp_session_discard_if_empty();
    CHECK(!now.removed && kp_session_is_open());
    kp_session_close();
    CHECK(now.removed == 1 && entries_of(folder) == 0);
}

static void no_folder(void)
{
    char *err = NULL;
    CHECK(!setenv("TMPDIR", "/no/such/folder", 1));
    choose(NULL, NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err) && !err);
    CHECK(lines_with("==WARNING== cannot make a folder for the session: No such file or directory; set TMPDIR; results "
                     "are lost if the program is killed\n") == 1);
    window(1);
    kp_session_close();
    CHECK(lines_with("\n  k") == 1 && !now.removed);
}

static void test_own_file(void **state)
{
    (void)state;
    in_a_child(own_file);
    in_a_child(own_file_that_is_not_needed);
    in_a_child(own_file_that_is_needed);
    in_a_child(no_folder);
}

/* ---- what is told at the end ---- */

static void no_python(void)
{
    char *err = NULL;
    now.python_missing = true;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    whole();
    CHECK(lines_with("==WARNING== Call stacks have no Python frames: it is a test\n") == 1);
    CHECK(has_failed(KP_FAILURE_STACKS) && !has_failed(KP_FAILURE_IN_PART));
}

static void part_of_a_timeline(void)
{
    char *err = NULL;
    now.dropped = 7;
    now.refused = true;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    whole();
    CHECK(lines_with("==WARNING== The timeline lacks 7 activities for which there was no room") == 1);
    CHECK(lines_with("==WARNING== The timeline ends early: CUPTI did not resume recording") == 1);
    CHECK(now.facts.timeline && now.facts.timeline_dropped == 7);
    CHECK(has_failed(KP_FAILURE_IN_PART) && !has_failed(KP_FAILURE_STACKS));
}

static void no_html(void)
{
    char *err = NULL;
    choose(current ? "session.kprof" : NULL, "KPROF_HTML=/tmp/x.html", NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    window(1);
    kp_session_close();
    CHECK(lines_with("No HTML is written with LD_PRELOAD alone; `kprof report --html FILE ") == 1);
    CHECK(lines_with(current ? "/session.kprof` writes it from the export\n" : "FILE SESSION` writes it") == 1);
}

static void test_told_at_the_end(void **state)
{
    (void)state;
    in_a_child(no_python);
    in_a_child(part_of_a_timeline);
    for (current = 0; current < 2; current++)
        in_a_child(no_html);
}

/* ---- the log ---- */

static void no_log(void)
{
    static char *const bad[] = {"KPROF_LOG_FILE=/no/such/folder/log", "KPROF_LOG_FILE=%q{KP_TEST_GONE}",
                                "KPROF_LOG_FILE=.", "KPROF_LOG_FILE=/tmp/database"};
    static const char *const says[] = {"KPROF_LOG_FILE: cannot write /no/such/folder/log: No such file or directory",
                                       "%q{KP_TEST_GONE} in ", "KPROF_LOG_FILE: cannot write /",
                                       "KPROF_LOG_FILE: /tmp/database is a session, which would be lost"};
    char *err = NULL, *env[] = {bad[current], NULL};
    CHECK(!setenv("KP_TEST_GONE", "x", 1) && !kp_options_from_env(&options, env, &err));
    CHECK(!open_session() && !chdir("/") && !unsetenv("KP_TEST_GONE"));
    CHECK(kp_session_begin(false, &err) < 0 && err && strstr(err, says[current]));
    free(err);
    CHECK(!kp_session_is_open() && has_failed(KP_FAILURE_LOG));
}

static void test_no_log(void **state)
{
    (void)state;
    for (current = 0; current < 4; current++)
        in_a_child(no_log);
}

/* ---- no launch was wanted: the files are opened at the end ---- */

static void late_export(void)
{
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session());
    kp_session_let_through(KP_REASON_KERNEL_NAME, 1);
    now.fails = current ? "create" : NULL;
    now.nth = 1;
    kp_session_close();
    CHECK(lines_with(now.silent ? "==ERROR== out of memory\n" : "==ERROR== create failed\n") == current);
    CHECK(has_failed(KP_FAILURE_EXPORT) == current && now.stored == !current);
    CHECK(lines_with("1 launch seen, 0 profiled, 1 skipped") == !current);
    CHECK(!kp_session_is_open());
}

static void late_export_silently(void)
{
    now.silent = true;
    late_export();
}

/* A child of the program has made the launches, and has written the files, which stay as they are. */
static void late_export_of_another(void)
{
    char path[PATH_MAX];
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session());
    usleep(20000); /* file systems keep coarse times */
    snprintf(path, sizeof(path), "%s/session.kprof", folder);
    kp_test_write(current ? path : log_file, "written by another\n");
    now.fails = "create";
    now.nth = 1;
    kp_session_close();
    char *text = kp_test_read(current ? path : log_file);
    CHECK(!strcmp(text, "written by another\n"));
    free(text);
    CHECK(!now.failures && !now.met && access(current ? log_file : path, F_OK));
}

static void test_late(void **state)
{
    (void)state;
    for (current = 0; current < 2; current++) {
        in_a_child(late_export);
        in_a_child(late_export_of_another);
    }
    current = 1;
    in_a_child(late_export_silently);
}

/* ---- a thread that holds the file for good ---- */

static atomic_int held;

static void *hold(void *lock)
{
    kp_lock_take(lock, KP_FOREVER);
    atomic_store(&held, 1);
    pause();
    return NULL;
}

/* The process ends all the same. */
static void no_end(void)
{
    char *err = NULL;
    pthread_t thread;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    window(1);
    now.timeline = true;
    CHECK(!pthread_create(&thread, NULL, hold, &kp_locks[KP_LOCK_STORING]));
    while (!atomic_load(&held))
        usleep(1000);
    kp_session_timeline_end();
    kp_session_close();
    CHECK(!now.timeline_stops && lines_with("Disconnected") == 0 && lines_with("seen") == 0);
}

static void test_no_end(void **state)
{
    (void)state;
    in_a_child(no_end);
}

/* ---- warnings ---- */

static void many_warnings(void)
{
    char *err = NULL, text[32];
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 66; i++) {
            snprintf(text, sizeof(text), "warning %d.", i);
            kp_session_warn(KP_FAILURE_RANGES, text);
        }
    CHECK(lines_with("==WARNING== warning ") == 64 + 2 * 2); /* so many are remembered */
    CHECK(lines_with("warning 63.") == 1 && lines_with("warning 64.") == 2);
    CHECK(has_failed(KP_FAILURE_RANGES) && !has_failed(KP_FAILURE_COUNTERS));
}

/* Runs of the same program share what they have said. */
static void warnings_of_another_run(void)
{
    char *err = NULL, place[PATH_MAX];
    snprintf(place, sizeof(place), "KPROF_REPLAY_FOLDER=%s", folder);
    choose("session.kprof", "KPROF_REPLAY_RUN=2", place);
    snprintf(place, sizeof(place), "%s/claim.warnings", folder);
    kp_test_write(place, "said before\nsaid before, too\n");
    CHECK(!open_session() && !kp_session_begin(true, &err));
    kp_session_warn_once("said before");
    kp_session_warn_once("said");
    kp_session_warn_once("said");
    CHECK(lines_with("==WARNING== said before") == 0 && lines_with("==WARNING== said\n") == 1);
    char *text = kp_test_read(place);
    CHECK(!strcmp(text, "said before\nsaid before, too\nsaid\n"));
    free(text);
    window(1);
    kp_session_close();
    CHECK(lines_with("\n  k") == 0 && now.launches == 1); /* the command reports, of all runs */
}

static void test_warnings(void **state)
{
    (void)state;
    in_a_child(many_warnings);
    in_a_child(warnings_of_another_run);
}

/* ---- the facts ---- */

static void the_command_line(void)
{
    char *err = NULL;
    CHECK(!clearenv());
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    CHECK(strstr(now.facts.cmdline, " --facts 'it'\\''s' '' a=b '*'"));
    const char *last = strrchr(now.facts.cmdline, ' ') + 1;
    CHECK(strlen(last) == 4095 && strspn(last, "x") == 4095); /* of 5000 */
    CHECK(!*now.facts.environment);
}

/* A program of its own: run again with such arguments. */
static void run_with_arguments(void)
{
    static char many[5001];
    memset(many, 'x', sizeof(many) - 1);
    execl("/proc/self/exe", folder, "--facts", "it's", "", "a=b", "*", many, NULL);
    CHECK(false);
}

static void devices(void)
{
    const struct kp_device first = {.device = 0, .name = "H"}, second = {.device = 1, .name = "H"};
    char *err = NULL;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session());
    miss(HAS_HOOK, false);
    kp_session_device(&first, "GH0", "");
    miss(0, false);
    CHECK(!kp_session_begin(true, &err) && now.facts.n_devices == !HAS_HOOK);
    kp_session_device(&first, "GH100", "");
    kp_session_device(&second, "GH200", "");
    kp_session_device(&first, "GH300", "");
    window(1);
    CHECK(now.facts.n_devices == 2 && !strcmp(now.device, HAS_HOOK ? "GH100" : "GH0"));
    kp_session_collection("a,b", "13.0");
    miss(HAS_HOOK, true);
    kp_session_collection(HAS_HOOK ? "c" : "a,b", NULL);
    miss(0, false);
    kp_session_collection(NULL, "13.0");
    window(1);
    CHECK(!strcmp(now.metrics, "a,b") && !strcmp(now.facts.cupti_version, "13.0"));
}

static void test_facts(void **state)
{
    (void)state;
    in_a_child(run_with_arguments);
    in_a_child(devices);
}

/* ---- memory ---- */

/* Each piece of memory of the start is missing in turn: the session is open with all its facts, or not at all. */
static void start_without_memory(void)
{
    choose("session.kprof", NULL, NULL);
    miss(current, false);
    int rc = open_session();
    bool over = asked < current;
    char *err = NULL;
    miss(0, false);
    CHECK(!rc || rc == -ENOMEM);
    CHECK(kp_session_is_open() == !rc);
    if (over)
        kp_test_end(SKIPPED);
    if (rc)
        kp_test_end(3);
    CHECK(!kp_session_begin(true, &err));
    const struct kp_session *f = &now.facts;
    CHECK(f->exe && f->cmdline && f->host && f->kprof_version && f->cupti_version && f->set && f->sections);
    CHECK(f->metrics && f->section_folder && f->cache_control && f->clock_control && f->environment);
    now.fails = "put_result"; /* the report has it */
    now.nth = 1;
    window(1);
    kp_session_close();
    CHECK(lines_with("\n  k") == 1);
}

/* The same as it begins to store: then the session is over, with a word, or it goes on. */
static void begin_without_memory(void)
{
    char *err = NULL;
    CHECK(!setenv("TMPDIR", folder, 1));
    choose(NULL, NULL, NULL);
    CHECK(!open_session());
    miss(current, false);
    int rc = kp_session_begin(true, &err);
    bool over = asked < current;
    miss(0, false);
    free(err);
    CHECK(kp_session_is_open() == !rc && has_failed(KP_FAILURE_LOG) == (rc != 0));
    if (rc)
        kp_test_end(3);
    window(2);
    kp_session_close();
    CHECK(now.launches == 2 || lines_with("\n  k") == 2);
    CHECK(entries_of(folder) == 0);
    kp_test_end(over ? SKIPPED : RIGHT);
}

/* A result that cannot be kept is told of. */
static void result_without_memory(void)
{
    struct kp_result r[] = {launch(0), launch(1)};
    char *err = NULL;
    now.fails = "begin";
    now.nth = 1;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    kp_session_seen(2);
    miss(current, false);
    results(r, 2);
    bool over = asked < current;
    miss(0, false);
    kp_session_close();
    if (over)
        kp_test_end(SKIPPED);
    int lost = lines_with("==ERROR== out of memory: the result of launch ");
    CHECK(lines_with("\n  k") == 2 - lost && has_failed(KP_FAILURE_MEMORY) == (lost > 0));
    kp_test_end(lost ? 3 : RIGHT);
}

/* A report that lacks something says so, at least by the outcome. */
static void report_without_memory(void)
{
    char *err = NULL;
    now.fails = "begin";
    now.nth = 1;
    choose("session.kprof", NULL, NULL);
    CHECK(!open_session() && !kp_session_begin(true, &err));
    window(2);
    miss(current, false);
    kp_session_close();
    bool over = asked < current;
    miss(0, false);
    bool whole_report = lines_with("\n  k") == 2 && lines_with("2 launches seen, 2 profiled") == 1;
    CHECK(whole_report || has_failed(KP_FAILURE_REPORT));
    kp_test_end(over ? SKIPPED : has_failed(KP_FAILURE_REPORT) ? 3 : RIGHT);
}

/* Runs the case without each piece of memory, of many without some, until it needs no further one. At least `least` of
 * them end it early. */
static void without_memory(void (*body)(void), int least)
{
    int early = 0, code = RIGHT;
    if (!HAS_HOOK)
        skip();
    for (current = 1; code != SKIPPED; current += 1 + current / 20) {
        code = end_of(body);
        assert_true(code == RIGHT || code == SKIPPED || code == 3);
        early += code == 3;
    }
    assert_true(early >= least);
}

static void test_start_without_memory(void **state)
{
    (void)state;
    without_memory(start_without_memory, 10);
}

static void test_begin_without_memory(void **state)
{
    (void)state;
    without_memory(begin_without_memory, 1);
}

static void test_result_without_memory(void **state)
{
    (void)state;
    without_memory(result_without_memory, 2);
}

static void test_report_without_memory(void **state)
{
    (void)state;
    without_memory(report_without_memory, 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step),
        cmocka_unit_test(test_no_export),
        cmocka_unit_test(test_no_own_file),
        cmocka_unit_test(test_own_file),
        cmocka_unit_test(test_told_at_the_end),
        cmocka_unit_test(test_no_log),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_start_without_memory),
        cmocka_unit_test(test_begin_without_memory),
        cmocka_unit_test(test_result_without_memory),
        cmocka_unit_test(test_report_without_memory),
    };
    if (argc > 1 && !strcmp(argv[1], "--facts")) {
        snprintf(folder, sizeof(folder), "%s", argv[0]);
        snprintf(log_file, sizeof(log_file), "%s/log", folder);
        the_command_line();
        kp_test_end(RIGHT);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
