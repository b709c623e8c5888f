#include "report/pages/page_body.h"

#include <stdlib.h>

#include "report/define/derive.h"
#include "report/model/launch_names.h"

void kp_page_enter(const struct kp_page *p, struct kp_writer *w)
{
    w->session = p->session;
    w->out.display = p->display;
}

struct each {
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
    bool range_names;
};

static int one_derived(struct kp_result *r, void *arg)
{
    const struct each *e = arg;
    char *own = r->launch.demangled, *renamed = NULL;
    int rc = kp_derive_users(r);
    if (!rc && e->range_names)
        rc = kp_launch_range_name(&r->launch, &renamed);
    r->launch.demangled = renamed ? renamed : own;
    if (!rc)
        rc = e->fn(r, e->arg);
    r->launch.demangled = own; /* whose launch it is may show it again */
    free(renamed);
    return rc;
}

int kp_page_each(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    struct each e = {fn, arg, p->display->range_names};
    return p->launches->each(p->launches->from, one_derived, &e, p->err);
}
