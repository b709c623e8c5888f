#include "preload/process/phase.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/log.h"
#include "preload/process/process.h"
#include "preload/session/session.h"

struct kp_process kp_process_now = {.lock = &kp_locks[KP_LOCK_PROCESS]};
static struct kp_process *const process = &kp_process_now;

bool kp_process_active(void)
{
    return atomic_load(&process->phase) == KP_PHASE_AWAKE;
}

const struct kp_driver *kp_process_driver(void)
{
    return kp_process_active() ? &process->driver : NULL;
}

void kp_phase_launched(void)
{
    if (atomic_load(&process->phase) == KP_PHASE_FINISHED)
        atomic_fetch_add(&process->late, 1);
}

void kp_phase_hold(void)
{
    static __thread bool held;
    if (held || !atomic_load(&process->leaving) || atomic_load(&process->exiter) == kp_thread_id())
        return;
    held = true;
    kp_lock_wait_while(&process->leaving, 1, kp_limit_first(KP_WAIT_HELD));
}

void kp_phase_go(enum kp_phase p)
{
    atomic_store(&process->phase, p);
    kp_gate_arm(p == KP_PHASE_AWAKE);
    kp_passing_outdate();
}

void kp_phase_unprofiled(enum kp_failure kind, const char *why, char *owned)
{
    const char *text = owned ? owned : why;
    bool question = *text && text[strlen(text) - 1] == '?';
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        kp_log_error("%.*s", (int)(end - text), text);
    kp_log_error("%s%she program runs unprofiled", text, question ? " T" : "; t");
    free(owned);
    kp_phase_go(KP_PHASE_UNPROFILED);
    kp_session_discard_if_empty();
    if (kind != KP_FAILURES)
        kp_outcome_failed(kind);
    if (!kp_session_is_open())
        kp_log_outcome(0, 0);
}

bool kp_process_by_node(void)
{
    return process->options.graph_profiling == KP_GRAPHS_BY_NODE && !kp_mode_has_ranges(process->setup.mode);
}

bool kp_process_replays(void)
{
    return kp_process_active() && kp_mode_repeats(process->setup.mode);
}
