/*
 * A mode that is part of no release: it shows that one more needs a file and a row, and no change to the files of
 * preload/. Four launches make a window; it counts nothing, and says so. libkprof_toy.so is libkprof.so with this table
 * in the place of modes.c; see tests/e2e/debug.sh.
 */
#include <stdio.h>

#include "preload/mode/modes.h"
#include "preload/mode/strategy.h"

enum { TOY_LAUNCHES = 4 };

static bool suits(const struct kp_question *q)
{
    return q->what->wanted && !q->fit.once_reason;
}

static bool begin(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    size_t room = kp_admit_room(w);
    (void)q, (void)why, (void)reason;
    w->most = room < TOY_LAUNCHES ? room : TOY_LAUNCHES;
    return true;
}

static CUresult issue(struct kp_window *w, struct kp_entry *e)
{
    (void)w;
    return kp_journal_issue(e, NULL);
}

static void finish(struct kp_window *w, struct kp_window_outcome *out)
{
    (void)w;
    char *text;
    if (asprintf(&text, "the toy counts nothing of %zu launches", kp_journal_facts().launches) < 0)
        text = NULL;
    out->why = kp_why_of(KP_REASON_NOT_COUNTED, text);
}

static const struct kp_strategy by_fours = {
    .name = "toy",
    .suits = suits,
    .open = begin,
    .issue = issue,
    .close = finish,
};

static const struct kp_strategy *const strategies[] = {&by_fours, &kp_strategy_plain, NULL};

const struct kp_mode kp_modes[] = {
    {
        .name = "toy",
        .option = KP_REPLAY_AUTO,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_NEVER,
        .lists = KP_LISTS_FIRST,
        .strategies = strategies,
    },
    {.name = NULL},
};
