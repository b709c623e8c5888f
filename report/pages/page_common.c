#include "report/pages/page_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "report/define/derive.h"
#include "report/model/launch_names.h"
#include "report/model/renames.h"

void kp_page_enter(const struct kp_page *p, struct kp_writer *w)
{
    w->session = p->session;
    w->out.display = p->display;
}

/* Returns how many warp samples of a launch found no room. */
static double dropped_samples(const struct kp_result *r)
{
    double dropped;
    return kp_metric_number(kp_result_find(r, "smsp__pcsamp_dropped_samples"), &dropped) ? dropped : 0;
}

bool kp_page_has_dropped(const struct kp_result *r)
{
    return dropped_samples(r) > 0;
}

int kp_page_tell_dropped(struct kp_writer *w, const struct kp_view *v, bool *told)
{
    char lost[KP_NUMBER_MAX], all[KP_NUMBER_MAX], *text;
    double dropped = dropped_samples(v->result), kept = 0;
    *told = dropped > 0;
    if (!*told)
        return 0;
    kp_metric_number(kp_result_find(v->result, KP_SAMPLE_COUNT), &kept);
    kp_format_real(dropped, lost);
    kp_format_real(dropped + kept, all);
    if (asprintf(&text,
                 "%s of %s warp samples were dropped: raise KPROF_WARP_SAMPLING_BUFFER_SIZE "
                 "(warp-sampling-buffer-size) or KPROF_WARP_SAMPLING_INTERVAL (warp-sampling-interval)",
                 lost, all) < 0)
        return -ENOMEM;
    kp_write_note(w, KP_LEVEL_BODY, "Note", text);
    free(text);
    return 0;
}

void kp_page_tell_without(struct kp_writer *w, uint64_t launches, const char *one, const char *several,
                          const char *what)
{
    char number[KP_NUMBER_MAX], text[KP_NUMBER_MAX + 256];
    kp_format_count(launches, number);
    snprintf(text, sizeof text, "%s %s %s", number, launches == 1 ? one : several, what);
    kp_write_note(w, KP_LEVEL_LAUNCH, NULL, text);
    kp_write_gap(w);
}

size_t kp_page_fit_columns(const size_t *widths, size_t n, const int *dispensable, size_t n_dispensable, size_t wide,
                           bool *hidden)
{
    size_t used = 1 + n * KP_PAGE_GAP;
    for (size_t i = 0; i < n; i++)
        used += widths[i];
    for (size_t i = 0; i < n_dispensable && used + KP_PAGE_NAME_LEAST > wide; i++) {
        hidden[dispensable[i]] = true;
        used -= widths[dispensable[i]] + KP_PAGE_GAP;
    }
    return used + KP_PAGE_NAME_LEAST <= wide ? wide - used : KP_PAGE_NAME_LEAST;
}

struct each {
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
    const struct kp_display *display;
};

/* Writes the kernel's name as the display has it to *name: NULL is as it is; *made is to be freed. 0 or -ENOMEM. */
static int name_for(const struct kp_display *d, const struct kp_launch_info *l, const char **name, char **made)
{
    bool is_kernel = l->kind == KP_WORKLOAD_KERNEL && l->mangled && *l->mangled;
    *made = NULL;
    *name = kp_renames_find(kp_launch_name(l));
    if (*name || !is_kernel || d->name_as == KP_PRINTED_DEMANGLED)
        return 0;
    if (d->name_as == KP_PRINTED_FUNCTION && !(*made = kp_demangle_base(l->mangled)))
        return -ENOMEM;
    *name = *made ? *made : l->mangled;
    return 0;
}

static int one_derived(struct kp_result *r, void *arg)
{
    const struct each *e = arg;
    char *own = r->launch.demangled, *in_range = NULL, *made;
    const char *name;
    int rc = kp_derive_users(r);
    if (!rc)
        rc = name_for(e->display, &r->launch, &name, &made);
    if (rc)
        return rc;
    if (name)
        r->launch.demangled = (char *)name;
    if (e->display->range_names)
        rc = kp_launch_range_name(&r->launch, &in_range);
    if (in_range)
        r->launch.demangled = in_range;
    if (!rc)
        rc = e->fn(r, e->arg);
    r->launch.demangled = own; /* the owner of the launch may show it again */
    free(in_range);
    free(made);
    return rc;
}

int kp_page_each_with(const struct kp_page *p, const char *const *only, int (*fn)(struct kp_result *r, void *arg),
                      void *arg)
{
    struct each e = {fn, arg, p->display};
    if (!p->launches->each_with || kp_derive_has_users()) /* whose metrics need others */
        return kp_page_each(p, fn, arg);
    return p->launches->each_with(p->launches->from, only, one_derived, &e, p->err);
}

int kp_page_each(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    struct each e = {fn, arg, p->display};
    return p->launches->each(p->launches->from, one_derived, &e, p->err);
}
