#include "preload/program/attributes.h"

enum { LAUNCH, NODE };

const struct kp_attribute kp_attributes[KP_ATTRIBUTES] = {
#define KP_ATTRIBUTE(id, use, of) {CU_LAUNCH_ATTRIBUTE_##id, KP_ATTRIBUTE_##use, of},
#include "preload/program/attributes.def"
#undef KP_ATTRIBUTE
};

const struct kp_attribute *kp_attribute_row(CUlaunchAttributeID id)
{
    size_t i = 0;
    while (i < KP_ATTRIBUTES && kp_attributes[i].id != id)
        i++;
    return i < KP_ATTRIBUTES ? &kp_attributes[i] : NULL;
}

enum kp_reason kp_attributes_reason(const CUlaunchAttribute *list, size_t n)
{
    enum kp_reason why = KP_REASON_NONE;
    for (size_t i = 0; i < n && !why; i++) {
        const struct kp_attribute *row = kp_attribute_row(list[i].id);
        if (!row)
            why = KP_REASON_LATER_ATTRIBUTE;
        else if (row->use == KP_ATTRIBUTE_NEVER)
            why = KP_REASON_DEVICE_UPDATES;
    }
    return why;
}

/* Returns the place of an attribute's event; NULL: it has none. */
static CUevent *event_of(CUlaunchAttribute *a)
{
    const struct kp_attribute *row = kp_attribute_row(a->id);
    if (!row || row->use != KP_ATTRIBUTE_EVENT)
        return NULL;
    return a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ? &a->value.programmaticEvent.event
                                                           : &a->value.launchCompletionEvent.event;
}

bool kp_attributes_record(const CUlaunchAttribute *list, size_t n)
{
    size_t i = 0;
    while (i < n && !event_of((CUlaunchAttribute *)&list[i]))
        i++;
    return i < n;
}

size_t kp_attributes_replace_events(CUlaunchAttribute *list, size_t n, CUevent (*other)(void *arg, CUevent event),
                                    void *arg)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        CUlaunchAttribute a = list[i];
        CUevent *event = event_of(&a);
        if (event)
            *event = other(arg, *event);
        if (!event || *event)
            list[left++] = a;
    }
    return left;
}
