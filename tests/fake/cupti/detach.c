/*
 * Leaving the driver alone, as seen by a program that uses CUPTI 13.0 alone: cuptiFinalize, called when a driver call
 * returns, forgets what was registered. Afterwards the profiler reports that it is not initialised, until another part
 * is asked. FAKE_SUBSCRIBED=1: the program has a subscriber of its own, and there can be only one. A second one is
 * refused, as is one while a context counts. The first copy of this library that attaches to the driver stays attached,
 * even after cuptiFinalize: others are refused (seen with 12.8 next to 13.0).
 */

static struct {
    CUpti_CallbackFunc fn; /* NULL: nobody has subscribed */
    void *user;
    CUpti_CallbackId id;
    bool inside; /* the callback */
} subscriber;

static void tell(int site)
{
    CUpti_CallbackData data = {.callbackSite = site ? CUPTI_API_EXIT : CUPTI_API_ENTER};

    if (!subscriber.fn || !subscriber.id)
        return;
    subscriber.inside = true;
    subscriber.fn(subscriber.user, CUPTI_CB_DOMAIN_DRIVER_API, subscriber.id, &data);
    subscriber.inside = false;
}

/* Returns true if a context has a range profiler or a session. */
static bool somebody_counts(void)
{
    LOCKED();
    const CUpti_RangeProfiler_Object *object = objects;
    while (object && object->disabled)
        object = object->next;
    return object != NULL;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc fn, void *user)
{
    COUNT_CALL();
    need_whole(__func__);
    if (getenv("FAKE_SUBSCRIBED") || subscriber.fn || somebody_counts() || !attach())
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber.fn = fn;
    subscriber.user = user;
    subscriber.id = 0;
    *handle = (CUpti_SubscriberHandle)(void *)&subscriber;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    COUNT_CALL();
    if ((void *)handle != &subscriber || !subscriber.fn)
        fake_misuse("%s: nobody has subscribed", __func__);
    subscriber.fn = NULL;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_callback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId id, const char *function)
{
    if ((void *)handle != &subscriber || !subscriber.fn || domain != CUPTI_CB_DOMAIN_DRIVER_API)
        fake_misuse("%s: a callback that the fake does not have", function);
    if (id != CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice)
        return CUPTI_SUCCESS; /* never called */
    subscriber.id = enable ? id : 0;
    fake_driver()->set_device_hook(enable ? tell : NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id)
{
    COUNT_CALL();
    return enable_callback(enable, handle, domain, id, __func__);
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    COUNT_CALL();
    return enable_callback(enable, handle, domain, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, __func__);
}

CUptiResult cuptiFinalize(void)
{
    COUNT_CALL();
    LOCKED();
    if (!subscriber.inside)
        fake_misuse("%s: not where a call of the driver returns", __func__);
    if (somebody_counts())
        fake_misuse("%s: a context has a range profiler or a session", __func__);
    for (size_t kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
        if (kinds_on[kind])
            fake_misuse("%s: activity is recorded", __func__);
    subscriber.fn = NULL;
    request_buffer = NULL;
    complete_buffer = NULL;
    compute_crc = NULL;
    initialised = false;
    is_out = true;
    return CUPTI_SUCCESS;
}
