#include "preload/mode/modes.h"

#include <stddef.h>

static bool is_asked(const struct kp_mode *m, const struct kp_options *o, bool quick)
{
    return m->option == o->replay_mode && (!m->asked || m->asked(o, quick));
}

const struct kp_mode *kp_mode_choose(const struct kp_options *o, bool quick)
{
    const struct kp_mode *m = kp_modes;
    while (m[1].name && !is_asked(m, o, quick))
        m++;
    return m;
}
