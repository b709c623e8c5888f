#include "preload/contexts/other_cupti.h"

#include <stdatomic.h>

/* From CUpti_CallbackDomain. The other domains report nothing about launches; frameworks stay subscribed to them
 * permanently. */
enum { DRIVER_API = 1, RUNTIME_API = 2, SYNCHRONIZE = 4, DOMAINS = 5 };

enum { BITS = 64, CALLBACK_WORDS = 1024 / BITS };

/* A bit for each thing that the program has started and not ended. */
static atomic_uint_fast64_t records, subscribed, callbacks[DOMAINS][CALLBACK_WORDS];
static atomic_int counting;
static atomic_bool has_state;

/* How many bits are set, how much is counting, and how many calls are under way that start something. */
static atomic_int holds;

static bool has_launches(uint64_t domain)
{
    return domain == DRIVER_API || domain == RUNTIME_API || domain == SYNCHRONIZE;
}

static void set_bits(atomic_uint_fast64_t *word, uint64_t bits, bool on)
{
    uint64_t before = on ? atomic_fetch_or(word, bits) : atomic_fetch_and(word, ~bits);
    int changed = __builtin_popcountll(on ? bits & ~before : bits & before);
    atomic_fetch_add(&holds, on ? changed : -changed);
}

static void set_kind(uint64_t kind, bool on)
{
    set_bits(&records, UINT64_C(1) << kind % BITS, on);
}

static void set_domain(uint64_t domain, bool on)
{
    for (int i = 0; has_launches(domain) && i < CALLBACK_WORDS; i++)
        set_bits(&callbacks[domain][i], UINT64_MAX, on);
}

static void set_domains(bool on)
{
    for (uint64_t domain = 0; domain < DOMAINS; domain++)
        set_domain(domain, on);
}

static void set_callback(uint64_t domain, uint64_t id, bool on)
{
    if (has_launches(domain))
        set_bits(&callbacks[domain][id / BITS % CALLBACK_WORDS], UINT64_C(1) << id % BITS, on);
}

static void set_counting(bool on)
{
    int now = atomic_load(&counting);
    while ((on || now > 0) && !atomic_compare_exchange_weak(&counting, &now, on ? now + 1 : now - 1))
        ;
    if (on || now > 0)
        atomic_fetch_add(&holds, on ? 1 : -1);
}

static void end_subscription(void)
{
    set_domains(false);
    set_bits(&subscribed, 1, false);
}

static void end_all(void)
{
    end_subscription();
    set_bits(&records, UINT64_MAX, false);
    while (atomic_load(&counting) > 0)
        set_counting(false);
    atomic_store(&has_state, false);
}

bool kp_other_begins(enum kp_other_effect effect, const uint64_t *args)
{
    switch (effect) {
    case KP_OTHER_CALLBACK:
    case KP_OTHER_DOMAIN:
        return (uint32_t)args[0] && has_launches((uint32_t)args[2]);
    case KP_OTHER_DOMAINS:
        return (uint32_t)args[0];
    case KP_OTHER_UNSUBSCRIBES:
    case KP_OTHER_NO_RECORDS:
    case KP_OTHER_NO_RECORDS_OF:
    case KP_OTHER_COUNTS_NOT:
        return false;
    default:
        return true;
    }
}

void kp_other_enter(void)
{
    atomic_fetch_add(&holds, 1);
}

void kp_other_leave(void)
{
    atomic_fetch_sub(&holds, 1);
}

/* Enumerations and flags have 32 bits: the upper half of a register means nothing. */
void kp_other_note(enum kp_other_effect effect, const uint64_t *args, bool beside)
{
    uint32_t first = (uint32_t)args[0], second = (uint32_t)args[1], third = (uint32_t)args[2];
    switch (effect) {
    case KP_OTHER_PASSES:
    case KP_OTHER_BUFFERS:
        break;
    case KP_OTHER_SUBSCRIBES:
        set_bits(&subscribed, beside, true);
        break;
    case KP_OTHER_UNSUBSCRIBES:
        end_subscription();
        break;
    case KP_OTHER_CALLBACK:
        set_callback(third, (uint32_t)args[3], first);
        break;
    case KP_OTHER_DOMAIN:
        set_domain(third, first);
        break;
    case KP_OTHER_DOMAINS:
        set_domains(first);
        break;
    case KP_OTHER_RECORDS:
    case KP_OTHER_NO_RECORDS:
        set_kind(first, effect == KP_OTHER_RECORDS);
        break;
    case KP_OTHER_RECORDS_OF:
    case KP_OTHER_NO_RECORDS_OF:
        set_kind(second, effect == KP_OTHER_RECORDS_OF);
        break;
    case KP_OTHER_COUNTS:
    case KP_OTHER_COUNTS_NOT:
        set_counting(effect == KP_OTHER_COUNTS);
        break;
    case KP_OTHER_FINALIZES:
        end_all();
        return;
    }
    if (!beside && kp_other_begins(effect, args))
        atomic_store(&has_state, true);
}

bool kp_other_holds(void)
{
    return atomic_load(&holds) > 0;
}

bool kp_other_has_state(void)
{
    return atomic_load(&has_state);
}
