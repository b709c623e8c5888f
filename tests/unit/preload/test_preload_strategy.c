/* Strategies of this test's own count windows of the room as it stands: a mode of its own lists them.
 * Each is asked in turn, opens, takes launches or does not, issues them, and closes with a note that the results
 * carry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/os/exit_first.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/session/session.h"
#include "preload/who/stack.h"
#include "preload/program/device_memory.h"
#include "preload/mode/close_reasons.h"
#include "preload/journal/defer.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/strategy.h"
#include "preload/mode/window.h"
#include "tests/support/collect_support.h"
#include "tests/support/end_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"
#include "tests/support/window_support.h"

/* ---- what a window calls, in the place of the real ones ---- */

static struct {
    char notes[8][128]; /* of the results, in order */
    size_t n_results;
    uint64_t seen;
    char warning[128];
} t;

const struct kp_dl *kp_symbols_dl(void)
{
    return kp_test_dl();
}

void kp_exit_first(void)
{
}

uint64_t kp_stack_capture(const struct kp_registers *from)
{
    (void)from;
    return 0;
}

uint64_t kp_session_seen(uint64_t launches)
{
    return t.seen += launches;
}

void kp_session_device(const struct kp_device *device, const char *chip, const char *breakdowns)
{
    (void)device, (void)chip, (void)breakdowns;
}

void kp_session_collection(const char *metrics, const char *cupti_version)
{
    (void)metrics, (void)cupti_version;
}

void kp_session_prepare_codes(void)
{
}

void kp_session_codes(struct kp_codes *codes)
{
    (void)codes;
}

void kp_session_results(struct kp_session_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(t.notes[t.n_results++ % 8], sizeof(t.notes[0]), "%s", entries[i].result->launch.note);
}

void kp_session_warn(enum kp_failure kind, const char *text)
{
    (void)kind;
    snprintf(t.warning, sizeof(t.warning), "%s", text);
}

void kp_session_lacks(const char *base, uint64_t shapes)
{
    (void)base, (void)shapes;
}

void kp_session_skip(enum kp_reason reason, uint64_t launches)
{
    (void)reason, (void)launches;
}

void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told)
{
    (void)result, (void)base, (void)told;
}

void kp_session_alike(const struct kp_launch_info *l)
{
    (void)l;
}

void kp_session_timeline(void)
{
}

void kp_session_warn_once(const char *text)
{
    snprintf(t.warning, sizeof(t.warning), "%s", text);
}

/* ---- strategies ---- */

static const char note_of_toy[] = "counted by a toy", note_of_twice[] = "run twice";

static struct {
    bool suits, opens, refuses;
    size_t takes; /* launches, then it has enough */
} toy;

static bool toy_suits(const struct kp_question *q)
{
    kp_test_met("suits");
    assert_ptr_equal(q->window, &kp_window_now);
    return toy.suits;
}

static enum kp_reason toy_admit(const struct kp_question *q)
{
    (void)q;
    kp_test_met("admit");
    return kp_journal_facts().launches >= toy.takes ? KP_REASON_FULL : KP_REASON_NONE;
}

static bool toy_open(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    kp_test_met("open");
    (void)w, (void)q;
    *why = toy.opens ? kp_why_of(KP_REASON_NONE, NULL)
                     : kp_why_of(KP_REASON_NOT_SAVED, kp_strdup("the toy does not open"));
    *reason = toy.refuses ? KP_REASON_BUSY : KP_REASON_NONE;
    return toy.opens && !toy.refuses;
}

static CUresult toy_issue(struct kp_window *w, struct kp_entry *e)
{
    kp_test_met("issue");
    (void)w;
    return kp_journal_issue(e, NULL);
}

static void toy_close(struct kp_window *w, struct kp_window_outcome *out)
{
    kp_test_met("close");
    (void)w;
    out->why = kp_why_of(KP_REASON_NOT_COUNTED, kp_strdup(note_of_toy));
}

static const struct kp_strategy toy_strategy = {
    .name = "toy",
    .suits = toy_suits,
    .admit = toy_admit,
    .open = toy_open,
    .issue = toy_issue,
    .close = toy_close,
};

/* One that issues the window a second time when it closes. */
static bool twice_suits(const struct kp_question *q)
{
    return !q->what->once_reason;
}

static bool twice_open(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    kp_test_met("open-twice");
    (void)w, (void)q, (void)why, (void)reason;
    return true;
}

