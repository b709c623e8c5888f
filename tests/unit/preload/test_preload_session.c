/* A window's results on their way into the file and the report: none is lost, whatever becomes of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/os/log.h"
#include "base/lock.h"
#include "preload/gate/fast_path.h"
#include "preload/session/session.h"
#include "report/store/store.h"
#include "tests/support/end_support.h"
#include "tests/support/report_support.h"
#include "tests/support/source_support.h"

/* The session is one a process, so each case has a process of its own, and says there what is wrong. */
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                         \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static char file[PATH_MAX], log_file[PATH_MAX];
static char *more_options[2]; /* NAME=value, in addition to those of the files */

static void in_a_process(void (*program)(void))
{
    const char *folder = kp_test_folder();
    int status = -1;
    snprintf(file, sizeof(file), "%s/session.kprof", folder);
    snprintf(log_file, sizeof(log_file), "%s/log", folder);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        program();
        kp_test_end(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    kp_test_remove_folder(folder);
    assert_int_equal(status, 0);
}

static CUresult driver_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static void open_session(void)
{
    static const struct kp_driver driver = {.cuDriverGetVersion = driver_version};
    static const struct kp_section *const none[] = {NULL};
    static struct kp_options o;
    char *env[] = {NULL, NULL, "KPROF_BRIEF_ABOVE=0", more_options[0], more_options[0] ? more_options[1] : NULL, NULL},
         *err = NULL;
    CHECK(asprintf(&env[0], "KPROF_EXPORT=%s", file) > 0 && asprintf(&env[1], "KPROF_LOG_FILE=%s", log_file) > 0);
    CHECK(!kp_options_from_env(&o, env, &err));
    CHECK(!kp_session_open(&o, &driver, none, 0));
    CHECK(kp_session_is_open());
    CHECK(access(file, F_OK) && access(log_file, F_OK)); /* not before a launch */
    CHECK(!kp_session_begin(false, &err));
    CHECK(access(file, F_OK) && !access(log_file, F_OK)); /* nor before one that is wanted */
    CHECK(!kp_session_begin(true, &err));
    CHECK(!access(file, F_OK) && !access(log_file, F_OK));
    CHECK(!kp_session_begin(true, &err));
    free(env[0]);
    free(env[1]);
}

static struct kp_result launch(uint64_t ordinal)
{
    struct kp_result r = {.launch = {.ordinal = ordinal,
                                     .id = 999,
                                     .mangled = kp_strdup("_Z1kv"),
                                     .demangled = kp_strdup("k()"),
                                     .chip = kp_strdup(""),
                                     .passes = ordinal == 1 ? 1 : 9,
                                     .profiler_ns = 8.84e6}};
    kp_result_set_count(&r, "ordinal", "", ordinal);
    return r;
}

enum { MOST = 8 };

/* A window of `n` launches, the last one without counters. */
static void window(size_t n)
{
    struct kp_result r[MOST];
    struct kp_session_entry entries[MOST];
    uint64_t first = kp_session_seen(n);
    for (size_t i = 0; i < n; i++) {
        r[i] = launch(first + i);
        entries[i] = (struct kp_session_entry){.result = &r[i], .base = "k", .profiled = i + 1 < n};
    }
    kp_session_results(entries, n);
    for (size_t i = 0; i < n; i++)
        CHECK(!r[i].metrics && !r[i].launch.mangled); /* taken */
}

/* Launches in the file; each is the one that its number says. */
static int check_launch(struct kp_result *r, void *arg)
{
    uint64_t *next = arg;
    double ordinal = -1;
    CHECK(r->launch.id == *next && r->launch.ordinal == *next + 3);
    CHECK(kp_metric_number(kp_result_find(r, "ordinal"), &ordinal) && ordinal == (double)(*next + 3));
    ++*next;
    return 0;
}

static uint64_t stored(struct kp_session *facts)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    uint64_t n = 0;
    CHECK(!kp_store_open(file, &s, &err));
    CHECK(!kp_store_each_result(s, check_launch, &n, &err));
    CHECK(!kp_store_get_session(s, facts, &err));
    kp_store_close(s);
    return n;
}

