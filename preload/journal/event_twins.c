#include "preload/journal/event_twins.h"

#include <signal.h>
#include <stdlib.h>

#include "base/lock.h"
#include "preload/program/attributes.h"

static const struct kp_twin *find_twin(const struct kp_journal *j, uint64_t event)
{
    for (size_t i = 0; i < j->n_twins; i++)
        if ((uint64_t)(uintptr_t)j->twins[i].of == event)
            return &j->twins[i];
    return NULL;
}

CUevent kp_event_twin(const struct kp_journal *j, uint64_t event)
{
    const struct kp_twin *twin = find_twin(j, event);
    return twin ? twin->event : NULL;
}

static struct kp_twin *new_twin(struct kp_journal *j)
{
    sigset_t before = kp_signals_hold();
    struct kp_twin *grown = realloc(j->twins, (j->n_twins + 1) * sizeof(*grown));
    kp_signals_let(&before);
    if (!grown)
        return NULL;
    j->twins = grown;
    return &grown[j->n_twins];
}

/* Returns the twin of an event, made on first use. NULL: the driver could not make one, and no later call tries
 * again. */
static CUevent make_twin(struct kp_journal *j, uint64_t of)
{
    const struct kp_driver *d = j->setup->driver;
    const struct kp_twin *known = find_twin(j, of);
    struct kp_twin *twin = !known && of ? new_twin(j) : NULL;
    if (!twin)
        return known ? known->event : NULL;
    twin->of = (CUevent)(uintptr_t)of;
    if (d->cuEventCreate(&twin->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        twin->event = NULL;
    j->n_twins++;
    return twin->event;
}

/* Makes twins of events, for several streams only: in one stream, records and waits change nothing. */
bool kp_event_twins_make(struct kp_journal *j)
{
    bool all = true;
    for (size_t k = 0; j->several && all && k < j->n; k++) {
        const struct kp_op *op = &j->items[k].op;
        if (!j->items[k].is_launch && op->real && op->event)
            all = make_twin(j, op->args[op->event - 1]);
    }
    return all;
}

static CUevent twin_for(void *j, CUevent of)
{
    return make_twin(j, (uintptr_t)of);
}

void kp_event_twins_take(struct kp_journal *j, struct kp_launch *l)
{
    if (l->copy)
        l->config.numAttrs = (unsigned)kp_attributes_replace_events(l->config.attrs, l->config.numAttrs, twin_for, j);
}

void kp_event_twins_free(struct kp_journal *j)
{
    for (size_t k = 0; k < j->n_twins; k++)
        if (j->twins[k].event)
            j->setup->driver->cuEventDestroy(j->twins[k].event);
    j->n_twins = 0;
}
