/*
 * Operations of the program between the launches of the open window: the journal records them, or the window closes.
 */
#include "preload/mode/window.h"

enum kp_joined kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                              const uint64_t *args, uint64_t *ticket)
{
    enum kp_joined joined = kp_journal_join(setup, symbol, real, args, ticket);
    if (joined == KP_JOINED_NOT)
        kp_window_close_by(symbol);
    return joined;
}

void kp_window_read(uint64_t ticket, const char *symbol)
{
    if (kp_journal_ends_read(ticket))
        kp_window_close_by(symbol);
}

void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes,
                         bool later)
{
    if (!kp_journal_allocated(setup, memory, bytes, later))
        kp_window_close_by(symbol);
}

void kp_window_mapped(const char *symbol, CUdeviceptr at, size_t bytes)
{
    if (!kp_journal_mapped(at, bytes))
        kp_window_close_by(symbol);
}

void kp_window_granted(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr at, size_t bytes)
{
    kp_journal_accessible(at, bytes);
    kp_window_allocated(setup, symbol, at, bytes, false);
}

void kp_window_makes_room(const struct kp_context_setup *setup)
{
    if (kp_journal_is_scarce(setup))
        kp_window_close(KP_REASON_WANT_DEVICE_MEMORY);
}
