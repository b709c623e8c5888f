/* Runs the providers' passes. */
#include "collectors/providers/providers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/text.h"
#include "collectors/facts/settle.h"
#include "collectors/providers/provider.h"
#include "cupti/loader.h"

int kp_providers_open(const struct kp_providers_setup *setup, struct kp_providers **out)
{
    struct kp_providers *x = calloc(1, sizeof(*x));
    *out = NULL;
    if (!x)
        return -ENOMEM;
    x->setup = *setup;
    x->rows = kp_provider_table;
    int rc = 0;
    for (size_t k = 0; !rc && x->rows[k]; k++) {
        const struct kp_provider *p = x->rows[k];
        if (!(x->own[k] = calloc(1, p->size)))
            rc = -ENOMEM;
        else if (p->open)
            rc = p->open(x);
    }
    if (rc)
        kp_providers_close(x, true);
    else
        *out = x;
    return rc;
}

void kp_providers_close(struct kp_providers *x, bool alive)
{
    if (!x)
        return;
    kp_counters_free(x->gathered);
    for (size_t k = 0; x->rows[k]; k++) {
        if (x->own[k] && x->rows[k]->close)
            x->rows[k]->close(x, alive);
        free(x->own[k]);
        free(x->complaints[k]);
        kp_why_free(&x->why[k]);
    }
    free(x);
}

void kp_providers_one_pass(struct kp_providers *x, const struct kp_lists *lists)
{
    x->setup.one_pass = *lists;
}

size_t kp_providers_room(struct kp_providers *x)
{
    size_t room = x->setup.window ? x->setup.window : 1;
    for (size_t k = 0; x->rows[k]; k++) {
        size_t own = x->rows[k]->room ? x->rows[k]->room(x) : room;
        room = own < room ? own : room;
    }
    return room;
}

/* ---- passes ---- */

/* Returns the groups of a requested provider, even if it has failed since. */
static size_t asked_groups(struct kp_providers *x, size_t k)
{
    const struct kp_provider *p = x->rows[k];
    bool asked = !p->bit || x->setup.kinds & p->bit;
    return !asked ? 0 : p->groups ? p->groups(x) : 1;
}

static size_t groups_of(struct kp_providers *x, size_t k)
{
    return x->gone[k] ? 0 : asked_groups(x, k);
}

size_t kp_providers_groups(struct kp_providers *x, enum kp_range_mode mode)
{
    size_t n = 0;
    for (size_t k = 0; x->rows[k]; k++)
        n += x->groups[k] = mode == KP_RANGE_AUTO || x->rows[k]->carries ? groups_of(x, k) : 0;
    return n;
}

bool kp_providers_watched(const struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->watch && x->groups[k])
            return true;
    return false;
}

/* Returns the provider of a group, and which of the provider's groups it is. */
static size_t place_of(const struct kp_providers *x, size_t group, size_t *part)
{
    size_t k = 0;
    while (x->rows[k] && group >= x->groups[k])
        group -= x->groups[k++];
    *part = group;
    return k;
}

/* Returns NULL if the provider has failed since the groups were counted. Its passes are then issued without effect,
 * because the other groups keep their indices. */
static const struct kp_provider *kind_at(const struct kp_providers *x, size_t group, size_t *part)
{
    size_t k = place_of(x, group, part);
    return x->rows[k] && !x->gone[k] ? x->rows[k] : NULL;
}

size_t kp_providers_repeats(const struct kp_providers *x, size_t group)
{
    size_t part;
    const struct kp_provider *kind = kind_at(x, group, &part);
    return kind && kind->repeats ? kind->repeats(x, part) : 1;
}

size_t kp_providers_retries(const struct kp_providers *x, size_t group)
{
    size_t part;
    const struct kp_provider *kind = kind_at(x, group, &part);
    return kind ? kind->retries : 0;
}

/* Marks the values of provider `k` as lost, from launch `first` on. */
static void lose(struct kp_providers *x, size_t k, size_t first, struct kp_why why)
{
    struct kp_counters_loss *loss = x->gathered ? &x->gathered->lost[k] : NULL;
    if (!loss || (loss->why.reason && loss->first <= first))
        return;
    kp_why_free(&loss->why);
    *loss = (struct kp_counters_loss){kp_why_copy(why), first};
}

/* Ends the current provider's part of this window, and makes it release its hardware. */
static void fail(struct kp_providers *x, bool begins, int rc)
{
    size_t k = kp_provider_number(x, x->kind);
    kp_provider_complain(x, x->kind, begins, rc);
    lose(x, k, x->next, x->why[k]);
    x->kind->end(x);
    x->kind = NULL;
}

