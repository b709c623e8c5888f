#include "report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/demangle.h"
#include "report/derive.h"
#include "report/pattern.h"
#include "report/summary.h"

struct page {
    struct kp_summary *summary;
    const struct kp_sink *out;
    const struct kp_display *display;
    const struct kp_session *session;
    uint64_t matched; /* launches so far */
};

/* 1, 0 or -ENOMEM. */
static int is_shown(struct page *p, const struct kp_launch_info *l)
{
    const struct kp_display *d = p->display;
    char *base = d->kernel ? kp_demangle_base(l->mangled ? l->mangled : "") : NULL;
    if (d->kernel && !base)
        return -ENOMEM;
    bool matches = !d->kernel || kp_pattern_match(d->kernel, base);
    free(base);
    if (!matches)
        return 0;
    uint64_t index = p->matched++;
    return index >= d->launch_skip && (!d->launch_count || index - d->launch_skip < d->launch_count);
}

static int one_launch(struct kp_result *r, void *arg)
{
    struct page *p = arg;
    int shown = is_shown(p, &r->launch), rc = shown > 0 ? kp_derive_users(r) : shown;
    if (rc || !shown)
        return rc;
    return kp_render_launch(p->out, p->display, p->session, r, p->summary);
}

int kp_page_details(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err)
{
    static const char unfinished[] =
        "==KPROF== The program had not finished: it was killed, or is still running. Above "
        "is what had been stored.\n";
    struct kp_session session;
    int rc = kp_store_get_session(store, &session, err);
    if (rc)
        return rc;
    struct page page = {kp_summary_new(), out, d, &session, 0};
    rc = kp_render_process(out, &session);
    if (!rc)
        rc = kp_store_each_result(store, one_launch, &page, err);
    if (!rc && page.summary)
        rc = kp_summary_render(page.summary, out);
    if (!rc)
        rc = kp_render_account(out, &session);
    if (!rc && !session.complete)
        rc = out->write(out->arg, unfinished, strlen(unfinished));
    kp_summary_free(page.summary);
    kp_session_free(&session);
    return rc;
}
