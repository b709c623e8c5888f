#include "preload/doors/past.h"

#include <stddef.h>
#include <string.h>

#include "preload/os/guard.h"
#include "preload/os/rebind.h"
#include "preload/os/symbols.h"
#include "preload/process/process.h"

atomic_int kp_past_waits;

bool kp_past_deep(const char *file)
{
    if (kp_guard || !file)
        return false;
    if (strchr(file, '/') && !strchr(file, '$'))
        return true;
    atomic_store(&kp_past_waits, 1);
    return false;
}

void *kp_past_open(const char *file, int flags)
{
    void *library = kp_real_dlopen(file, flags);
    if (library)
        kp_rebind_all();
    return library;
}

void kp_past_look(void)
{
    if (!kp_guard && atomic_exchange(&kp_past_waits, 0))
        kp_rebind_all();
}

void kp_past_namespace(void)
{
    if (!kp_guard)
        kp_process_namespace();
}

void kp_past_close(void)
{
    kp_process_library_closes();
}
