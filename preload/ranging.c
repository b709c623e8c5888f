/*
 * Where ranges begin and end: cu(da)ProfilerStart and Stop, and NVTX.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/phase.h"
#include "preload/process.h"
#include "preload/program/ranges.h"
#include "preload/who/nvtx.h"
#include "preload/window/flags.h"
#include "preload/window/range.h"

static struct kp_process *const process = &kp_process_now;

/* The id of ranges of cu(da)ProfilerStart; those of NVTX are others. */
enum { OF_PROFILER = 1 };

/* Opens the window of a range at its begin, so that copies before its first launch are part of it. During a capture
 * the first launch does. */
static void begin(uint64_t id, const char *name, struct kp_nvtx *nvtx)
{
    int cancel;
    char *bad_input = NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    kp_process_begin();
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_MS)) {
        kp_guard++;
        if (kp_process_active() && !atomic_load(&process->ending) && !kp_ranges_id()) {
            kp_ranges_begin(&process->options, id, name, nvtx);
            if (kp_gate_captures() <= 0)
                kp_range_open_window(&process->setup, NULL, &bad_input);
        }
        if (bad_input)
            kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(cancel, &cancel);
}

static void end(uint64_t id)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        kp_guard++;
        if (kp_ranges_id() == id)
            kp_range_end();
        kp_guard--;
        kp_gate_leave_exclusive();
    } else {
        kp_window_spoil();
    }
    pthread_setcancelstate(cancel, &cancel);
}

/* Inside of a driver call of this thread nothing may wait for the gate. */
static bool may_act(void)
{
    return kp_process_active() && !kp_guard && !kp_in_driver;
}

static void at_nvtx(uint64_t id, bool begins, const char *name)
{
    struct kp_nvtx nvtx = {.ranges = NULL};
    if (!may_act())
        return;
    if (!begins) {
        if (kp_ranges_id() == id)
            end(id);
        return;
    }
    if (kp_ranges_id() || !atomic_load(&process->profiling))
        return;
    if (kp_nvtx_judge(NULL, &nvtx))
        begin(id, name, &nvtx);
    kp_nvtx_free(&nvtx);
}

static bool are_of_nvtx(void)
{
    return *process->options.nvtx_include;
}

void kp_process_prepare_ranges(void)
{
    if (!process->setup.ranges)
        return;
    kp_ranges_configure(&process->options);
    if (are_of_nvtx())
        kp_nvtx_watch(at_nvtx);
}

void kp_process_profile(bool on)
{
    struct kp_nvtx nvtx = {.ranges = NULL};
    if (!kp_process_active())
        return;
    if (!process->options.profile_from_start)
        atomic_store(&process->profiling, on);
    if (!process->setup.ranges || are_of_nvtx() || !may_act())
        return;
    if (!on) {
        end(OF_PROFILER);
    } else if (!kp_ranges_id()) {
        kp_nvtx_judge(NULL, &nvtx);
        begin(OF_PROFILER, "cudaProfilerStart", &nvtx);
        kp_nvtx_free(&nvtx);
    }
}
