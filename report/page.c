#include "report/page.h"

#include <string.h>

#include "report/summary.h"

struct page {
    struct kp_summary *summary;
    const struct kp_sink *out;
    const struct kp_display *display;
    const struct kp_session *session;
};

static int one_launch(struct kp_result *r, void *arg)
{
    struct page *p = arg;
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
    struct page page = {kp_summary_new(), out, d, &session};
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
