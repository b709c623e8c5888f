/* Each wait of base/waits.def runs into its limit, and ends: the rows are the test's own here, one of them short and
 * all others longer than the test may take. A case fails where it waits by another row, by none, or without a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "collectors/code/codes.h"
#include "collectors/facts/settle.h"
#include "collectors/providers/library.h"
#include "preload/contexts/context.h"
#include "preload/contexts/launch_ids.h"
#include "preload/contexts/other_cupti.h"
#include "preload/contexts/ranges.h"
#include "preload/contexts/unending.h"
#include "preload/contexts/warm_up.h"
#include "preload/gate/gate.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/reads.h"
#include "preload/journal/repeat.h"
#include "preload/mode/counter_owner.h"
#include "preload/mode/modes.h"
#include "preload/mode/open.h"
#include "preload/mode/repeat_common.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"
#include "preload/mode/window_state.h"
#include "preload/os/elf.h"
#include "preload/os/log.h"
#include "preload/os/progress.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/symbols.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/program/ctx_wait.h"
#include "preload/program/waits.h"
#include "preload/rotation/rotation_state.h"
#include "preload/session/session.h"
#include "preload/who/nvtx.h"
#include "preload/who/timeline.h"
#include "tests/support/child_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

/* ---- the rows ---- */

enum { SHORT_MS = 30, FAR_MS = 10000000, MOST_S = 50 };

/* What a row asks for: the first limit, the next one, or the one at exit. */
enum when { FIRST, NEXT, AT_EXIT };

static struct {
    enum kp_wait row; /* the short one */
    enum when when;
    int none; /* another row that does not wait at all: of a wait behind it; -1 = none */
    atomic_uint asked;
    bool spent;   /* the budget of waits for launches is */
    long from_ms; /* kp_now_ms() where the wait may begin */
} now = {.none = -1};

static long limit(enum kp_wait w, enum when when)
{
    if ((int)w == now.none)
        return 0;
    if (w != now.row || when != now.when)
        return FAR_MS;
    now.asked++;
    return SHORT_MS;
}

long kp_limit_first(enum kp_wait w)
{
    return limit(w, FIRST);
}

long kp_limit_next(enum kp_wait w)
{
    return limit(w, NEXT);
}

long kp_limit_at_exit(enum kp_wait w)
{
    return limit(w, AT_EXIT);
}

long kp_span_ms(enum kp_span s)
{
    static const long spans[] = {
#define KP_SPAN(id, ms, what) ms,
#include "base/waits.def"
    };
    return s == KP_SPAN_BUDGET ? (now.spent ? 0 : FAR_MS) : s == KP_SPAN_RANGE_SLICE ? 1 : spans[s];
}

static void from_here(void)
{
    now.from_ms = kp_now_ms();
}

/* ---- a driver whose work does not end ---- */

static CUcontext const here = (CUcontext)(uintptr_t)0xc1;
static atomic_bool late; /* threads begin late */
static atomic_bool idle; /* its work has ended, for once */

