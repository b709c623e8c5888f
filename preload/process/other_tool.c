/*
 * A program that profiles itself goes first: kprof gives way before the program's calls reach CUPTI, and comes back
 * when the program has ended what it started.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/debug.h"
#include "base/lock.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/os/log.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/contexts/context.h"
#include "preload/contexts/other_cupti.h"
#include "preload/session/session.h"
#include "preload/gate/window_facts.h"
#include "preload/program/waits.h"

static struct kp_process *const process = &kp_process_now;

/* The function by which the program last took over CUPTI. */
static const char *_Atomic taken_by;
static atomic_bool told; /* that launches are not profiled */

/* Returns true if the work of a context ends soon, so that CUPTI can be detached from it. */
static bool ends_soon(CUcontext ctx)
{
    return kp_gate_captures() <= 0 && kp_wait_for(&process->driver, ctx, KP_WAIT_LEAVE) != CUDA_ERROR_NOT_READY;
}

/* Closes the window and leaves CUPTI. Within a driver call of this thread, as in a callback, the window is given up: it
 * cannot be replayed before that call has ended. */
static void leave_cupti(const char *name)
{
    kp_debug(KP_DEBUG_PLAN, "%s: gives way, guard %d, in a driver call %d", name, kp_guard, kp_in_driver);
    if (kp_guard || kp_in_driver) {
        kp_window_spoil();
        return;
    }
    KP_ALONE gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE_LAST));
    if (!gate.in) {
        kp_window_spoil(); /* a call in flight may wait for what this thread does next */
    } else if (kp_process_active() && !atomic_load(&process->ending) && kp_window_may_close()) {
        kp_window_close_by(name);
        kp_context_give_way(&process->driver, ends_soon);
    }
}

void kp_process_tell_other(void)
{
    const char *name = atomic_load(&taken_by);
    char *text;
    if (atomic_exchange(&told, true) || asprintf(&text,
                                                 "the program uses CUPTI itself (%s): kprof steps aside, and launches "
                                                 "are not profiled until the program has stopped",
                                                 name ? name : "through another library") < 0)
        return;
    KP_GUARDED;
    kp_session_warn(KP_FAILURE_NOT_COUNTED, text);
    free(text);
}

static void tell_back(void)
{
    static atomic_bool told_back;
    if (atomic_load(&told) && kp_process_active() && !atomic_exchange(&told_back, true))
        kp_log_progress("The program no longer uses CUPTI itself: launches are profiled again");
}

bool kp_process_gives_way(enum kp_other_effect effect, const char *name, const uint64_t *args)
{
    if (!kp_other_begins(effect, args))
        return false;
    bool held = kp_other_holds();
    atomic_store(&taken_by, name);
    kp_other_enter(); /* before the gate is left: no window opens from here on */
    if (kp_process_active() && (!held || effect == KP_OTHER_FINALIZES))
        leave_cupti(name);
    if (effect == KP_OTHER_BUFFERS || effect == KP_OTHER_RECORDS || effect == KP_OTHER_RECORDS_OF)
        kp_context_foreign_activity();
    return true;
}

void kp_process_gave_way(enum kp_other_effect effect, const void *real, const uint64_t *args, bool begins,
                         bool succeeded)
{
    bool beside = kp_context_is_beside(real), held = kp_other_holds();
    if (succeeded)
        kp_other_note(effect, args, beside);
    if (succeeded && effect == KP_OTHER_FINALIZES && !beside)
        kp_context_finalized();
    if (begins)
        kp_other_leave();
    if (held && !kp_other_holds())
        tell_back();
}
