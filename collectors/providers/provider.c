#include "collectors/providers/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/providers/library.h"
#include "cupti/loader.h"

size_t kp_provider_number(const struct kp_providers *x, const struct kp_provider *p)
{
    size_t k = 0;
    while (x->rows[k] != p)
        k++;
    return k;
}

void *kp_provider_own(const struct kp_providers *x, const struct kp_provider *p)
{
    return x->own[kp_provider_number(x, p)];
}

bool kp_provider_wants(const struct kp_providers_window *w, size_t i)
{
    return !w->wanted || w->wanted[i];
}

void kp_provider_tell(struct kp_providers *x, const struct kp_provider *p, char *text)
{
    size_t k = kp_provider_number(x, p);
    free(x->complaints[k]);
    x->complaints[k] = text;
}

void kp_provider_tell_once(struct kp_providers *x, const struct kp_provider *p, unsigned what, char *text)
{
    size_t k = kp_provider_number(x, p);
    if (x->told[k] & what)
        free(text);
    else
        kp_provider_tell(x, p, text);
    x->told[k] |= what;
}

struct kp_why kp_providers_explain_begin(const struct kp_providers *x, enum kp_reason what, int code)
{
    const struct kp_providers_setup *s = &x->setup;
    char *text = NULL, *holder = code == KP_CUPTI_BUSY && s->holder ? s->holder(s->holder_arg) : NULL;
    if (!holder)
        return kp_library_explain_begin(s->cupti, what, code);
    text = kp_asprintf("%s: %s", kp_reason_text(what), holder);
    free(holder);
    return kp_why_of(KP_REASON_COUNTERS_KEPT, text);
}

void kp_provider_complain(struct kp_providers *x, const struct kp_provider *p, bool begins, int rc)
{
    size_t k = kp_provider_number(x, p);
    struct kp_why *why = &x->why[k];
    kp_why_free(why);
    if (p->explain)
        *why = p->explain(x, rc);
    if (!why->reason)
        *why = begins ? kp_providers_explain_begin(x, p->what, rc) : kp_library_explain(x->setup.cupti, p->what, rc);
    kp_provider_tell_once(x, p, KP_TOLD_FAILURE, strdup(kp_why_text(why)));
}