static CUresult CUDAAPI busy_stream(CUstream stream)
{
    (void)stream;
    return atomic_load(&idle) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void *stay(void)
{
    for (;;)
        pause();
    return NULL;
}

static CUresult CUDAAPI busy_context(void)
{
    if (!atomic_load(&idle))
        stay();
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI push_context(CUcontext ctx)
{
    (void)ctx;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI take_context(CUcontext *ctx)
{
    *ctx = here;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI take_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI count_no_devices(int *n)
{
    (void)n;
    return CUDA_ERROR_INVALID_CONTEXT;
}

static const struct kp_driver driver = {.cuStreamQuery = busy_stream,
                                        .cuDeviceGetCount = count_no_devices,
                                        .cuCtxSynchronize = busy_context,
                                        .cuCtxPushCurrent = push_context,
                                        .cuCtxPopCurrent = take_context,
                                        .cuCtxGetCurrent = take_context,
                                        .cuThreadExchangeStreamCaptureMode = take_mode};

/* ---- threads that hold something for good ---- */

static atomic_int holds;

static void *hold_lock(void *lock)
{
    kp_lock_take(&kp_locks[(uintptr_t)lock], 0);
    atomic_store(&holds, kp_thread_id());
    return stay();
}

static void *hold_stdout(void *unused)
{
    (void)unused;
    flockfile(stdout);
    atomic_store(&holds, 1);
    return stay();
}

static void *hold_gate(void *unused)
{
    (void)unused;
    kp_gate_enter_shared("a call in flight");
    atomic_store(&holds, kp_thread_id());
    return stay();
}

static int start_holder(void *(*fn)(void *arg), uintptr_t arg)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, fn, (void *)arg));
    while (!atomic_load(&holds))
        sched_yield();
    return atomic_load(&holds);
}

/* ---- the library's threads ---- */

struct body {
    void *(*fn)(void *arg);
    void *arg;
};

static void *begin_late(void *arg)
{
    const struct body b = *(struct body *)arg;
    nanosleep(&(struct timespec){.tv_sec = MOST_S}, NULL);
    return b.fn(b.arg);
}

static int create_late(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    static struct body b;
    b = (struct body){fn, arg};
    return atomic_load(&late) ? pthread_create(thread, attr, begin_late, &b) : pthread_create(thread, attr, fn, arg);
}

static void *find_function(void *handle, const char *name)
{
    void *create;
    int (*of_test)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = create_late;
    memcpy(&create, &of_test, sizeof(create));
    return strcmp(name, "pthread_create") ? dlsym(handle, name) : create;
}

/* Has the library start its threads by create_late. */
static void begin_threads_late(void)
{
    struct kp_dl *dl = (struct kp_dl *)(uintptr_t)kp_symbols_dl(); /* which is the library's own, and no constant */
    dl->sym = find_function;
    atomic_store(&late, true);
}

/* ---- cases: locks, files and threads ---- */

static void nothing(void)
{
}

static void fork_beside_a_lock(void)
{
    kp_locks_watch_forks(nothing);
    start_holder(hold_lock, KP_LOCK_ENDED);
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
}

static jmp_buf outside;

static void leave(int unused)
{
    (void)unused;
    siglongjmp(outside, 1);
}

static void wait_when_cut(void *unused)
{
    (void)unused;
    raise(SIGUSR1);
    kp_safe_point();
    kp_wait_stream(&driver, NULL, FAR_MS);
}

static void work_that_is_left(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    _exit(SKIPPED); /* there work is not paused */
#endif
    signal(SIGUSR1, leave);
    if (!sigsetjmp(outside, 1)) {
        kp_work_run(wait_when_cut, NULL, 0);
        return;
    }
    kp_work_ends_process();
    kp_work_begin();
    kp_work_end();
}

static void walk_objects(void)
{
    start_holder(hold_lock, KP_LOCK_OBJECTS);
    kp_elf_find("libnonesuch.so", "nonesuch");
}

static void log_into_full_pipe(void)
{
    int ends[2];
    char much[4096] = {0};
    CHECK(!pipe2(ends, O_NONBLOCK));
    while (write(ends[1], much, sizeof(much)) > 0)
        ;
    CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    kp_log_error("a line");
}

static void begin_progress(void)
{
    start_holder(hold_lock, KP_LOCK_PROGRESS);
    kp_progress_begin("a step", false);
}

static void flush_stdout(void)
{
    start_holder(hold_stdout, 0);
    kp_stdout_flush();
}

static void begin_timeline(void)
{
    struct kp_cupti *cupti;
    char *err;
    const char *const none[] = {NULL};
    CHECK(!kp_library_open(kp_symbols_dl(), kp_test_build("fake"), none, &cupti, &err));
    kp_library_complete(cupti);
    kp_test_context();
    CHECK(!kp_timeline_begin(cupti, nothing));
}

static void end_nvtx(void)
{
    begin_timeline();
    start_holder(hold_lock, KP_LOCK_NVTX_STACKS);
    kp_nvtx_end_timeline();
}

static void put_on_timeline(void)
{
    begin_timeline();
    start_holder(hold_lock, KP_LOCK_TIMELINE);
    kp_timeline_range("", "a range", 1, 1, 2);
}

static void close_session(void)
{
    start_holder(hold_lock, KP_LOCK_STORING);
    kp_session_close();
}

static void wait_by_a_late_thread(void)
{
    begin_threads_late();
    CHECK(kp_patience_wait(&driver, here, 1) == CUDA_ERROR_NOT_READY);
}

static uint8_t image[2 << 20];
static size_t image_bytes;

static const void *cubin(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = image_bytes;
    return image;
}

static void disassemble(void)
{
    char folder[] = "/tmp/kprof-waits-XXXXXX", tool[64];
    FILE *f = fopen(kp_test_source("tests/data/inline.sm90-cuda13.cubin"), "re");
    CHECK(f && (image_bytes = fread(image, 1, sizeof(image), f)) && mkdtemp(folder));
    snprintf(tool, sizeof(tool), "%s/nvdisasm", folder);
    FILE *script = fopen(tool, "we");
    CHECK(script && fputs("#!/bin/sh\nexec sleep 100\n", script) >= 0 && !fclose(script) && !chmod(tool, 0700));
    char path[4096];
    snprintf(path, sizeof(path), "%s:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    struct kp_codes *codes = kp_codes_new(cubin, true);
    uint64_t id = kp_codes_id(codes, 7, "nested");
    kp_codes_prepare(codes, id, id + 1);
    unlink(tool);
    rmdir(folder);
}

/* ---- cases: the library that plans and counts ---- */

static void open_early(void)
{
    start_holder(hold_lock, KP_LOCK_WARMING);
    kp_ahead_open((const struct kp_cupti *)image);
}

/* Until the thread waits for the lock: it goes on, and asks no more. */
static void wait_for_opener(void)
{
    enum { WAITED_FOR = 1 << 30 };
    while (!(atomic_load(&kp_locks[KP_LOCK_WARMING].word) & WAITED_FOR))
        sched_yield();
}

static void open_after_a_pause(void)
{
    open_early();
    wait_for_opener();
}

static void wait_for_plan(void)
{
    open_early();
    wait_for_opener();
    from_here();
    kp_ahead_wait(false);
}

static void give_up_plan(void)
{
    open_early();
    wait_for_opener();
    from_here();
    kp_ahead_give_up();
}

/* ---- cases: the gate ---- */

static void start_process(void)
{
    struct kp_process *p = &kp_process_now;
    p->driver = driver;
    p->setup = (struct kp_context_setup){.driver = &p->driver, .options = &p->options, .mode = &kp_modes[0]};
    p->pid = p->loaded = getpid();
    kp_phase_go(KP_PHASE_AWAKE);
}

static void start_with_options(void)
{
    const struct kp_filter_source source = {.now = kp_clock_ns};
    char *const nothing_set[] = {NULL};
    struct kp_process *p = &kp_process_now;
    char *err;
    start_process();
    CHECK(!kp_options_from_env(&p->options, nothing_set, &err));
    CHECK(!kp_filter_new(&p->options, &source, &p->filter, &err));
}

static void load_images(void)
{
    start_process();
    start_holder(hold_gate, 0);
    kp_process_loads_images();
}

static void close_from_a_call(void)
{
    start_process();
    start_holder(hold_gate, 0);
    kp_process_close_window_for(KP_REASON_FULL);
}

static void step_aside(void)
{
    start_process();
    kp_process_now.options.cupti_leaves = true;
    kp_context_uses_cupti();
    start_holder(hold_gate, 0);
    do { /* until CUPTI has not been used for a while */
        from_here();
        kp_process_leave_alone();
    } while (!now.asked);
}

/* ---- cases: work before a launch ---- */

static struct kp_options options;
static const struct kp_context_setup setup = {.driver = &driver, .options = &options, .mode = &kp_modes[0]};
static struct kp_context context = {.ctx = (CUcontext)(uintptr_t)0xc1, .driver = &driver};

static void settle_before_a_launch(void)
{
    CHECK(!kp_stuck_settle(&driver, &context));
}

static void settle_again(void)
{
    context.stalled = true;
    CHECK(!kp_stuck_settle(&driver, &context));
}

static void open_behind_work(void)
{
    const struct kp_launch launch = {.is_graph = true};
    const struct kp_candidate what = {.wanted = true};
    struct kp_question q = {
        .window = &kp_window_now, .setup = &setup, .context = &context, .launch = &launch, .what = &what};
    enum kp_reason why;
    context.collector = (struct kp_collector *)image;
    CHECK(!kp_window_open(&kp_window_now, &q, &why) && why == KP_REASON_UNENDED);
}

static void open_behind_work_again(void)
{
    context.stalled = true;
    open_behind_work();
}

static void watch(enum kp_wait w)
{
    struct kp_known_function f = {.ends = 1};
    CHECK(!kp_stuck_watch(&driver, &context, &f, w) && f.waits_reason == KP_REASON_WAITS_FOR_HOST);
}

static void watch_alone(void)
{
    const struct kp_launch graph = {.is_graph = true};
    const struct kp_candidate what = {.wanted = true};
    struct kp_question q = {
        .window = &kp_window_now, .setup = &setup, .context = &context, .launch = &graph, .what = &what};
    kp_admit_judge(&q);
    watch(q.fit.patience);
}

static void watch_many(void)
{
    watch(KP_WAIT_MANY);
}

static void watch_paging(void)
{
    watch(KP_WAIT_PAGING);
}

/* ---- cases: windows ---- */

enum { ITEMS = 3 };
static struct kp_item items[ITEMS];

static struct kp_window *open_window(size_t n)
{
    static char collector[1 << 16]; /* all 0: it has nothing */
    struct kp_journal *j = &kp_journal_now;
    struct kp_window *w = &kp_window_now;
    context.collector = (struct kp_collector *)collector;
    *j = (struct kp_journal){
        .open = true, .rewinds = true, .setup = &setup, .context = &context, .items = items, .n = n, .end = n};
    *w = (struct kp_window){.open = true, .setup = &setup, .context = &context, .strategy = &kp_strategy_count};
    return w;
}

static CUresult issue_nothing(const struct kp_launch *l)
{
    (void)l;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI call_nothing(void)
{
    return CUDA_SUCCESS;
}

static void add_launch(size_t at)
{
    items[at].is_launch = true;
    items[at].entry.launch.issue = issue_nothing;
}

static void arrive(void)
{
    open_window(0);
    kp_journal_now.pending = true;
    CHECK(!kp_reads_arrive(&kp_journal_now));
}

static void arrive_without_budget(void)
{
    now.spent = true;
    arrive();
}

static void close_replay(enum kp_reason why)
{
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    kp_replay_close(&kp_window_now, &kp_one_by_one, &out);
    CHECK(out.why.reason == why);
}

static void end_window(void)
{
    open_window(0);
    close_replay(KP_REASON_WINDOW_UNENDED);
}

static void end_window_at_exit(void)
{
    open_window(0);
    kp_window_hurry();
    close_replay(KP_REASON_WINDOW_UNENDED);
}

static void end_window_that_may_wait(void)
{
    add_launch(0);
    items[0].entry.reaches_host = true;
    open_window(1);
    close_replay(KP_REASON_WINDOW_UNENDED);
}

static void end_host_call(void)
{
    items[0].op.calls_host = true;
    open_window(1);
    kp_journal_now.calls_host = true;
    close_replay(KP_REASON_HOST_FUNCTION_WAITS);
}

static void end_spoilt_window(void)
{
    open_window(0);
    kp_window_spoil();
    close_replay(KP_REASON_WINDOW_SPOILED);
}

static void close_by(const struct kp_strategy *s)
{
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    struct kp_window *w = &kp_window_now;
    w->strategy = s;
    s->close(w, &out);
}

static void end_counted(void)
{
    open_window(0);
    close_by(&kp_strategy_count);
    CHECK(context.no_counters.reason == KP_REASON_WORK_UNSTOPPED);
}

static void end_counted_at_exit(void)
{
    kp_window_hurry();
    end_counted();
}

static void end_counted_that_may_wait(void)
{
    add_launch(0);
    items[0].entry.reaches_host = true;
    open_window(1);
    close_by(&kp_strategy_count);
}

static struct kp_turn turn = {.chooses = true};

static void end_rotation(void)
{
    struct kp_window *w = open_window(0);
    const struct kp_strategy chooses = {.turn = &turn, .close = kp_strategy_count.close};
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    w->strategy = &chooses;
    chooses.close(w, &out);
}

static void change_rotation(void)
{
    struct kp_window *w = open_window(0);
    const struct kp_strategy chooses = {.turn = &turn};
    w->strategy = &chooses;
    CHECK(!kp_window_may_close());
}

static void change_rotation_again(void)
{
    context.stalled = true;
    change_rotation();
}

/* A launch has passed the window since its context was idle. */
static void pass_rotation(void)
{
    static bool given_up[1];
    static uint64_t taken[1];
    static struct kp_rotation rotation = {.beside = true, .given_up = given_up};
    static struct kp_rotation_key key = {.of = &rotation, .taken = taken, .lacking = 1, .untaken = true};
    const struct kp_launch launch = {.stream = NULL};
    struct kp_window *w = open_window(0);
    struct kp_question q = {.window = w, .setup = &setup, .context = &context, .launch = &launch, .key = &key};
    const struct kp_strategy chooses = {.turn = &turn};
    w->strategy = &chooses;
    kp_journal_now.serial = 1;
    atomic_store(&idle, true);
    CHECK(kp_window_may_close());
    atomic_store(&idle, false);
    kp_rotate_pass(&q);
    q.key = NULL;
    now.none = KP_WAIT_ROTATION;
    from_here();
    kp_rotate_pass(&q);
}

static void rehearse(enum kp_wait w, int code)
{
    struct kp_repeat r = {kp_limit_first(w), FAR_MS};
    add_launch(0);
    open_window(1);
    CHECK(kp_one_by_one.rehearse(&r) == code && kp_journal_now.stuck == 1);
}

static void rehearse_window(void)
{
    rehearse(KP_WAIT_REHEARSAL, KP_ISSUE_UNENDED);
}

static void rehearse_variant(void)
{
    rehearse(KP_WAIT_VARIANT, KP_ISSUE_UNENDED);
}

/* A launch that does not end, and what the program read behind it. */
static void rescue(void)
{
    struct kp_repeat r = {0, 0};
    add_launch(0);
    items[1].read.site = (struct kp_read_site *)image; /* of which it knows no value */
    open_window(2);
    CHECK(kp_one_by_one.rehearse(&r) == KP_ISSUE_UNENDED);
}

static void put_back(void)
{
    CUresult(CUDAAPI * real)(void) = call_nothing;
    memcpy(&items[0].op.real, &real, sizeof(real));
    items[0].backup = 1;
    open_window(1);
    CHECK(kp_repeat_one(&kp_journal_now, &items[0]) == CUDA_ERROR_NOT_READY);
}

static void settle_pass(void)
{
    CHECK(kp_settle(&driver, NULL) == CUDA_ERROR_NOT_READY);
}

static void settle_pass_again(void)
{
    now.none = KP_WAIT_PASS;
    now.when = FIRST;
    kp_settle(&driver, NULL);
    now.none = -1;
    now.when = NEXT;
    settle_pass();
}

/* ---- cases: several contexts, of the fake driver ---- */

static struct kp_context *others[2];

static struct kp_driver *make_contexts(void)
{
    static struct kp_context_setup of_fake;
    struct kp_driver *d = kp_test_driver();
    char *bad_input;
    options.metrics = options.cupti_dir = "";
    of_fake = (struct kp_context_setup){.driver = d, .options = &options, .mode = &kp_modes[0]};
    for (int i = 0; i < 2; i++)
        CHECK((others[i] = kp_context_get(&of_fake, kp_test_context(), &bad_input)));
    d->cuStreamQuery = busy_stream;
    d->cuCtxSynchronize = busy_context;
    return d;
}

static void ask_elsewhere(void)
{
    struct kp_driver *d = make_contexts();
    others[0]->stalled = true;
    CHECK(kp_stuck_elsewhere(d, others[1]) == KP_REASON_UNENDED_ELSEWHERE);
}

static void take_counters(void)
{
    struct kp_driver *d = make_contexts();
    others[0]->taken.enabled = true;
    kp_claim_counters(d, others[1]);
    CHECK(others[0]->keeps == KP_REASON_KEPT_BUSY);
}

static void copy_behind_work(void)
{
    struct kp_driver *d = make_contexts();
    const struct kp_context_setup of_fake = {.driver = d, .options = &options, .mode = &kp_modes[0]};
    CUdeviceptr to;
    int from = 0;
    uint64_t ticket;
    void *real;
    CUresult(CUDAAPI * of_driver)(void) = call_nothing;
    memcpy(&real, &of_driver, sizeof(real));
    CHECK(d->cuMemAlloc(&to, sizeof(from)) == CUDA_SUCCESS);
    const uint64_t args[KP_OP_ARGS] = {to, (uintptr_t)&from, sizeof(from)};
    open_window(0);
    kp_journal_now.context = others[1];
    CHECK(kp_journal_join(&of_fake, "cuMemcpyHtoD_v2", real, args, &ticket) == KP_JOINED_NOT);
}

static void leave_window(void)
{
    make_contexts();
    struct kp_window *w = open_window(0);
    w->left = true;
    context.device_ordinal = others[0]->device_ordinal;
    close_replay(KP_REASON_WINDOW_UNENDED);
}

static CUresult CUDAAPI stay_in_device(CUdevice *device)
{
    static unsigned calls;
    *device = 0;
    if (!calls++) /* before it plans */
        return CUDA_ERROR_INVALID_CONTEXT;
    atomic_store(&holds, kp_thread_id());
    stay();
    return CUDA_SUCCESS;
}

static void *plan_for_good(void *unused)
{
    static struct kp_driver d;
    static const struct kp_context_setup stays = {.driver = &d, .options = &options, .mode = &kp_modes[0]};
    char *bad_input;
    d = driver;
    d.cuCtxGetDevice = stay_in_device;
    options.cupti_dir = "";
    kp_context_get(&stays, here, &bad_input);
    return unused;
}

static void exit_beside_a_plan(void)
{
    start_process();
    start_holder(plan_for_good, 0);
    kp_process_exit_called();
}

/* ---- cases: ranges where the program runs once for each pass ---- */

/* The program runs again: for a pass. */
static void run_again(void)
{
    struct kp_process *p = &kp_process_now;
    p->options.replay_run = 2;
    for (const struct kp_mode *m = kp_modes; !kp_mode_has_ranges(p->setup.mode); m++)
        p->setup.mode = m;
}

static void open_range(void)
{
    struct kp_nvtx nvtx = {.ranges = NULL};
    start_with_options();
    run_again();
    kp_ranges_begin(1, "a range", &nvtx, KP_REASON_NONE);
    kp_ranges_count_in(here, true);
}

/* Another tool keeps the range from a window. */
static void begin_range(void)
{
    struct kp_process *p = &kp_process_now;
    start_with_options();
    run_again();
    atomic_store(&p->stores, true);
    atomic_store(&p->ahead, true);
    kp_other_enter();
    kp_process_profile(true);
    CHECK(kp_ranges_open()->beside);
}

static void end_range(void)
{
    open_range();
    kp_process_profile(false);
}

static void end_range_in_a_capture(void)
{
    open_range();
    kp_gate_capture_begins();
    kp_process_profile(false);
}

/* ---- cases: the end ---- */

static void exit_beside_another(void)
{
    start_process();
    atomic_store(&kp_process_now.exiter, start_holder(hold_lock, KP_LOCK_STACKS));
    kp_process_exits();
}

static void finish_beside_another(void)
{
    start_process();
    atomic_store(&kp_process_now.finisher, start_holder(hold_lock, KP_LOCK_STACKS));
    kp_process_finish();
}

static void report_beside_a_call(void)
{
    start_with_options();
    kp_test_context();
    kp_session_open(&kp_process_now.options, kp_test_driver(), NULL, 0);
    CHECK(kp_session_is_open());
    start_holder(hold_gate, 0);
    from_here();
    kp_process_finish();
}

static void start_beside_another(void)
{
    start_holder(hold_lock, KP_LOCK_PROCESS);
    kp_process_cuda_started();
}

static void launch_behind_the_report(void)
{
    atomic_store(&kp_process_now.leaving, 1);
    kp_phase_hold();
}

/* ---- */

static const struct kase {
    enum kp_wait row;
    enum when when;
    void (*body)(void);
    int none; /* a row that does not wait, behind it; 0 = none */
} cases[] = {
    {KP_WAIT_FORK_LOCKS, FIRST, fork_beside_a_lock, 0},
    {KP_WAIT_CUT, FIRST, work_that_is_left, 0},
    {KP_WAIT_OBJECTS, FIRST, walk_objects, 0},
    {KP_WAIT_LOG, FIRST, log_into_full_pipe, 0},
    {KP_WAIT_PROGRESS, FIRST, begin_progress, 0},
    {KP_WAIT_STDOUT, FIRST, flush_stdout, 0},
    {KP_WAIT_NVTX, FIRST, end_nvtx, 0},
    {KP_WAIT_TIMELINE, FIRST, put_on_timeline, 0},
    {KP_WAIT_SESSION, FIRST, close_session, 0},
    {KP_WAIT_THREAD_BEGINS, FIRST, wait_by_a_late_thread, 0},
    {KP_WAIT_DISASSEMBLER, FIRST, disassemble, 0},
    {KP_WAIT_PAUSE, FIRST, open_after_a_pause, 0},
    {KP_WAIT_WARM_UP, FIRST, wait_for_plan, KP_WAIT_PAUSE},
    {KP_WAIT_GIVE_UP, FIRST, give_up_plan, KP_WAIT_PAUSE},
    {KP_WAIT_GATE, FIRST, load_images, 0},
    {KP_WAIT_GATE_LAST, FIRST, close_from_a_call, 0},
    {KP_WAIT_STEP_ASIDE, FIRST, step_aside, 0},
    {KP_WAIT_BEFORE, FIRST, open_behind_work, 0},
    {KP_WAIT_BEFORE, NEXT, open_behind_work_again, 0},
    {KP_WAIT_BEFORE_RANGE, FIRST, begin_range, 0},
    {KP_WAIT_BEFORE_COPY, FIRST, copy_behind_work, 0},
    {KP_WAIT_MOMENT, FIRST, ask_elsewhere, 0},
    {KP_WAIT_COUNTERS, FIRST, take_counters, 0},
    {KP_WAIT_WINDOW_LEFT, FIRST, leave_window, 0},
    {KP_WAIT_ROTATION_STREAMS, FIRST, pass_rotation, 0},
    {KP_WAIT_PLAN, FIRST, exit_beside_a_plan, 0},
    {KP_WAIT_REPORT, FIRST, report_beside_a_call, 0},
    {KP_WAIT_SETTLE, FIRST, settle_before_a_launch, 0},
    {KP_WAIT_SETTLE, NEXT, settle_again, 0},
    {KP_WAIT_ALONE, FIRST, watch_alone, 0},
    {KP_WAIT_PAGING, FIRST, watch_paging, 0},
    {KP_WAIT_MANY, FIRST, watch_many, 0},
    {KP_WAIT_WORK, FIRST, arrive, 0},
    {KP_WAIT_WORK, NEXT, arrive_without_budget, 0},
    {KP_WAIT_WINDOW_END, FIRST, end_window, 0},
    {KP_WAIT_WINDOW_END, AT_EXIT, end_window_at_exit, 0},
    {KP_WAIT_WINDOW_WAITS, FIRST, end_window_that_may_wait, 0},
    {KP_WAIT_HOST_CALL, FIRST, end_host_call, 0},
    {KP_WAIT_LEAVE, FIRST, end_spoilt_window, 0},
    {KP_WAIT_COUNTED, FIRST, end_counted, 0},
    {KP_WAIT_COUNTED, AT_EXIT, end_counted_at_exit, 0},
    {KP_WAIT_COUNTED_WAITS, FIRST, end_counted_that_may_wait, 0},
    {KP_WAIT_ROTATION_END, FIRST, end_rotation, 0},
    {KP_WAIT_ROTATION, FIRST, change_rotation, 0},
    {KP_WAIT_ROTATION, NEXT, change_rotation_again, 0},
    {KP_WAIT_REHEARSAL, FIRST, rehearse_window, KP_WAIT_PASS},
    {KP_WAIT_VARIANT, FIRST, rehearse_variant, KP_WAIT_PASS},
    {KP_WAIT_RESCUE, FIRST, rescue, KP_WAIT_PASS},
    {KP_WAIT_PUT_BACK, FIRST, put_back, 0},
    {KP_WAIT_PASS, FIRST, settle_pass, 0},
    {KP_WAIT_PASS, NEXT, settle_pass_again, 0},
    {KP_WAIT_RANGE_END, FIRST, end_range, 0},
    {KP_WAIT_RANGE_CAPTURE, FIRST, end_range_in_a_capture, 0},
    {KP_WAIT_EXITER, FIRST, exit_beside_another, 0},
    {KP_WAIT_FINISHER, FIRST, finish_beside_another, 0},
    {KP_WAIT_START, FIRST, start_beside_another, 0},
    {KP_WAIT_HELD, FIRST, launch_behind_the_report, 0},
};

enum { CASES = sizeof(cases) / sizeof(*cases) };

static const char *const names[KP_WAITS] = {
#define KP_WAIT(id, first, next, at_exit, who, what) #id,
#include "base/waits.def"
};

/* In a child. */
static void run_case(const struct kase *c)
{
    now.row = c->row;
    now.when = c->when;
    now.none = c->none ? c->none : -1;
    alarm(MOST_S);
    signal(SIGSEGV, SIG_DFL);
    from_here();
    c->body();
    CHECK(now.asked);
    CHECK(kp_now_ms() - now.from_ms >= SHORT_MS - 1); /* of a range, but for a slice */
    syscall(SYS_exit_group, RIGHT);                   /* TSan's _exit flushes stdout, which a case may hold */
}

static void test_case(void **state)
{
    const struct kase *c = *state;
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid)
        run_case(c);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("%s: signal %d", names[c->row], WTERMSIG(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), RIGHT);
}

static void test_every_row(void **state)
{
    (void)state;
    unsigned lacking = 0;
    for (int w = 0; w < KP_WAITS; w++) {
        int k = 0;
        while (k < CASES && (int)cases[k].row != w)
            k++;
        if (k == CASES)
            print_error("%s has no case\n", names[w]);
        lacking += k == CASES;
    }
    assert_int_equal(lacking, 0);
}

int main(void)
{
    struct CMUnitTest tests[CASES + 1] = {cmocka_unit_test(test_every_row)};
    for (size_t i = 0; i < CASES; i++)
        tests[i + 1] = (struct CMUnitTest){
            .name = names[cases[i].row], .test_func = test_case, .initial_state = (void *)(uintptr_t)&cases[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