void kp_providers_refused(struct kp_providers *x, struct kp_why why)
{
    char *text = NULL;
    if (!x->kind)
        return;
    text = kp_asprintf("%s in a window: %s", kp_reason_text(x->kind->what), kp_why_text(&why));
    lose(x, kp_provider_number(x, x->kind), x->next, why);
    kp_provider_tell_once(x, x->kind, KP_TOLD_REFUSAL, text);
    x->kind->end(x);
    x->kind = NULL;
}

/* Starts the watching providers. One that fails here is given up for good, because its passes would yield nothing. */
void kp_providers_watch(struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++) {
        int rc = x->rows[k]->watch && groups_of(x, k) ? x->rows[k]->watch(x) : 0;
        if (!rc)
            continue;
        kp_provider_complain(x, x->rows[k], true, rc);
        lose(x, k, 0, x->why[k]);
        x->rows[k]->end(x);
        x->gone[k] = true;
    }
}

void kp_providers_unwatch(struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->watch)
            x->rows[k]->end(x);
}

void kp_providers_longest(struct kp_providers *x, uint64_t ns)
{
    x->longest_ns = ns;
}

bool kp_providers_want_longest(const struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->by_time && x->groups[k])
            return true;
    return false;
}

/* ---- a window ---- */

static size_t count_results(const struct kp_providers_window *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_launches; i++)
        n += kp_provider_wants(w, i);
    return n;
}

/* Prepares the providers other than the counters. Without memory for the launches they gather nothing. */
static void open_launches(struct kp_providers *x, struct kp_counters *g)
{
    size_t results = count_results(&x->window);
    g->any = true;
    for (size_t k = 0; x->rows[k]; k++)
        if (!x->groups[k] && x->why[k].reason && !x->window.alone) /* failed for good */
            lose(x, k, 0, x->why[k]);
    g->launches = calloc(results + 1, sizeof(*g->launches));
    if (g->launches)
        g->n_launches = results;
}

int kp_providers_window(struct kp_providers *x, const struct kp_providers_window *w)
{
    struct kp_counters *g = calloc(1, sizeof(*g));
    kp_counters_free(x->gathered);
    x->gathered = g;
    x->window = *w;
    x->swept = w->swept;
    x->longest_ns = 0;
    int rc = 0;
    if (g) {
        g->codes = x->setup.codes;
        g->setup = &x->setup;
        g->rows = x->rows;
        if (x->setup.kinds && w->mode == KP_RANGE_AUTO && !w->counted)
            open_launches(x, g);
    }
    for (size_t k = 0; !rc && x->rows[k]; k++)
        rc = x->rows[k]->window ? x->rows[k]->window(x) : 0;
    if (g && !rc)
        return 0;
    kp_counters_free(g);
    x->gathered = NULL;
    return rc ? rc : -ENOMEM;
}

struct kp_counters *kp_providers_take(struct kp_providers *x)
{
    struct kp_counters *g = x->gathered;
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->over)
            x->rows[k]->over(x);
    x->gathered = NULL;
    x->kind = NULL;
    x->begun = false;
    if (g && g->only && x->next < g->n_launches)
        g->n_launches = x->next; /* the rest were not made */
    return g;
}

bool kp_providers_carries(const struct kp_providers *x, size_t group)
{
    size_t part, k = place_of(x, group, &part);
    return x->rows[k] && x->rows[k]->carries;
}

bool kp_providers_flushes(const struct kp_providers *x, size_t group)
{
    size_t part;
    const struct kp_provider *kind = kind_at(x, group, &part);
    return kind && kind->flushes;
}

/* Makes providers whose pass is not next release their hardware. */
static int make_way(struct kp_providers *x)
{
    int rc = 0;
    for (size_t k = 0; !rc && x->rows[k]; k++)
        if (x->rows[k] != x->kind && x->rows[k]->release)
            rc = x->rows[k]->release(x);
    return rc;
}

/* Gives up a provider whose pass does not start: for good, unless memory was short. */
static int give_up(struct kp_providers *x, int rc)
{
    size_t k = kp_provider_number(x, x->kind);
    fail(x, true, rc);
    x->gone[k] = rc != -ENOMEM && rc != KP_CUPTI_OUT_OF_MEMORY;
    return 0;
}

