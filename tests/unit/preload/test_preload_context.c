/* What is done for a context before there is one: CUPTI is loaded. The images of modules are kept from then on, only
 * where something shown counts by instruction, or is told by the code alone. What is read of the device once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti/source.h"
#include "preload/os/exit_first.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/contexts/context.h"
#include "preload/program/kernel.h"
#include "preload/program/loaded_modules.h"
#include "preload/session/session.h"
#include "tests/support/collect_support.h"
#include "tests/support/end_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

/* ---- what a context calls, in the place of the real ones ---- */

static struct {
    unsigned exit_first; /* times that our exit handler went before CUPTI's */
    unsigned kept;       /* times that images were to be kept */
    unsigned watched;    /* times that only those were that `always` takes */
    int keep_rc;
} t;

const struct kp_dl *kp_symbols_dl(void)
{
    return kp_test_dl();
}

void kp_exit_first(void)
{
    t.exit_first++;
}

int kp_cubins_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size))
{
    assert_non_null(always);
    t.watched += !most;
    t.kept += c == kp_context_cupti() && most >= (size_t)256 << 20;
    return t.keep_rc;
}

int kp_cubins_keep_on(const struct kp_cupti *c)
{
    assert_non_null(c);
    return 0;
}

const void *kp_cubins_find(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = 0;
    return NULL;
}

const void *kp_cubins_at(size_t i, size_t *size)
{
    (void)i;
    *size = 0;
    return NULL;
}

void kp_session_results(struct kp_session_entry *entries, size_t n)
{
    (void)entries, (void)n;
}

void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told)
{
    (void)result, (void)base, (void)told;
}

void kp_session_lacks(const char *base, uint64_t shapes)
{
    (void)base, (void)shapes;
}

void kp_session_skip(enum kp_reason reason, uint64_t launches)
{
    (void)reason, (void)launches;
}

void kp_session_alike(const struct kp_launch_info *l)
{
    (void)l;
}

void kp_session_timeline(void)
{
}

