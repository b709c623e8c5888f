#include "preload/doors/trampolines.h"

#include <stdint.h>

#include "preload/doors/calls.h"

enum { TRAMPOLINE_BYTES = 16 };

extern const char kp_gate_pool[];

void *kp_trampoline_for(enum kp_api_class class, const char *symbol, const struct kp_owning *owns, unsigned words,
                        void *real)
{
    if (class == KP_CLASS_PURE || !real)
        return real;
    int i = kp_call_pool_slot(class, symbol, owns, words, real);
    return i < 0 ? real : (void *)(uintptr_t)(kp_gate_pool + (size_t)i * TRAMPOLINE_BYTES);
}
