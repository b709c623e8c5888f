#include "preload/mode/closers.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "preload/os/log.h"

enum { MOST_CLOSERS = 16 };

/* Counts windows by the reason that closed them; the last row counts all others. */
static struct {
    const char *what; /* static text */
    uint64_t windows;
} closers[MOST_CLOSERS];
static uint64_t windows, launches, full_windows;

const char kp_closed_full[] = "as many launches as fit";

void kp_closers_note(const char *what, size_t n_launches)
{
    size_t i = 0;
    windows++;
    launches += n_launches;
    full_windows += what == kp_closed_full;
    while (i < MOST_CLOSERS - 1 && closers[i].what && strcmp(closers[i].what, what))
        i++;
    if (!closers[i].what)
        closers[i].what = i < MOST_CLOSERS - 1 ? what : "others";
    closers[i].windows++;
}

/* Whether there are so many windows with so few launches, although there was room for more. */
static bool hold_few(uint64_t n_windows, uint64_t launches_each)
{
    return windows >= n_windows && launches < launches_each * windows && 2 * full_windows <= windows;
}

/* Lists the reasons, the most frequent first. */
static void list(char *text, size_t size)
{
    bool listed[MOST_CLOSERS] = {false};
    *text = '\0';
    for (size_t at = 0; at < size;) {
        size_t most = MOST_CLOSERS;
        for (size_t i = 0; i < MOST_CLOSERS; i++)
            if (!listed[i] && closers[i].windows &&
                (most == MOST_CLOSERS || closers[i].windows > closers[most].windows))
                most = i;
        if (most == MOST_CLOSERS)
            return;
        listed[most] = true;
        at += (size_t)snprintf(text + at, size - at, "%s%s (%llu)", at ? ", " : "", closers[most].what,
                               (unsigned long long)closers[most].windows);
    }
}

void kp_closers_tell(void)
{
    enum { WINDOWS = 4, LAUNCHES_EACH = 8 };
    char text[1024];
    if (!hold_few(WINDOWS, LAUNCHES_EACH))
        return;
    list(text, sizeof(text));
    kp_log_progress("%llu launches took %llu series of passes, as windows were closed by: %s",
                    (unsigned long long)launches, (unsigned long long)windows, text);
}

void kp_closers_tell_early(double took_ns)
{
    enum { FEW_WINDOWS = 6, LAUNCHES_EACH = 2, WINDOWS = 3 };
    const double slow_ns = 2e9, worth_telling_ns = 5e9;
    static bool told;
    static double all_ns;
    char text[512];
    all_ns += took_ns;
    bool slow = all_ns >= slow_ns && hold_few(FEW_WINDOWS, LAUNCHES_EACH);
    if (told || !(slow || (all_ns >= worth_telling_ns && windows >= WINDOWS)))
        return;
    told = true;
    list(text, sizeof(text));
    kp_log_progress(
        "%s%.1f launches a second: windows hold %.1f launches each and take %.2f s, closed by %s; --set quick "
        "counts in one pass instead, --filter-mode per-launch-config --launch-count 1 takes one launch of "
        "each kind, --replay-mode rotate repeats nothing and has all sections of kernels that come again",
        slow ? "Slow, " : "", 1e9 * (double)launches / all_ns, (double)launches / (double)windows,
        all_ns / 1e9 / (double)windows, text);
}
