#include "preload/mode/close_reasons.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "preload/os/log.h"

enum { MOST_REASONS = 16 };

/* Counts windows by the reason that closed them; the last row counts all others. */
static struct {
    enum kp_reason reason;
    const char *what; /* as passed to kp_close_reasons_note */
    uint64_t windows;
} reasons[MOST_REASONS];
static uint64_t windows, launches, full_windows;

void kp_close_reasons_note(enum kp_reason reason, const char *what, size_t n_launches)
{
    size_t i = 0;
    windows++;
    launches += n_launches;
    full_windows += reason == KP_REASON_FULL;
    while (i < MOST_REASONS - 1 && reasons[i].what && (reasons[i].reason != reason || strcmp(reasons[i].what, what)))
        i++;
    bool others = i == MOST_REASONS - 1;
    reasons[i].reason = others ? KP_REASON_OTHERS : reason;
    reasons[i].what = others ? kp_reason_text(KP_REASON_OTHERS) : what;
    reasons[i].windows++;
}

/* Returns true if there are so many windows with so few launches, although there was room for more. */
static bool hold_few(uint64_t n_windows, uint64_t launches_each)
{
    return windows >= n_windows && launches < launches_each * windows && 2 * full_windows <= windows;
}

/* Lists the reasons, the most frequent first. */
static void list(char *text, size_t size)
{
    bool listed[MOST_REASONS] = {false};
    *text = '\0';
    for (size_t at = 0; at < size;) {
        size_t most = MOST_REASONS;
        for (size_t i = 0; i < MOST_REASONS; i++)
            if (!listed[i] && reasons[i].windows &&
                (most == MOST_REASONS || reasons[i].windows > reasons[most].windows))
                most = i;
        if (most == MOST_REASONS)
            return;
        listed[most] = true;
        at += (size_t)snprintf(text + at, size - at, "%s%s (%llu)", at ? ", " : "", reasons[most].what,
                               (unsigned long long)reasons[most].windows);
    }
}

void kp_close_reasons_tell(void)
{
    enum { WINDOWS = 4, LAUNCHES_EACH = 8 };
    char text[1024];
    if (!hold_few(WINDOWS, LAUNCHES_EACH))
        return;
    list(text, sizeof(text));
    kp_log_progress("%llu launches needed %llu series of passes, because windows were closed by: %s",
                    (unsigned long long)launches, (unsigned long long)windows, text);
}

void kp_close_reasons_tell_early(double took_ns)
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
        "%s%.1f launches/s: windows hold %.1f launches and take %.2f s each, closed by %s. Faster: --set quick "
        "(one pass), --filter-mode per-launch-config --launch-count 1 (one launch of each kind), "
        "--replay-mode rotate (repeats nothing; all sections of kernels that run again)",
        slow ? "Slow, " : "", 1e9 * (double)launches / all_ns, (double)launches / (double)windows,
        all_ns / 1e9 / (double)windows, text);
}
