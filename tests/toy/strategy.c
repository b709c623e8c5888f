/*
 * A way of counting that is part of no release: it shows that one more needs a file and a row, and no change to the
 * files of preload/window/. Four launches make a window; it counts nothing, and says so. libkprof_toy.so is libkprof.so
 * with this list in the place of strategies.c; see tests/e2e/debug.sh.
 */
#include <stdio.h>

#include "preload/window/issue.h"
#include "preload/window/strategy.h"

enum { TOY_LAUNCHES = 4 };

static unsigned issued; /* of the window that is open */

static bool admit(const struct kp_fit *fit)
{
    return fit->wanted && !kp_window.obstacle;
}

static bool begin(const struct kp_fit *fit, char **why)
{
    (void)fit, (void)why;
    issued = 0;
    return true;
}

static bool takes(const struct kp_fit *fit)
{
    return fit->mode == kp_window.mode;
}

static const char *alone(const struct kp_fit *fit)
{
    (void)fit;
    return issued == TOY_LAUNCHES ? "the toy has seen enough" : NULL;
}

static CUresult issue(struct kp_item *i)
{
    issued++;
    return kp_issue_launch(i, NULL);
}

static void finish(struct kp_window_outcome *out)
{
    if (asprintf(&out->note, "the toy counts nothing") < 0)
        out->note = NULL;
}

static const struct kp_strategy toy = {
    .name = "toy",
    .in_account = true,
    .admit = admit,
    .open = begin,
    .takes = takes,
    .alone = alone,
    .issue = issue,
    .close = finish,
};

const struct kp_strategy *const kp_strategies[] = {&toy, &kp_strategy_count, &kp_strategy_plain, NULL};
