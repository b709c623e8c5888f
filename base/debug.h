/*
 * Debug lines about kprof itself: KPROF_DEBUG names domains, the rows of debug.def.
 *
 * Threads: any. A line is written whole, in one call.
 */
#ifndef KP_BASE_DEBUG_H
#define KP_BASE_DEBUG_H

#include <stdatomic.h>
#include <stddef.h>

enum kp_debug_domain {
#define KP_DEBUG_DOMAIN(id, name, what) KP_DEBUG_##id,
#include "base/debug.def"
#undef KP_DEBUG_DOMAIN
    KP_DEBUG_DOMAINS
};

/* A bit for each domain that is shown; 0 at first. Read-only for callers. */
extern atomic_uint kp_debug_shown;

/* Returns true if the domain is shown now. */
#define kp_debug_shows(domain) (atomic_load_explicit(&kp_debug_shown, memory_order_relaxed) & 1U << (domain))

/* Writes `==KPROF== debug DOMAIN [thread]: text` if the domain is shown; else evaluates no arguments. */
#define kp_debug(domain, ...)                                                                                          \
    do {                                                                                                               \
        if (__builtin_expect(kp_debug_shows(domain), 0))                                                               \
            kp_debug_line(domain, __VA_ARGS__);                                                                        \
    } while (0)

void kp_debug_line(enum kp_debug_domain domain, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Shows these domains, a bit each, and no others. Any thread. */
void kp_debug_show(unsigned domains);

/* Sends lines, each with its end, to `write`, or with NULL back to descriptor 2. */
void kp_debug_to(void (*write)(const char *line, size_t len));

#endif