static int lines_with(const char *what)
{
    return kp_test_occurrences(log_file, what);
}

/* ---- in order ---- */

static void two_windows(void)
{
    struct kp_session facts;
    open_session();
    CHECK(kp_session_seen(3) == 0);
    window(4);
    CHECK(stored(&facts) == 4); /* at once */
    CHECK(facts.launches_seen == 7 && facts.launches_profiled == 3 && facts.passes == 9 && !facts.complete);
    CHECK(facts.profiling_ns > 35e6 && facts.profiling_ns < 36e6);
    CHECK(facts.n_skips == 1 && facts.skips[0].count == 1 && facts.skips[0].why.reason == KP_REASON_NO_COUNTERS);
    kp_session_free(&facts);
    window(2);
    CHECK(lines_with("==KPROF== Profiling \"k\" - 0: 9 passes, 8.8 ms\n==KPROF== Profiling \"k\" - 1: ") == 1);
    CHECK(lines_with("==KPROF== Profiling ") == 6);
    CHECK(kp_session_seen(0) == 9);
    kp_session_close();
    CHECK(stored(&facts) == 6);
    CHECK(facts.launches_seen == 9 && facts.launches_profiled == 4 && facts.complete);
    kp_session_free(&facts);
    CHECK(lines_with("\n  k") == 6);
}

static void windows_are_numbered_and_stored_at_once(void **state)
{
    (void)state;
    in_a_process(two_windows);
}

static void one_pass(void)
{
    open_session();
    kp_session_seen(1);
    window(2); /* its first launch has ordinal 1 */
    CHECK(lines_with("- 0: 1 pass, 8.8 ms\n") == 1);
}

static void progress_is_in_plain_words(void **state)
{
    (void)state;
    in_a_process(one_pass);
}

static void quiet_windows(void)
{
    open_session();
    kp_log_quiet(true);
    window(3);
    CHECK(lines_with("Profiling") == 0);
}

/* A name has its parameters if that fits into 32 characters; else it is cut. */
static void as_ncu(void)
{
    static const char *const names[][2] = {
        {"fma_bound", "fma_bound(float *, int)"},
        {"stream_triad", "stream_triad(const float4 *, const float4 *, float4 *, int)"},
        {"ampere_fp16_s1688gemm_fp16_128x128_ldg8", "ampere_fp16_s1688gemm_fp16_128x128_ldg8"}};
    more_options[0] = "KPROF_FACE=ncu";
    more_options[1] = "KPROF_LAUNCH_COUNT=9";
    open_session();
    kp_session_seen(3);
    for (size_t i = 0; i < 3; i++) {
        struct kp_result r = launch(i);
        free(r.launch.demangled);
        r.launch.demangled = kp_strdup(names[i][1]);
        kp_session_results(&(struct kp_session_entry){.result = &r, .base = names[i][0], .profiled = true}, 1);
    }
    kp_session_close();
    CHECK(lines_with("==WARNING== Note: Running with unmodified GPU clocks") == 1);
    CHECK(lines_with("Profiling \"fma_bound(float *, int)\" - 0 (1/9): 0%....50%....100% - 9 passes\n") == 1);
    CHECK(lines_with("Profiling \"stream_triad\" - 1 (2/9): 0%....50%....100% - 1 pass\n") == 1);
    CHECK(lines_with("Profiling \"ampere_fp16_s1688gemm_fp16_12...\" - 2 (3/9): ") == 1);
}

static void as_ncu_in_csv(void)
{
    more_options[0] = "KPROF_FACE=ncu";
    more_options[1] = "KPROF_CSV=on";
    open_session();
    window(2);
    kp_session_close();
    CHECK(lines_with("Profiling") == 0 && lines_with("Connected to process") == 1);
}

static void progress_is_as_ncu_has_it(void **state)
{
    (void)state;
    in_a_process(as_ncu);
    in_a_process(as_ncu_in_csv);
}