static void twice_close(struct kp_window *w, struct kp_window_outcome *out)
{
    struct kp_repeat repeat = {0};
    kp_test_met("close-twice");
    (void)w;
    assert_int_equal(kp_one_by_one.issue(&repeat, NULL), CUDA_SUCCESS);
    out->why = kp_why_of(KP_REASON_NOT_COUNTED, kp_strdup(note_of_twice));
}

static const struct kp_strategy twice_strategy = {
    .name = "twice",
    .rewinds = true,
    .suits = twice_suits,
    .open = twice_open,
    .issue = toy_issue,
    .close = twice_close,
};

static const struct kp_strategy *const strategies[] = {&toy_strategy, &twice_strategy, NULL};
static const struct kp_mode toys = {.name = "toys", .strategies = strategies};

/* ---- the program ---- */

static struct kp_context_setup setup;
static const char steps[] = "suits open open-twice admit issue launch close close-twice";

static CUresult issue(const struct kp_launch *l)
{
    (void)l;
    return kp_test_window_launch(0);
}

/* A launch as a door hands it on; returns why it has no result. */
static enum kp_reason launch(const struct kp_candidate *what)
{
    struct kp_launch l = {.issue = issue,
                          .f = kp_test_window.kernels[KP_TEST_INCREMENT],
                          .shape = {.grid = {1, 1, 1}, .block = {32, 1, 1}}};
    enum kp_reason skip_reason = KP_REASON_NONE;
    char *bad_input = NULL;
    assert_int_equal(kp_window_launch(&setup, &l, what, &skip_reason, &bad_input), CUDA_SUCCESS);
    assert_null(bad_input);
    return skip_reason;
}

static enum kp_reason launch_wanted(void)
{
    return launch(&(struct kp_candidate){.wanted = true});
}

static unsigned executions(void)
{
    int n = 0;
    assert_int_equal(KP_TEST_FAKE(cuMemcpyDtoH)(&n, kp_test_window.cursor, sizeof(n)), CUDA_SUCCESS);
    return (unsigned)n;
}

