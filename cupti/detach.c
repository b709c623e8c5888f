/*
 * Takes CUPTI out of the driver's calls. Once it has counted or recorded anything, each launch goes through it and
 * costs 1.1 us more until the process ends (CUPTI 13.0); only cuptiFinalize stops that. CUPTI's manual has it called by
 * a callback when a driver call returns.
 */
#include <stdlib.h>

#include "cupti/internal.h"
#include "cupti/target.h"

enum {
    LEAST_MAJOR = 13
}; /* older versions crash when they are used with graphs again afterwards (reports of PyTorch) */

bool kp_detach_available(const struct kp_cupti *c)
{
    return c->cuptiSubscribe && c->cuptiUnsubscribe && c->cuptiEnableCallback && c->cuptiFinalize &&
           strtol(c->version, NULL, 10) >= LEAST_MAJOR;
}

/* What the callback does, for the thread that detaches: other threads of the program may make the same call. */
struct detaching {
    const struct kp_cupti *c;
    bool reached;
    int rc; /* of ending, once reached */
};
static __thread struct detaching *own __attribute__((tls_model("initial-exec")));

static void CUPTIAPI on_return(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    struct detaching *d = own;
    (void)user, (void)domain, (void)id;
    if (!d || d->reached || ((const CUpti_CallbackData *)data)->callbackSite != CUPTI_API_EXIT)
        return;
    d->reached = true;
    d->rc = KP_CALL(d->c, cuptiFinalize);
}

int kp_detach(const struct kp_cupti *c, CUresult (*ask_device)(CUdevice *device))
{
    struct detaching d = {.c = c};
    CUpti_SubscriberHandle s;
    CUdevice device;
    int rc = KP_CALL(c, cuptiSubscribe, &s, on_return, NULL); /* fails if the program has subscribed */
    if (rc)
        return rc;
    rc = KP_CALL(c, cuptiEnableCallback, 1, s, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice);
    own = &d;
    if (!rc)
        ask_device(&device);
    own = NULL;
    if (!d.reached || d.rc) {
        KP_CALL(c, cuptiUnsubscribe, s);
        return rc ? rc : d.rc ? d.rc : CUPTI_ERROR_INVALID_OPERATION;
    }
    kp_activity_detached();
    return 0;
}
