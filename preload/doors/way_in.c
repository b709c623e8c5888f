#include "preload/doors/way_in.h"

#include "base/work.h"
#include "preload/gate/gate.h"

static void enter(void *arg)
{
    const char **symbol = arg;
    kp_gate_enter_shared(*symbol);
    if (kp_work_abandoned())
        kp_gate_leave_shared();
}

void kp_door_enter_shared(const char *symbol)
{
    if (!kp_gate_try_shared())
        kp_work_run(enter, &symbol, sizeof(symbol));
}
