/*
 * The budget: which launches are worth their price, so that a program ends in bounded time with a result for each
 * kernel and shape (a *kind*). Its inputs are what kprof's work has cost so far and what is known of a kind; its
 * answer is for the kind's next launch. It has no state but its struct, and knows neither launches nor CUDA: the tests
 * play recorded programs against it (tests/unit/preload/test_preload_budget.c).
 *
 * Threads: one at a time.
 */
#ifndef KP_PRELOAD_MODE_BUDGET_H
#define KP_PRELOAD_MODE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct kp_budget {
    uint64_t total_ns; /* what kprof may add to the program; 0 = no limit */
    uint64_t spent_ns; /* and what it has added so far */
    double launch_ns;  /* what a launch with a result costs: a moving average of the last few windows */
    uint64_t windows;  /* that had such launches */
};

/* What is known of a kind. */
struct kp_budget_kind {
    uint64_t taken;    /* launches recorded for a window so far: */
    uint64_t measured; /* those with counters, */
    uint64_t lost;     /* those that ended without; the rest are in the open window, or being evaluated */
};

enum kp_serve {
    KP_SERVE_REPLAY, /* the launch gets a result of its own */
    KP_SERVE_TURNS,  /* it cannot be replayed, as it seems: launches of the kind are counted in turns, or once */
    KP_SERVE_PASS,   /* it goes to the driver: its kind has a result, or the budget is spent */
};

/* Adds time that the program waited for kprof, ns. */
void kp_budget_spend(struct kp_budget *b, uint64_t ns);

/* Notes a window of `launches` launches with a result, which has cost `ns`. The time is not added to what was spent. */
void kp_budget_window(struct kp_budget *b, double ns, uint64_t launches);

/* Returns true if the budget is spent: every launch passes from now on. */
bool kp_budget_is_spent(const struct kp_budget *b);

/* Returns the most launches that the next window may hold: its cost shows only when it closes, so it gets a part of
 * what is left. At least 1. */
uint64_t kp_budget_room(const struct kp_budget *b);

/* Returns true if the launches that are worth a result should not be replayed any more, but recur, where their mode
 * has that: each next launch of a kind then counts a part. */
bool kp_budget_is_dear(const struct kp_budget *b);

/* Decides on the next launch of a kind. KP_SERVE_PASS is final for a kind that was measured. */
enum kp_serve kp_budget_serve(const struct kp_budget *b, const struct kp_budget_kind *k);

#endif