/* Begins passes of x->kind, of its group x->part. */
static int begin(struct kp_providers *x, bool swept)
{
    x->next = 0;
    x->swept = swept;
    int rc = make_way(x);
    if (rc || !x->kind || !(rc = x->kind->begin(x)) || x->kind->carries)
        return rc;
    return give_up(x, rc);
}

int kp_providers_begin(struct kp_providers *x, size_t group, bool swept)
{
    x->kind = kind_at(x, group, &x->part);
    return begin(x, swept);
}

int kp_providers_start(struct kp_providers *x)
{
    x->next = 0;
    int rc = x->kind && x->kind->start ? x->kind->start(x) : 0;
    return rc && !x->kind->carries ? give_up(x, rc) : rc;
}

int kp_providers_stop(struct kp_providers *x, bool *last)
{
    if (x->kind && x->kind->stop)
        return x->kind->stop(x, last);
    if (x->kind)
        x->kind->end(x);
    x->kind = NULL;
    *last = true;
    return 0;
}

int kp_providers_decode(struct kp_providers *x)
{
    return x->kind && x->kind->decode ? x->kind->decode(x) : 0;
}

/* ---- launches ---- */

static struct kp_counters_launch *launch(const struct kp_providers *x)
{
    return x->kind && x->gathered && x->next < x->gathered->n_launches ? &x->gathered->launches[x->next] : NULL;
}

/* Returns true if the provider acts at a launch, and needs an idle context for that. */
static bool is_due(const struct kp_providers *x, bool before, enum kp_providers_wait wait)
{
    return x->kind && x->kind->idle ? wait == KP_WAIT_ALWAYS || x->kind->idle(x, before) : launch(x) != NULL;
}

/* Waits for the launch, or for the whole context. That costs 70 us even for an idle context, during which PM sampling
 * continues: if the launch is alone, its stream is polled for a while first. */
static CUresult wait_for_launch(const struct kp_providers *x)
{
    enum { MOST_NS = 1000000 };
    const struct kp_driver *d = x->setup.driver;
    uint64_t from = kp_clock_ns();
    CUresult rc = CUDA_ERROR_NOT_READY;
    while (x->alone && rc == CUDA_ERROR_NOT_READY && kp_clock_ns() - from < MOST_NS)
        rc = d->cuStreamQuery(x->stream);
    return rc == CUDA_SUCCESS ? rc : kp_settle(d, x->stream);
}

/* Handles the result of a provider's function. */
static bool has_failed(struct kp_providers *x, bool begins, int rc)
{
    if (rc && !x->kind->carries)
        fail(x, begins, rc);
    return rc && x->kind;
}

/* Makes the provider act at a launch. */
static int act(struct kp_providers *x, bool before, struct kp_counters_launch *l)
{
    return before ? x->kind->before(x, l) : x->kind->after(x, l);
}

/* Ends what a launch without replay had started before the driver refused it: it belongs to no other launch. */
static void drop_refused(struct kp_providers *x)
{
    struct kp_counters_launch *l = x->begun ? launch(x) : NULL;
    x->begun = false;
    if (!l)
        return;
    has_failed(x, false, act(x, false, l));
    kp_counters_drop(l);
}

/* Returns true while a pass of kp_providers_run is under way. */
static bool runs(const struct kp_providers *x)
{
    return x->kind && x->gathered && x->gathered->only;
}

CUresult kp_providers_before(struct kp_providers *x, CUstream stream, enum kp_providers_wait wait, bool *failed)
{
    *failed = false;
    bool due = is_due(x, true, wait);
    x->stream = stream;
    x->alone = due && x->window.mode != KP_RANGE_USER; /* a range goes into several streams */
    if (!due)
        return CUDA_SUCCESS;
    CUresult driver = wait == KP_WAIT_NOT ? CUDA_SUCCESS : kp_settle(x->setup.driver, stream);
    if (driver == CUDA_SUCCESS)
        drop_refused(x);
    if (driver == CUDA_SUCCESS && x->kind)
        *failed = has_failed(x, x->kind->by_launch, act(x, true, launch(x)));
    x->begun = driver == CUDA_SUCCESS && runs(x);
    return driver;
}

CUresult kp_providers_after(struct kp_providers *x, enum kp_providers_wait wait, bool *failed)
{
    bool due = is_due(x, false, wait);
    CUresult driver = due ? wait_for_launch(x) : CUDA_SUCCESS;
    bool ended = driver != CUDA_ERROR_NOT_READY; /* else the provider might wait for it */
    *failed = due && ended && has_failed(x, false, act(x, false, launch(x)));
    x->begun = false;
    x->next++;
    return driver;
}