static void no_progress_when_quiet(void **state)
{
    (void)state;
    in_a_process(quiet_windows);
}

/* ---- the file fails ---- */

static void sql(const char *text)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(file, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static void file_that_fails(void)
{
    struct kp_session facts;
    open_session();
    kp_session_seen(3);
    window(3);
    sql("CREATE TRIGGER refuse BEFORE INSERT ON launch WHEN NEW.id = 4 BEGIN SELECT RAISE(FAIL, 'disk full'); END");
    window(3); /* the second of them is refused */
    CHECK(stored(&facts) == 3);
    CHECK(facts.launches_seen == 6); /* and the file accounts for what it holds */
    kp_session_free(&facts);
    sql("DROP TRIGGER refuse");
    window(2);
    kp_session_close();
    CHECK(lines_with("disk full; results from here on are in the report only") == 1);
    CHECK(lines_with("\n  k") == 8);
    CHECK(lines_with("11 launches seen") == 1);
    CHECK(stored(&facts) == 3);
    kp_session_free(&facts);
}

static void what_the_file_does_not_take_is_in_the_report(void **state)
{
    (void)state;
    in_a_process(file_that_fails);
}

/* ---- entries that go on ---- */

/* Three launches more, in the place of launch `id`, whose header tells them from those of window(). */
static void replace(uint64_t id, struct kp_session_told *told)
{
    struct kp_result r = launch(id + 3);
    r.launch.id = id;
    r.launch.counted = told->counted + 3;
    r.launch.passes = told->passes + 2;
    r.launch.profiler_ns = told->profiler_ns + 1e6;
    r.launch.alike = 44;
    free(r.launch.demangled);
    r.launch.demangled = kp_strdup("several()");
    kp_session_replace(&r, "k", told);
    CHECK(!r.metrics && !r.launch.mangled);
}

static void entries_that_go_on(void)
{
    struct kp_session facts;
    struct kp_session_told told = {1, 9, 8.84e6}, other = told;
    open_session();
    kp_session_seen(3);
    window(4);
    replace(1, &told);
    CHECK(told.counted == 4 && told.passes == 11);
    CHECK(stored(&facts) == 4); /* at once, in its place */
    CHECK(facts.launches_profiled == 6 && facts.passes == 11 && facts.profiling_ns > 36e6 && facts.profiling_ns < 37e6);
    kp_session_free(&facts);
    CHECK(lines_with("Profiling \"k\" - 1: 11 passes, 9.8 ms") == 1);
    replace(1, &told); /* once more */
    sql("CREATE TRIGGER refuse BEFORE INSERT ON launch WHEN NEW.id = 2 BEGIN SELECT RAISE(FAIL, 'disk full'); END");
    replace(2, &other); /* the file has it, and keeps it as it was */
    replace(2, &other); /* the report has it once */
    kp_session_alike(&(struct kp_launch_info){.id = 2, .alike = 55, .recorded = 54, .recorded_ns = 5400});
    kp_session_close();
    CHECK(stored(&facts) == 4);
    kp_session_free(&facts);
    CHECK(lines_with("disk full; results from here on are in the report only") == 1);
    CHECK(lines_with("\n  k") == 2 && lines_with("\n  several") == 2);
    CHECK(lines_with("15 profiled") == 1);
}

static void an_entry_that_goes_on_stays_one(void **state)
{
    (void)state;
    in_a_process(entries_that_go_on);
}

/* ---- the functions that instructions were counted of ---- */

/* CRCs of modules: one with an image, and one without. */
enum { IMAGE = 7, NO_IMAGE = 8 };

static const void *cubin(uint32_t crc, size_t *size)
{
    static uint8_t image[65536]; /* that of tests/data/inline.cu */
    static size_t bytes;
    FILE *from = bytes ? NULL : fopen(kp_test_source("tests/data/inline.sm90-cuda13.cubin"), "re");
    if (from) {
        bytes = fread(image, 1, sizeof(image), from);
        fclose(from);
    }
    CHECK(bytes);
    *size = crc == IMAGE ? bytes : 0;
    return crc == IMAGE ? image : NULL;
}

/* A window of one launch, in which the first two instructions of the function were executed. */
static void window_of_code(uint64_t code)
{
    struct kp_result r = launch(kp_session_seen(1));
    struct kp_code_counts counts = kp_test_counts(code, 2);
    uint64_t *executed = kp_test_metric(&counts, "inst_executed");
    executed[0] = executed[1] = 32;
    CHECK(!kp_result_add_counts(&r, &counts));
    kp_session_results(&(struct kp_session_entry){.result = &r, .base = "k", .profiled = true}, 1);
}

/* The instructions that the file has of the function; -1 where it does not have it. */
static long code_in_file(uint64_t id, const char *function)
{
    struct kp_store *s = NULL;
    struct kp_code code;
    char *err = NULL;
    long n = -1;
    CHECK(!kp_store_open(file, &s, &err));
    struct kp_lookup lookup = kp_store_lookup(s);
    if (!kp_lookup_code(&lookup, id, &code)) {
        CHECK(code.id == id && !strcmp(code.function, function));
        n = (long)code.n_instructions;
        kp_code_free(&code);
    }
    kp_store_close(s);
    return n;
}

static void code_with_results(void)
{
    struct kp_session facts;
    struct kp_codes *codes = kp_codes_new(cubin, false);
    open_session();
    kp_session_seen(3);
    window_of_code(0); /* nobody has told of any code */
    kp_session_codes(codes);
    CHECK(kp_codes_id(codes, IMAGE, "nested") == 1);
    CHECK(code_in_file(1, "nested") == -1); /* not before there are results */
    window_of_code(1);
    CHECK(code_in_file(1, "nested") == 512 / 16);
    CHECK(kp_codes_id(codes, IMAGE, "calling") == 2 && kp_codes_id(codes, NO_IMAGE, "nested") == 3 &&
          kp_codes_id(codes, IMAGE, "calls_itself") == 4 && kp_codes_id(codes, NO_IMAGE, "last") == 5);
    /* One that the file does not take, as its instructions are in no order. */
    struct kp_code *wrong = (struct kp_code *)kp_codes_get(codes, 2);
    CHECK(wrong->n_instructions > 1);
    wrong->instructions[1].offset = 0;
    window_of_code(2);
    CHECK(code_in_file(2, "calling") == -1);
    CHECK(code_in_file(3, "nested") == 0 && code_in_file(4, "calls_itself") == 0 && code_in_file(5, "last") == 0);
    window_of_code(1); /* none is put twice */
    CHECK(stored(&facts) == 4);
    kp_session_free(&facts);
    CHECK(lines_with("==ERROR==") == 0);
    kp_session_close();
    kp_codes_free(codes);
}

static void code_goes_before_the_results_that_name_it(void **state)
{
    (void)state;
    in_a_process(code_with_results);
}

/* Functions of which the file took the first one only. */
static void code_that_fails(void)
{
    struct kp_session facts;
    struct kp_codes *codes = kp_codes_new(cubin, false);
    more_options[0] = "KPROF_PAGE=source";
    open_session();
    kp_session_seen(3);
    kp_session_codes(codes);
    CHECK(kp_codes_id(codes, IMAGE, "nested") == 1);
    window_of_code(1);
    sql("CREATE TRIGGER refuse BEFORE INSERT ON code BEGIN SELECT RAISE(FAIL, 'disk full'); END");
    CHECK(kp_codes_id(codes, IMAGE, "calling") == 2);
    window_of_code(2);
    window_of_code(1);
    CHECK(stored(&facts) == 1);
    kp_session_free(&facts);
    CHECK(code_in_file(2, "calling") == -1);
    kp_session_close();
    CHECK(lines_with("disk full; results from here on are in the report only") == 1);
    CHECK(lines_with("\n    SASS: nested\n") == 2 && lines_with("\n    SASS: calling\n") == 1);
    kp_codes_free(codes);
}

static void the_report_has_the_code_that_the_file_did_not_take(void **state)
{
    (void)state;
    in_a_process(code_that_fails);
}

/* ---- launches that are passed on ---- */

/* Makes launches that pass for that reason. */
static void pass(enum kp_pass_why why, int times)
{
    const struct kp_pass_shape shape = {{1, 1, 1}, {32, 1, 1}, (uint32_t)why, {0, 0, 0}};
    const CUfunction f = (CUfunction)&shape;
    const struct kp_pass_known known = {why, 0, NULL};
    kp_passing_learn(f, &shape, &known, kp_passing_epoch());
    for (int i = 0; i < times; i++) {
        struct kp_pass *p = kp_passing_begin(f, &shape);
        CHECK(p);
        kp_passing_end(p, CUDA_SUCCESS);
    }
}

/* They are counted without the lock, and have their places among all launches. */
static void passed_on(void)
{
    struct kp_session facts;
    open_session();
    kp_session_let_through(KP_REASON_KERNEL_NAME, 1);
    pass(KP_PASS_NAME, 1);
    pass(KP_PASS_COUNT, 1);
    window(2);
    CHECK(stored(&facts) == 2); /* behind these three */
    CHECK(facts.launches_seen == 5);
    CHECK(facts.n_skips == 3 && facts.skips[0].count == 2 && facts.skips[2].count == 1);
    CHECK(facts.skips[2].why.reason == KP_REASON_LAUNCH_COUNT);
    kp_session_free(&facts);
    for (int why = KP_PASS_NOT + 1; why < KP_PASS_WHYS; why++)
        pass((enum kp_pass_why)why, 1);
    kp_session_close();
    CHECK(lines_with("12 launches seen, 1 profiled, 11 skipped") == 1);
}

static void launches_that_are_passed_on_are_counted(void **state)
{
    (void)state;
    in_a_process(passed_on);
}

/* ---- the end ---- */

static void late_window(void)
{
    struct kp_session facts;
    open_session();
    kp_session_seen(3);
    window(1);
    kp_session_close();
    CHECK(!kp_session_is_open());
    window(2);
    CHECK(stored(&facts) == 1);
    kp_session_free(&facts);
    CHECK(lines_with("Profiling") == 1);
}

static void nothing_is_taken_after_the_end(void **state)
{
    (void)state;
    in_a_process(late_window);
}

static void forked(void)
{
    struct kp_session facts;
    int status = -1;
    open_session();
    kp_session_seen(3);
    window(1);
    pid_t child = fork();
    if (!child) {
        kp_session_forked();
        CHECK(!kp_session_is_open());
        window(2);
        kp_session_close();
        kp_test_end(0);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    window(1);
    CHECK(stored(&facts) == 2);
    kp_session_free(&facts);
}

static void a_forked_child_adds_nothing(void **state)
{
    (void)state;
    in_a_process(forked);
}

/* ---- want of memory ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static __thread bool failing;

/* In front of the C library's, which itself calls this one, too. */
__attribute__((visibility("default"))) void *malloc(size_t bytes);
void *__libc_malloc(size_t bytes);
__attribute__((visibility("default"))) void *realloc(void *old, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes)
{
    return failing ? NULL : __libc_malloc(bytes);
}

void *realloc(void *old, size_t bytes)
{
    return failing ? NULL : __libc_realloc(old, bytes);
}

static void skips_without_memory(void)
{
    open_session();
    window(2);
    kp_session_seen(3);
    failing = true;
    kp_session_skip(KP_REASON_CAPTURE, 1);
    kp_session_skip(KP_REASON_CAPTURE, 1);
    failing = false;
    kp_session_skip(KP_REASON_LATE, 1);
    kp_session_close();
    CHECK(lines_with("==WARNING== out of memory: 2 launches have no counters, and the reason is lost\n") == 1);
    CHECK(lines_with("made while the program was ending: 1;") == 1);
}
#endif

/* No launch is missing without a word. */
static void launches_without_a_reason_are_counted(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#else
    in_a_process(skips_without_memory);
#endif
}

/* ---- what programs read ---- */

/* A session of two windows; the file takes the first one only. What is said meanwhile goes to stderr. */
static void report_of(char *option, char *other)
{
    char path[PATH_MAX + 8];
    int before = dup(STDERR_FILENO);
    snprintf(path, sizeof(path), "%s.err", log_file);
    CHECK(freopen(path, "w", stderr));
    more_options[0] = option;
    more_options[1] = other;
    open_session();
    kp_session_seen(3);
    window(3);
    sql("CREATE TRIGGER refuse BEFORE INSERT ON launch WHEN NEW.id = 4 BEGIN SELECT RAISE(FAIL, 'disk full'); END");
    window(3);
    kp_session_close();
    CHECK(dup2(before, STDERR_FILENO) == STDERR_FILENO);
    CHECK(lines_with("==") == 0);
    char *said = kp_test_read(path);
    CHECK(strstr(said, "==KPROF== Profiling \"k\" - 5") && strstr(said, "disk full"));
    free(said);
}

static void raw_csv(void)
{
    report_of("KPROF_CSV=on", "KPROF_PAGE=raw");
    char *text = kp_test_read(log_file);
    CHECK(!strncmp(text, "\"ID\",\"Process ID\",", 18));
    CHECK(lines_with("\n") == 2 + 6 && lines_with("\"k()\"") == 6 && lines_with(",\"8\"\n") == 1);
    free(text);
}

static void a_trace(void)
{
    more_options[0] = "KPROF_PAGE=trace";
    more_options[1] = "KPROF_TRACE_COLUMNS=ordinal";
    open_session();
    kp_session_seen(3);
    window(2);
    kp_session_close();
    CHECK(lines_with("[1] ordinal\n") == 1 && lines_with("\nk    ") == 2);
    CHECK(lines_with("5 launches seen") == 1);
}

static void json(void)
{
    report_of("KPROF_JSON=on", NULL);
    char *text = kp_test_read(log_file);
    CHECK(!strncmp(text, "{\n", 2) && !strcmp(text + strlen(text) - 2, "}\n"));
    CHECK(lines_with("\n   \"id\": ") == 6 && lines_with("\"complete\": true") == 1);
    free(text);
}

static void the_log_file_holds_the_data_alone(void **state)
{
    (void)state;
    in_a_process(raw_csv);
    in_a_process(json);
}

static void the_page_is_the_one_asked_for(void **state)
{
    (void)state;
    in_a_process(a_trace);
}

/* ---- threads ---- */

enum { ROUNDS = 300, THREADS = 3 };

static void *launch_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        kp_session_seen(1);
        kp_session_skip(KP_REASON_KERNEL_NAME, 1);
        kp_session_unwanted("other", 1);
        kp_session_warn_once("a warning");
    }
    return NULL;
}

