#include "preload/doors/door_call.h"

#include <stdatomic.h>

#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process/process.h"
#include "preload/gate/window_facts.h"

void kp_door_shared(const struct kp_door_call *c)
{
    kp_gate_enter_shared(c->symbol);
}

static void go_in(void *arg)
{
    const struct kp_door_call *c = arg;
    c->way(c);
    if (kp_work_abandoned())
        kp_gate_leave_shared();
}

/* A handler has left the driver's function and will not return. kp_work_reclaim has lowered the guard. */
static void end_left_call(uint64_t slot, uint32_t entered)
{
    (void)slot, (void)entered;
    kp_in_driver--;
    kp_gate_leave_shared();
}

static void begin_call(struct kp_door_call *c)
{
    static atomic_uint_fast64_t last;
    uint64_t mark = (atomic_fetch_add(&last, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < KP_WORK_ARGS; i++)
        c->marks[i] = mark;
    if (!kp_in_driver)
        kp_work_call_begins(c->marks, c->marks, end_left_call, 0, 0);
    kp_guard_raise();
    kp_in_driver++;
}

bool kp_door_enter(struct kp_door_call *c)
{
    if (kp_guard || kp_in_driver)
        kp_work_reclaim();
    if (kp_guard || !kp_process_active())
        return false;
    if (c->way != kp_door_shared || !kp_gate_try_shared())
        kp_work_run(go_in, c, sizeof(*c));
    if (c->unseen)
        kp_window_note_unseen();
    begin_call(c);
    return true;
}

void kp_door_back(const struct kp_door_call *c)
{
    (void)c;         /* it lives until here */
    kp_work_begin(); /* under the guard: paused work does not go on inside the gate */
    kp_in_driver--;
}

void kp_door_leave(void)
{
    kp_guard_lower(NULL);
    kp_gate_leave_shared();
    kp_work_end();
}
