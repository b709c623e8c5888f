#include "preload/program/host_writes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "preload/session/session.h"

/* Digests of names. When the table is full, later kernels are repeated like others, which is reported once. */
enum { MOST_KERNELS = 256 };

static atomic_uint_fast64_t kernels[MOST_KERNELS]; /* 0: free, and so are all later ones */

static uint64_t digest(const char *mangled)
{
    uint64_t h = kp_hash(mangled, strlen(mangled), 0);
    return h ? h : 1;
}

bool kp_hostwrites_known(const char *mangled)
{
    if (!atomic_load(&kernels[0])) /* the case in nearly all programs */
        return false;
    uint64_t of = digest(mangled), at = of;
    for (size_t i = 0; i < MOST_KERNELS && at; i++) {
        at = atomic_load(&kernels[i]);
        if (at == of)
            return true;
    }
    return false;
}

enum added { KNOWN, NEW, NO_PLACE };

static enum added add(const char *mangled)
{
    uint64_t of = digest(mangled);
    for (size_t i = 0; i < MOST_KERNELS; i++) {
        uint_fast64_t there = 0;
        if (atomic_compare_exchange_strong(&kernels[i], &there, of))
            return NEW;
        if (there == of)
            return KNOWN;
    }
    return NO_PLACE;
}

static void tell_of_others(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        kp_session_warn(KP_FAILURE_IN_PART,
                        "more than 256 kernels write host memory that no argument points into. Further ones are "
                        "repeated like others, and the host may see each write again");
}

void kp_hostwrites_note(const char *mangled, const char *name, uint32_t passes)
{
    static const char format[] =
        "%s writes host memory that no argument points into. A launch of it was repeated for %u "
        "pass%s, and the host may have seen each write again. It runs once from now on; "
        "--replay-mode application or rotate repeats nothing";
    char *text;
    enum added added = mangled ? add(mangled) : KNOWN;
    if (added == NO_PLACE)
        tell_of_others();
    if (added != NEW || asprintf(&text, format, name ? name : mangled, passes, passes == 1 ? "" : "es") < 0)
        return;
    kp_session_warn(KP_FAILURE_IN_PART, text);
    free(text);
}