static void *profile_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS / 10; i++)
        window(MOST);
    return NULL;
}

static void beside_each_other(void)
{
    struct kp_store *s = NULL;
    struct kp_session facts;
    char *err = NULL;
    pthread_t t[2 * THREADS];
    open_session();
    for (int i = 0; i < 2 * THREADS; i++)
        CHECK(!pthread_create(&t[i], NULL, i % 2 ? launch_many : profile_many, NULL));
    for (int i = 0; i < 2 * THREADS; i++)
        pthread_join(t[i], NULL);
    kp_session_close();
    CHECK(!kp_store_open(file, &s, &err) && !kp_store_get_session(s, &facts, &err));
    kp_store_close(s);
    uint64_t results = THREADS * (ROUNDS / 10) * MOST;
    CHECK(facts.launches_seen == THREADS * ROUNDS + results);
    CHECK(facts.launches_profiled == results / MOST * (MOST - 1));
    CHECK(facts.n_kernels == 1 && facts.kernels[0].count == THREADS * ROUNDS);
    CHECK(lines_with("a warning") == 1);
    CHECK(lines_with("==KPROF== Profiling \"k\" - ") == (int)results);
    kp_session_free(&facts);
}

static void any_thread_may_report(void **state)
{
    (void)state;
    in_a_process(beside_each_other);
}

