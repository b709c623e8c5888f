#include "preload/doors/door_lookup.h"

#include "preload/doors/doors.h"
#include "preload/os/symbols.h"

void *kp_dlsym(void *handle, const char *name)
{
    if (!kp_real_dlsym)
        kp_symbols_init();
    return kp_door_wrap_symbol(name, kp_real_dlsym(handle, name));
}

void *kp_dlvsym(void *handle, const char *name, const char *version)
{
    if (!kp_real_dlvsym)
        kp_symbols_init();
    return kp_door_wrap_symbol(name, kp_real_dlvsym(handle, name, version));
}