static void check_notes(size_t n, const char *note)
{
    assert_int_equal(t.n_results, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(t.notes[i], note);
}

/* ---- tests ---- */

static void counts(void)
{
    toy.suits = toy.opens = true;
    toy.takes = 2;
    assert_false(launch_wanted());
    kp_test_calls(steps, "suits open issue launch");
    assert_true(kp_window_is_open());
    assert_false(kp_window_watches());
    assert_false(launch_wanted());
    kp_test_calls(steps, "admit issue launch");
    check_notes(0, "");
    assert_false(launch_wanted()); /* it has enough */
    kp_test_calls(steps, "admit close suits open issue launch");
    check_notes(2, note_of_toy);
    kp_window_close(KP_REASON_THE_END);
    kp_test_calls(steps, "close");
    check_notes(3, note_of_toy);
    assert_false(kp_window_is_open());
    assert_int_equal(t.seen, 3);
    assert_int_equal(executions(), 3);
}

static void is_asked_in_order(void)
{
    assert_false(launch_wanted());
    kp_test_calls(steps, "suits open-twice issue launch");
    kp_window_close(KP_REASON_THE_END);
    kp_test_forget_calls();
    toy.suits = true; /* but does not open: the next one is asked, and the user told */
    assert_false(launch_wanted());
    kp_test_calls(steps, "suits open open-twice issue launch");
    assert_string_equal(t.warning, "the toy does not open");
    kp_window_close(KP_REASON_THE_END);
    kp_test_forget_calls();
    toy.opens = toy.refuses = true; /* nobody else is asked */
    assert_int_equal(launch_wanted(), KP_REASON_BUSY);
    kp_test_calls(steps, "suits open launch");
    assert_false(kp_window_is_open());
    toy.suits = false; /* nobody suits */
    assert_int_equal(launch(&(struct kp_candidate){.wanted = true, .once_reason = KP_REASON_GRAPH_VALUES}),
                     KP_REASON_GRAPH_VALUES);
    kp_test_calls(steps, "suits launch");
    assert_false(kp_window_is_open());
}

/* Only a window that rewinds takes operations on memory, and is closed by launches that must be alone. */
static void records_what_it_repeats(void)
{
    uint64_t args[6] = {kp_test_window.cursor, 0, sizeof(int)}, ticket = 0;
    void *real = kp_test_fake("cuMemsetD8_v2");
    toy.suits = toy.opens = true;
    toy.takes = 9;
    launch_wanted();
    assert_int_equal(kp_window_join(&setup, "cuMemsetD8_v2", real, args, &ticket), KP_JOINED_NOT);
    check_notes(1, note_of_toy);
    toy.suits = false;
    launch_wanted();
    assert_true(kp_window_watches());
    assert_int_equal(kp_window_join(&setup, "cuMemsetD8_v2", real, args, &ticket), KP_JOINED);
    assert_int_not_equal(ticket, 0);
    launch_wanted();
    kp_test_forget_calls();
    unsigned before = executions();
    kp_window_close(KP_REASON_THE_END);
    kp_test_calls(steps, "close-twice launch*2");
    assert_int_equal(before, 3);
    assert_int_equal(executions(), 1); /* the memset came between */
    assert_int_equal(t.n_results, 3);
    assert_string_equal(t.notes[2], note_of_twice);
}

/* Memory that the program frees twice is freed once. The fake driver ends a process that frees twice. */
static void keeps_what_is_freed(void)
{
    const struct kp_driver *d = kp_test_driver();
    CUcontext ctx;
    CUdeviceptr memory;
    CUresult answer = CUDA_ERROR_UNKNOWN;
    assert_int_equal(d->cuCtxGetCurrent(&ctx), CUDA_SUCCESS);
    assert_int_equal(d->cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
    assert_false(kp_defer_take(d, ctx, memory, true, &answer)); /* not known as an allocation of the program */
    kp_owned_note(d, kp_owned_row("cuMemAlloc_v2"), (const uint64_t[]){(uintptr_t)&memory, 4096}, 0);
    assert_false(kp_defer_take(d, ctx, memory + 16, false, &answer)); /* the driver says what is wrong */
    assert_true(kp_defer_take(d, ctx, memory, true, &answer));
    assert_int_equal(answer, CUDA_SUCCESS);
    assert_int_equal(d->cuMemsetD32(memory, 7, 4), CUDA_SUCCESS); /* still there for a repetition */
    assert_true(kp_defer_take(d, ctx, memory, true, &answer));
    assert_int_equal(answer, CUDA_ERROR_INVALID_VALUE);
    CUstream stream;
    PFN_cuStreamCreate_v2000 create = (PFN_cuStreamCreate_v2000)(uintptr_t)kp_test_fake("cuStreamCreate");
    assert_int_equal(create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_false(kp_defer_handle(d, ctx, KP_ENDED_STREAM, 0, &answer));
    assert_true(kp_defer_handle(d, ctx, KP_ENDED_STREAM, (uintptr_t)stream, &answer));
    assert_int_equal(answer, CUDA_SUCCESS);
    assert_int_equal(d->cuStreamQuery(stream), CUDA_SUCCESS);
    assert_true(kp_defer_handle(d, ctx, KP_ENDED_STREAM, (uintptr_t)stream, &answer));
    assert_int_equal(answer, CUDA_ERROR_INVALID_HANDLE);
    kp_defer_free(d, ctx);
    assert_false(kp_defer_take(d, ctx, memory, true, &answer));
    kp_defer_free(d, ctx);
}

/* What is destroyed by a handle is there for repetitions, and gone for the program; of which kind it is makes a
 * difference. */
static void keeps_what_is_destroyed(void)
{
    const struct kp_driver *d = kp_test_driver();
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_DESC what = {
        .resType = CU_RESOURCE_TYPE_LINEAR,
        .res.linear = {.format = CU_AD_FORMAT_SIGNED_INT32, .numChannels = 1, .sizeInBytes = 64}};
    CUcontext ctx;
    CUtexObject texture;
    CUmodule module;
    CUfunction f;
    CUresult answer = CUDA_ERROR_UNKNOWN;
    uint64_t more = 0;
    assert_int_equal(d->cuCtxGetCurrent(&ctx), CUDA_SUCCESS);
    assert_int_equal(d->cuMemAlloc(&what.res.linear.devPtr, 4096), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuTexObjectCreate)(&texture, &what, &how, NULL), CUDA_SUCCESS);
    assert_false(kp_defer_handle(d, ctx, KP_ENDED_TEXTURE, 77, &answer)); /* the driver says what is wrong */
    assert_false(kp_defer_handle(d, ctx, KP_ENDED_MODULE, 0, &answer));
    assert_true(kp_defer_handle(d, ctx, KP_ENDED_TEXTURE, texture, &answer));
    assert_int_equal(answer, CUDA_SUCCESS);
    assert_true(kp_defer_has_handle(KP_ENDED_TEXTURE, texture));
    assert_false(kp_defer_has_handle(KP_ENDED_SURFACE, texture));
    assert_int_equal(d->cuTexObjectGetResourceDesc(&what, texture), CUDA_SUCCESS);
    assert_true(kp_defer_handle(d, ctx, KP_ENDED_TEXTURE, texture, &answer));
    assert_int_equal(answer, CUDA_ERROR_INVALID_VALUE);
    assert_true(kp_defer_gives(&more));
    assert_int_equal(d->cuModuleLoadData(&module, "FAKEMOD increment"), CUDA_SUCCESS);
    assert_true(kp_defer_handle(d, ctx, KP_ENDED_MODULE, (uintptr_t)module, &answer));
    assert_int_equal(answer, CUDA_SUCCESS);
    assert_int_equal(d->cuModuleGetFunction(&f, module, "increment"), CUDA_SUCCESS);
    assert_false(kp_defer_gives(&more)); /* nobody knows how much */
    kp_defer_free(d, ctx);
    assert_false(kp_defer_has_handle(KP_ENDED_TEXTURE, texture));
    assert_int_not_equal(d->cuTexObjectGetResourceDesc(&what, texture), CUDA_SUCCESS);
    assert_true(kp_defer_gives(&more));
    assert_int_equal(d->cuModuleLoadData(&module, "FAKEMOD increment"), CUDA_SUCCESS);
    kp_defer_no_modules(); /* it may be a library's */
    assert_false(kp_defer_handle(d, ctx, KP_ENDED_MODULE, (uintptr_t)module, &answer));
}

static cuuint64_t pool_uses(const struct kp_driver *d)
{
    CUmemoryPool pool;
    CUdevice device;
    cuuint64_t bytes = 0;
    assert_int_equal(d->cuCtxGetDevice(&device), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuDeviceGetDefaultMemPool)(&pool, device), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes), CUDA_SUCCESS);
    return bytes;
}

