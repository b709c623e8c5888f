#include "report/pages/page_body.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "report/define/derive.h"
#include "report/model/launch_names.h"

const char *kp_process_name(const struct kp_session *s)
{
    const char *exe = s->exe ? s->exe : "", *slash = strrchr(exe, '/');
    return slash ? slash + 1 : exe;
}

void kp_number_cell(double value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        kp_plain_real(value, out);
    else
        kp_format_real(value, out);
}

void kp_count_cell(uint64_t value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        snprintf(out, KP_NUMBER_MAX, "%" PRIu64, value);
    else
        kp_format_count(value, out);
}

const char *kp_plain_value(const struct kp_metric *m, char number[KP_NUMBER_MAX])
{
    if (!m || m->kind == KP_VALUE_NA)
        return KP_NO_VALUE;
    if (m->kind == KP_VALUE_TEXT)
        return m->text;
    if (m->kind == KP_VALUE_COUNT)
        kp_count_cell(m->count, true, number);
    else
        kp_plain_real(m->real, number);
    return number;
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