int kp_providers_count(struct kp_providers *x, enum kp_range_mode mode, size_t room, bool swept, size_t list)
{
    size_t k = 0;
    while (x->rows[k] && !x->rows[k]->count)
        k++;
    x->kind = x->rows[k];
    x->part = list;
    x->window = (struct kp_providers_window){.mode = mode, .counted = true, .swept = swept};
    return x->kind ? x->kind->count(x, swept && mode == KP_RANGE_AUTO ? 2 * room : room) : -ENOENT;
}

size_t kp_providers_chooses(const struct kp_providers *x)
{
    return x->window.chooses;
}

void kp_providers_count_refused(struct kp_providers *x)
{
    if (x->window.chooses && x->kind)
        x->kind->after(x, NULL);
}

bool kp_providers_count_failed(const struct kp_providers *x)
{
    return !x->kind;
}

/* ---- passes without replay ---- */

size_t kp_providers_beside(struct kp_providers *x)
{
    size_t n = 0;
    for (size_t k = 0; x->rows[k]; k++)
        n += x->rows[k]->carries ? 0 : asked_groups(x, k);
    return n;
}

/* Returns the provider of such a group, and which of the provider's groups it is. */
static size_t beside_at(struct kp_providers *x, size_t group, size_t *part)
{
    size_t k = 0;
    for (; x->rows[k]; k++) {
        size_t n = x->rows[k]->carries ? 0 : asked_groups(x, k);
        if (group < n)
            break;
        group -= n;
    }
    *part = group;
    return k;
}

struct kp_beside kp_providers_beside_at(struct kp_providers *x, size_t group)
{
    size_t part;
    const struct kp_provider *p = x->rows[beside_at(x, group, &part)];
    return (struct kp_beside){.adds_up = p && p->adds_up, .first = p && p->watch};
}

int kp_providers_beside_missing(struct kp_providers *x, size_t group, struct kp_why why, struct kp_result *r)
{
    size_t part;
    const struct kp_provider *p = x->rows[beside_at(x, group, &part)];
    return p ? kp_counters_mark(&x->setup, p, why, r) : 0;
}

struct kp_why kp_providers_why(struct kp_providers *x, size_t group)
{
    size_t part, k = beside_at(x, group, &part);
    return x->rows[k] ? x->why[k] : kp_why_of(KP_REASON_NONE, NULL);
}

void kp_providers_carry(struct kp_providers *x, const struct kp_carry *carry)
{
    x->carry = carry;
}

bool kp_providers_run_flushes(struct kp_providers *x, bool beside, size_t group)
{
    size_t part, k = 0;
    if (beside)
        k = beside_at(x, group, &part);
    while (!beside && x->rows[k] && !x->rows[k]->carries)
        k++;
    return x->rows[k] && x->rows[k]->flushes;
}

int kp_providers_run(struct kp_providers *x, size_t group, size_t room, uint64_t longest_ns, bool swept)
{
    const struct kp_providers_window w = {.mode = KP_RANGE_AUTO, .swept = swept, .n_launches = room, .alone = true};
    size_t k = beside_at(x, group, &x->part);
    kp_providers_groups(x, KP_RANGE_AUTO);
    int rc = x->rows[k] && !x->gone[k] ? kp_providers_window(x, &w) : -EIO;
    if (rc)
        return rc;
    x->longest_ns = longest_ns;
    x->kind = x->gathered->only = x->rows[k];
    rc = begin(x, swept);
    if (!rc)
        rc = kp_providers_start(x);
    return rc || x->kind ? rc : -EIO;
}

/* ---- afterwards ---- */

void kp_providers_give(struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->release)
            x->rows[k]->release(x);
}

void kp_providers_release(struct kp_providers *x)
{
    if (x->setup.kinds)
        kp_providers_give(x);
}

bool kp_providers_stuck(const struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++)
        if (x->rows[k]->stuck && x->rows[k]->stuck(x))
            return true;
    return false;
}

struct kp_why kp_providers_explain(const struct kp_providers *x, int code)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    for (size_t k = 0; !why.reason && x->rows[k]; k++)
        if (x->rows[k]->explain)
            why = x->rows[k]->explain(x, code);
    return why;
}

char *kp_providers_complaint(struct kp_providers *x)
{
    for (size_t k = 0; x->rows[k]; k++) {
        char *text = x->complaints[k];
        x->complaints[k] = NULL;
        if (text)
            return text;
    }
    return NULL;
}