/* A window that is being stored: here one whose log is a pipe that nobody reads yet. */
static void *long_window(void *begun)
{
    atomic_store((atomic_int *)begun, 1);
    for (int i = 0; i < 400; i++)
        window(MOST);
    atomic_store((atomic_int *)begun, 2);
    return NULL;
}

static void slow_file(void)
{
    int ends[2];
    char path[64];
    pthread_t t;
    atomic_int begun = 0;
    CHECK(!pipe(ends));
    open_session();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    CHECK(!kp_log_to(path));
    CHECK(!pthread_create(&t, NULL, long_window, &begun));
    /* 3200 lines do not fit the pipe: the thread stops in the middle of a window. */
    for (uint64_t last = UINT64_MAX, now; (now = kp_session_seen(0)) != last || !now; last = now)
        usleep(200000);
    CHECK(atomic_load(&begun) == 1);
    kp_session_seen(1); /* would hang, and end by the alarm */
    kp_session_skip(KP_REASON_KERNEL_NAME, 1);
    kp_session_unwanted("other", 1);
    kp_session_collection("a,b", "13.0");
    CHECK(atomic_load(&begun) == 1);
}

static void counting_does_not_wait_for_the_file(void **state)
{
    (void)state;
    in_a_process(slow_file);
}

/* As KPROF_LOG_FILE=/dev/stderr: what the program wrote there stays, and that it wrote makes no other process. */
static void write_into_own_output(void)
{
    static const struct kp_driver driver = {.cuDriverGetVersion = driver_version};
    static const struct kp_section *const none[] = {NULL};
    static struct kp_options o;
    char *env[] = {"KPROF_LOG_FILE=/dev/stdout", NULL}, *err = NULL;
    CHECK(freopen(log_file, "w", stdout));
    CHECK(puts("before") >= 0 && !fflush(stdout));
    CHECK(!kp_options_from_env(&o, env, &err));
    CHECK(!kp_session_open(&o, &driver, none, 0));
    usleep(20000); /* file systems keep coarse times */
    CHECK(puts("beside") >= 0 && !fflush(stdout));
    kp_session_close();
    CHECK(puts("after") >= 0 && !fflush(stdout));
    char *text = kp_test_read(log_file);
    CHECK(!strncmp(text, "before\nbeside\n==KPROF== Connected", 30));
    CHECK(strstr(text, "Disconnected") && strstr(text, "\nafter\n"));
    free(text);
}