bool kp_worker_submit(void (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
    return false;
}

void kp_session_warn_once(const char *text)
{
    (void)text;
}

void kp_session_warn(enum kp_failure kind, const char *text)
{
    (void)kind;
    (void)text;
}

void kp_session_prepare_codes(void)
{
}

void kp_session_codes(struct kp_codes *codes)
{
    (void)codes;
}

bool kp_worker_drain(long patience_ms)
{
    (void)patience_ms;
    return true;
}

bool kp_worker_thread_start(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    (void)fn, (void)arg, (void)thread;
    return false;
}

pthread_t kp_worker_thread_own(void)
{
    return pthread_self();
}

void kp_worker_thread_join(pthread_t thread)
{
    (void)thread;
}

const void *kp_launched_module(const struct kp_driver *d, CUfunction f)
{
    (void)d, (void)f;
    return NULL;
}

bool kp_launched_has(CUcontext ctx, const void *module)
{
    (void)ctx, (void)module;
    return false;
}

bool kp_launched_each(CUcontext ctx, bool (*fn)(void *arg, CUfunction f), void *arg)
{
    (void)ctx, (void)fn, (void)arg;
    return true;
}

/* ---- preparing ---- */

static const struct row {
    const char *section, *metrics, *cupti_dir; /* NULL = that of the fake */
    int keep_rc;
    bool loaded;
    unsigned kept, exit_first;
} rows[] = {
    {"SourceCounters", "", NULL, 0, true, 1, 2},
    {"InstructionStats", "", NULL, 0, true, 1, 2},
    {"", "a,smsp__pcsamp_sample_count", NULL, 0, true, 1, 2},
    {"", "inst_executed", NULL, 0, true, 1, 2},
    {"", "group:smsp__pcsamp_warp_stall_reasons_not_issued", NULL, 0, true, 1, 2},
    {"SpeedOfLight", "regex:^thread_inst", NULL, 0, true, 1, 2},
    {"SpeedOfLight", "launch__uses_cdp", NULL, 0, true, 1, 2}, /* which only the code tells */
    {"", "sm__cycles_active.avg launch__barrier_count", NULL, 0, true, 1, 2},
    {"", "launch__function_pcs\tsm__cycles_active.avg", NULL, 0, true, 1, 2},
    /* nothing of it counts by instruction: the program does not wait for CUPTI */
    {"", "", NULL, 0, false, 0, 0},
    {"SpeedOfLight", "", NULL, 0, false, 0, 0},
    {"PmSampling", "", NULL, 0, false, 0, 0},
    {"", "sm__cycles_active.avg,pmsampling:sm__cycles_active.avg", NULL, 0, false, 0, 0},
    /* what fails is told of where there is a context */
    {"SourceCounters", "", NULL, -ENOSYS, true, 1, 1},
    {"SourceCounters", "", "/nowhere", 0, false, 0, 0},
};

static void check(const struct row *r, const char *what, unsigned got, unsigned wanted)
{
    if (got == wanted)
        return;
    fprintf(stderr, "%s %s %s: %s: %u instead of %u\n", r->section, r->metrics, r->cupti_dir ? r->cupti_dir : "", what,
            got, wanted);
    _exit(1);
}

/* CUPTI is one a process, and so is what is known of it. */
static void prepare(const struct row *r)
{
    const struct kp_section *section = *r->section ? kp_section_find(r->section) : NULL;
    struct kp_options options = {.metrics = (char *)r->metrics,
                                 .cupti_dir = kp_strdup(r->cupti_dir ? r->cupti_dir : kp_test_build("fake"))};
    const struct kp_context_setup setup = {
        .driver = kp_test_driver(), .options = &options, .sections = &section, .n_sections = section != NULL};
    check(r, "section", *r->section && !section, false);
    t.keep_rc = r->keep_rc;
    kp_test_context();
    check(r, "loaded before", kp_context_cupti() != NULL, false);
    kp_context_prepare(&setup);
    check(r, "loaded", kp_context_cupti() != NULL, r->loaded);
    check(r, "kept", t.kept, r->kept);
    check(r, "exit handlers", t.exit_first, r->exit_first);
    check(r, "codes", kp_context_codes() != NULL, false); /* there are none before there are contexts */
    kp_test_end(0);
}

static const struct kp_mode once = {.again = KP_AGAIN_NEVER, .lists = KP_LISTS_FIRST};

/* Where nothing counts by instruction, the images that must not be run twice are watched from the first module on. */
static void prepare_images(const struct row *r)
{
    struct kp_options options = {.metrics = (char *)r->metrics, .cupti_dir = kp_strdup(kp_test_build("fake"))};
    struct kp_context_setup setup = {.driver = kp_test_driver(), .options = &options, .mode = &once};
    kp_test_context();
    kp_context_prepare(&setup);
    check(r, "loaded for results", kp_context_cupti() != NULL, false);
    kp_context_prepare_images(&setup); /* in one pass, too: code tells what waits for the host */
    check(r, "loaded", kp_context_cupti() != NULL, true);
    check(r, "watched", t.watched, 1);
    check(r, "all kept", t.kept, 0);
    kp_context_prepare_images(&setup);
    check(r, "watched once", t.watched, 1);
    check(r, "must not run twice", kp_kernel_code_once(""), 0); /* no image has come */
    kp_test_end(0);
}

static void in_child(void (*fn)(const struct row *r), const struct row *r)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        fn(r);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_prepare_images(void **state)
{
    (void)state;
    in_child(prepare_images, &(struct row){.section = "", .metrics = ""});
}

static void test_prepare(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        in_child(prepare, &rows[i]);
}

/* ---- what is the same for each launch ---- */

/* Without CUPTI the user's own list tells what is shown of the device. */
static void read_without_plan(const struct row *r)
{
    struct kp_options options = {.metrics = (char *)r->metrics, .cupti_dir = (char *)r->cupti_dir};
    const struct kp_context_setup setup = {.driver = kp_test_driver(), .options = &options};
    char *bad_input = NULL;
    struct kp_context *c = kp_context_get(&setup, kp_test_context(), &bad_input);
    check(r, "context", c != NULL, true);
    check(r, "plan", c->plan != NULL, false);
    check(r, "metrics", (unsigned)c->machine.n_metrics, 2);
    check(r, "warp size", kp_result_find(&c->machine, "device__attribute_warp_size") != NULL, true);
    check(r, "clock", kp_result_find(&c->machine, "device__attribute_clock_rate") != NULL, true);
    check(r, "curves", c->curves, true);
    kp_test_end(0);
}

static void test_machine_without_plan(void **state)
{
    static const char *const lists[] = {
        "device__attribute_warp_size,launch__occupancy_per_block_size, device__attribute_clock_rate",
        "device__attribute_warp_size launch__occupancy_per_block_size\tdevice__attribute_clock_rate",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        in_child(read_without_plan, &(struct row){.section = "", .metrics = lists[i], .cupti_dir = "/nowhere"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_prepare_images),
        cmocka_unit_test(test_machine_without_plan),
    };
    return cmocka_run_group_tests_name("preload/context", tests, NULL, NULL);
}
