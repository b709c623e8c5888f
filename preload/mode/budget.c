#include "preload/mode/budget.h"

#include <stddef.h>

/* How many windows the averages stand for. */
enum { WINDOWS = 4 };

/* The time up to which a kind that has a result gets further ones: the shares of the budget by what such a launch costs
 * and how many results the kind has. A second result says less than the first of another kind, a hundredth nothing.
 * With the default of 60 s these are 30, 13.8, 10 and 2 s. A launch costs 0.3 to 16 ms where windows are full, and 50
 * to 500 where each has one launch (H200, set basic): then a program with many launches has no end. */
static const struct {
    double most_ms;        /* a launch costs at most this much */
    uint64_t most_results; /* and the kind has fewer */
    double share;
} repeats[] = {
    {25, 4, 0.5},
    {25, 80, 0.23},
    {25, UINT64_MAX, 1.0 / 6},
    {1e300, UINT64_MAX, 1.0 / 30},
};
enum { REPEATS = sizeof(repeats) / sizeof(*repeats) };

/* Launches that cost more than this are dear once this share of the budget is spent, or so much at once. A rotation
 * costs 30 ms a window then, for many launches, and leaves the others alone, but a kind needs ten launches or more. */
static const double dear_ms = 25, dear_share = 0.25, dear_at_once = 1.0 / 60;

/* Replays without counters, for example because a value that the program read came out differently, after which a kind
 * is counted in turns instead. */
enum { MOST_LOST = 2 };

void kp_budget_spend(struct kp_budget *b, uint64_t ns)
{
    b->spent_ns += ns;
}

/* Returns the moving average after one more value, the `n`th. */
static double averaged(double average, double value, uint64_t n)
{
    return average + (value - average) / (double)(n < WINDOWS ? n : WINDOWS);
}

void kp_budget_window(struct kp_budget *b, double ns, uint64_t launches)
{
    if (!launches)
        return;
    b->windows++;
    b->launch_ns = averaged(b->launch_ns, ns / (double)launches, b->windows);
}

bool kp_budget_is_spent(const struct kp_budget *b)
{
    return b->total_ns && b->spent_ns >= b->total_ns;
}

/* Returns the part of the budget that was spent. */
static double share_of(const struct kp_budget *b)
{
    return (double)b->spent_ns / (double)b->total_ns;
}

static bool is_worth_repeating(const struct kp_budget *b, const struct kp_budget_kind *k)
{
    for (size_t i = 0; i < REPEATS; i++)
        if (b->launch_ns <= 1e6 * repeats[i].most_ms && k->taken < repeats[i].most_results)
            return share_of(b) < repeats[i].share;
    return false;
}

bool kp_budget_is_dear(const struct kp_budget *b)
{
    if (!b->total_ns || kp_budget_is_spent(b))
        return false;
    return b->launch_ns / (double)b->total_ns > dear_at_once ||
           (share_of(b) >= dear_share && b->launch_ns > 1e6 * dear_ms);
}

/* Returns the time until the next share of the budget is spent after which kinds get fewer results, at the present
 * price; 0 = there is none. */
static double until_fewer_ns(const struct kp_budget *b)
{
    double next = 0, price_ms = b->launch_ns / 1e6;
    for (size_t i = 0; i < REPEATS; i++) {
        double until = repeats[i].share * (double)b->total_ns - (double)b->spent_ns;
        bool priced = price_ms <= repeats[i].most_ms && (price_ms > dear_ms || repeats[i].most_ms <= dear_ms);
        if (priced && until > 0 && (!next || until < next))
            next = until;
    }
    return next;
}

uint64_t kp_budget_room(const struct kp_budget *b)
{
    /* The price is not known before the first window has closed. A window of few launches is a dear one. */
    enum { PARTS = 8, FEW = 32, UNKNOWN = 64 };
    if (!b->total_ns)
        return UINT64_MAX;
    if (!b->windows)
        return UNKNOWN;
    double left = kp_budget_is_spent(b) ? 0 : (double)(b->total_ns - b->spent_ns);
    double fewer = until_fewer_ns(b), few = FEW * b->launch_ns, room = left / PARTS;
    if (fewer && fewer < room)
        room = fewer > few ? fewer : few < room ? few : room;
    room /= b->launch_ns + 1;
    return room < 1 ? 1 : room < 1e9 ? (uint64_t)room : UINT64_MAX;
}

enum kp_serve kp_budget_serve(const struct kp_budget *b, const struct kp_budget_kind *k)
{
    bool underway = k->taken > k->measured + k->lost;
    if (kp_budget_is_spent(b))
        return KP_SERVE_PASS;
    if (b->total_ns && (k->measured || underway) && !is_worth_repeating(b, k))
        return KP_SERVE_PASS;
    if (!b->total_ns || k->measured || underway)
        return KP_SERVE_REPLAY;
    return k->lost >= MOST_LOST ? KP_SERVE_TURNS : KP_SERVE_REPLAY;
}