static CUresult refuses_later(CUdeviceptr memory, CUstream stream)
{
    (void)memory, (void)stream;
    return CUDA_ERROR_INVALID_VALUE;
}

/* What is freed in the order of a stream is freed so in the end; as other memory where the driver will not. */
static void frees_as_the_program(void)
{
    enum { BYTES = 4096 };
    struct kp_driver drivers[2];
    CUcontext ctx;
    CUdeviceptr memory, base;
    size_t bytes;
    CUresult answer;
    for (int i = 0; i < 2; i++)
        drivers[i] = *kp_test_driver();
    drivers[1].cuMemFreeAsync = refuses_later;
    assert_int_equal(drivers[0].cuCtxGetCurrent(&ctx), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        cuuint64_t before = pool_uses(&drivers[i]);
        assert_int_equal(KP_TEST_FAKE(cuMemAllocAsync)(&memory, BYTES, NULL), CUDA_SUCCESS);
        kp_owned_note(&drivers[i], kp_owned_row("cuMemAllocAsync"), (const uint64_t[]){(uintptr_t)&memory, BYTES, 0},
                      0);
        assert_true(kp_defer_take(&drivers[i], ctx, memory, true, &answer));
        assert_int_equal(pool_uses(&drivers[i]), before + BYTES);
        kp_defer_free(&drivers[i], ctx);
        assert_int_equal(pool_uses(&drivers[i]), before + (i ? BYTES : 0));
        assert_int_not_equal(drivers[i].cuMemGetAddressRange(&base, &bytes, memory), CUDA_SUCCESS); /* it is gone */
    }
}

static void (*const bodies[])(void) = {counts,
                                       is_asked_in_order,
                                       records_what_it_repeats,
                                       keeps_what_is_freed,
                                       keeps_what_is_destroyed,
                                       frees_as_the_program};

/* CUPTI is one a process, and so are contexts. */
static void in_child(void (*body)(void))
{
    char folder[4096], *environment[] = {"KPROF_METRICS=sm__cycles_active.avg", folder, NULL}, *err = NULL;
    struct kp_options options;
    snprintf(folder, sizeof(folder), "KPROF_CUPTI_DIR=%s", kp_test_build("fake"));
    assert_int_equal(kp_options_from_env(&options, environment, &err), 0);
    alarm(60);
    kp_test_context();
    setup = (struct kp_context_setup){.driver = kp_test_driver(), .options = &options, .mode = &toys};
    kp_test_window_open();
    kp_test_window_of("I");
    kp_test_forget_calls();
    body();
    kp_test_end(0);
}

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        int status = -1;
        fflush(NULL);
        pid_t child = fork();
        if (!child)
            in_child(bodies[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bodies)};
    return cmocka_run_group_tests_name("preload/strategy", tests, NULL, NULL);
}