static void the_log_may_go_where_the_program_writes(void **state)
{
    (void)state;
    in_a_process(write_into_own_output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_numbered_and_stored_at_once),
        cmocka_unit_test(progress_is_in_plain_words),
        cmocka_unit_test(progress_is_as_ncu_has_it),
        cmocka_unit_test(no_progress_when_quiet),
        cmocka_unit_test(what_the_file_does_not_take_is_in_the_report),
        cmocka_unit_test(an_entry_that_goes_on_stays_one),
        cmocka_unit_test(code_goes_before_the_results_that_name_it),
        cmocka_unit_test(the_report_has_the_code_that_the_file_did_not_take),
        cmocka_unit_test(launches_that_are_passed_on_are_counted),
        cmocka_unit_test(nothing_is_taken_after_the_end),
        cmocka_unit_test(a_forked_child_adds_nothing),
        cmocka_unit_test(launches_without_a_reason_are_counted),
        cmocka_unit_test(the_log_file_holds_the_data_alone),
        cmocka_unit_test(the_log_may_go_where_the_program_writes),
        cmocka_unit_test(the_page_is_the_one_asked_for),
        cmocka_unit_test(any_thread_may_report),
        cmocka_unit_test(counting_does_not_wait_for_the_file),
    };
    return cmocka_run_group_tests_name("preload/session", tests, NULL, NULL);
}
