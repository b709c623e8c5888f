/*
 * Sessions of the profiler API, as seen by programs that use CUPTI 13.0 alone: a pass counts what is launched while the
 * switch is on. Another list may be set between passes, always with its first pass. What an image already has is not
 * counted again. After a list of patched code, any other list ends the program when the session ends. The ends of
 * passes and sessions wait for kernels that run in the context, counted or not.
 */

static CUpti_RangeProfiler_Object *session_of(CUcontext ctx, const char *function)
{
    CUpti_RangeProfiler_Object *object = objects;

    ctx = ctx ? ctx : fake_driver()->context_current();
    while (object && (object->ctx != ctx || object->disabled || !object->session))
        object = object->next;
    if (!object)
        fake_misuse("%s: the context has no session", function);
    need_usable(ctx, function);
    return object;
}

static void wait_for_kernels(CUcontext ctx, const char *function)
{
    {
        LOCKED();
        ctx = session_of(ctx, function)->ctx;
    }
    fake_driver()->wait_for_kernels(ctx);
}

size_t fake_cupti_session_bytes;

static size_t session_size(const CUpti_Profiler_CounterDataImageOptions *o)
{
    return sizeof(struct fake_image) + o->maxNumRanges * (sizeof(struct fake_image_range) + fake_cupti_session_bytes);
}

static bool options_fit(const CUpti_Profiler_CounterDataImageOptions *o, size_t size)
{
    return o && size == CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE && o->structSize == size &&
           o->pCounterDataPrefix && o->counterDataPrefixSize && o->maxNumRanges &&
           o->maxNumRangeTreeNodes >= o->maxNumRanges && o->maxRangeNameLength;
}

CUptiResult cuptiProfilerCounterDataImageCalculateSize(CUpti_Profiler_CounterDataImage_CalculateSize_Params *params)
{
    ENTER(params, CUpti_Profiler_CounterDataImage_CalculateSize_Params);
    if (!options_fit(params->pOptions, params->sizeofCounterDataImageOptions))
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->counterDataImageSize = session_size(params->pOptions);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerCounterDataImageInitialize(CUpti_Profiler_CounterDataImage_Initialize_Params *params)
{
    struct fake_image *image;

    ENTER(params, CUpti_Profiler_CounterDataImage_Initialize_Params);
    if (!options_fit(params->pOptions, params->sizeofCounterDataImageOptions) || !params->pCounterDataImage ||
        params->counterDataImageSize != session_size(params->pOptions))
        return CUPTI_ERROR_INVALID_PARAMETER;
    image = (void *)params->pCounterDataImage;
    memset(image, 0, params->counterDataImageSize);
    memcpy(image->magic, FAKE_IMAGE_MAGIC, sizeof(image->magic));
    image->size = params->counterDataImageSize;
    image->max_ranges = params->pOptions->maxNumRanges;
    return CUPTI_SUCCESS;
}

enum { SCRATCH_BYTES = 64, BUFFERS = 2 };

CUptiResult cuptiProfilerCounterDataImageCalculateScratchBufferSize(
    CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params *params)
{
    ENTER(params, CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params);
    if (!own_image(params->pCounterDataImage, params->counterDataImageSize))
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->counterDataScratchBufferSize = SCRATCH_BYTES;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerCounterDataImageInitializeScratchBuffer(
    CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params *params)
{
    ENTER(params, CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params);
    if (!own_image(params->pCounterDataImage, params->counterDataImageSize) || !params->pCounterDataScratchBuffer ||
        params->counterDataScratchBufferSize != SCRATCH_BYTES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memset(params->pCounterDataScratchBuffer, 0, SCRATCH_BYTES);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerBeginSession(CUpti_Profiler_BeginSession_Params *params)
{
    CUpti_RangeProfiler_Object *object;
    CUcontext ctx;

    ENTER(params, CUpti_Profiler_BeginSession_Params);
    LOCKED();
    ctx = params->ctx ? params->ctx : fake_driver()->context_current();
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    need_usable(ctx, __func__);
    for (object = objects; object; object = object->next)
        if (object->ctx == ctx && !object->disabled)
            fake_misuse("%s: the context has a range profiler or a session already", __func__);
    if (others_count(ctx))
        return CUPTI_ERROR_HARDWARE_BUSY;
    if (params->range != CUPTI_AutoRange || params->replayMode != CUPTI_UserReplay)
        return CUPTI_ERROR_NOT_SUPPORTED; /* of the fake */
    if (!own_image(params->pCounterDataImage, params->counterDataImageSize) || !params->pCounterDataScratchBuffer ||
        params->counterDataScratchBufferSize != SCRATCH_BYTES || !params->maxRangesPerPass ||
        params->maxLaunchesPerPass < params->maxRangesPerPass)
        return CUPTI_ERROR_INVALID_PARAMETER;
    object = calloc(1, sizeof(*object));
    if (!object)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    object->ranges = calloc(BUFFERS * params->maxRangesPerPass, sizeof(*object->ranges));
    if (!object->ranges) {
        free(object);
        return CUPTI_ERROR_OUT_OF_MEMORY;
    }
    object->ctx = ctx;
    object->session = true;
    object->image = (void *)params->pCounterDataImage;
    object->max_ranges = object->room = BUFFERS * params->maxRangesPerPass;
    object->mode = params->range;
    object->next = objects;
    objects = object;
    take_memory(object);
    fake_driver()->set_launch_hook(on_launch, NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerEndSession(CUpti_Profiler_EndSession_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_Profiler_EndSession_Params);
    wait_for_kernels(params->ctx, __func__);
    LOCKED();
    object = session_of(params->ctx, __func__);
    if (object->running || object->configured)
        fake_misuse("%s: a pass is running, or a list is set", __func__);
    object->disabled = true;
    give_memory(object);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerSetConfig(CUpti_Profiler_SetConfig_Params *params)
{
    const struct known_config *known;
    CUpti_RangeProfiler_Object *object;
    CUptiResult result;

    ENTER(params, CUpti_Profiler_SetConfig_Params);
    LOCKED();
    object = session_of(params->ctx, __func__);
    if (object->running || object->configured)
        fake_misuse("%s: a pass is running, or a list is set", __func__);
    if (params->passIndex)
        fake_misuse("%s: the session would begin with the first pass all the same", __func__);
    if (!params->pConfig || !params->configSize || params->numNestingLevels != 1 || params->minNestingLevel != 1)
        return CUPTI_ERROR_INVALID_PARAMETER;
    result = passes_of(params->pConfig, params->configSize, &object->n_passes);
    if (result)
        return result;
    object->config = fake_hash(FAKE_HASH_START, params->pConfig, params->configSize);
    known = find_config(object->config);
    if (object->patched && !(known && known->patched))
        fake_misuse("%s: behind a list of patched code the session's end would end the program", __func__);
    object->patched |= known && known->patched;
    object->pass = 0;
    object->configured = true;
    memset(object->ranges, 0, object->max_ranges * sizeof(*object->ranges));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerUnsetConfig(CUpti_Profiler_UnsetConfig_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_Profiler_UnsetConfig_Params);
    LOCKED();
    object = session_of(params->ctx, __func__);
    if (object->running || !object->configured)
        fake_misuse("%s: a pass is running, or no list is set", __func__);
    object->configured = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerBeginPass(CUpti_Profiler_BeginPass_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_Profiler_BeginPass_Params);
    LOCKED();
    object = session_of(params->ctx, __func__);
    if (object->running || !object->configured || object->pass == object->n_passes)
        fake_misuse("%s: a pass is running, or none is left", __func__);
    if (fake_driver()->context_capturing(object->ctx))
        fake_misuse("%s: a stream of the context is capturing", __func__);
    object->running = object->started = true;
    object->n_ranges = object->n_dropped = 0;
    return CUPTI_SUCCESS;
}

/* What happens in the context meanwhile may also be counted, so it is noted. */
static CUptiResult turn(CUcontext ctx, bool on, const char *function)
{
    CUpti_RangeProfiler_Object *object = session_of(ctx, function);

    if (!object->running || object->on == on)
        fake_misuse("%s: no pass is running, or the switch is there already", function);
    if (on && fake_driver()->context_busy(object->ctx))
        fake_log("beside pid=%d ctx=%llu\n", (int)getpid(), (unsigned long long)fake_driver()->context_id(object->ctx));
    object->on = on;
    set_pace(object->ctx);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerEnableProfiling(CUpti_Profiler_EnableProfiling_Params *params)
{
    ENTER(params, CUpti_Profiler_EnableProfiling_Params);
    LOCKED();
    return turn(params->ctx, true, __func__);
}

CUptiResult cuptiProfilerDisableProfiling(CUpti_Profiler_DisableProfiling_Params *params)
{
    ENTER(params, CUpti_Profiler_DisableProfiling_Params);
    LOCKED();
    return turn(params->ctx, false, __func__);
}

CUptiResult cuptiProfilerEndPass(CUpti_Profiler_EndPass_Params *params)
{
    static struct fake_counter counter = {__func__, 0, NULL};
    CUpti_RangeProfiler_Object *object;
    int injected;
    bool fails;

    if (!params || params->structSize != CUpti_Profiler_EndPass_Params_STRUCT_SIZE || params->pPriv)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fails = fake_count(&counter, &injected); /* a pass that cannot be ended is over anyway */
    wait_for_kernels(params->ctx, __func__);
    LOCKED();
    object = session_of(params->ctx, __func__);
    if (!object->running || object->on)
        fake_misuse("%s: no pass is running, or the switch is on", __func__);
    object->running = false;
    object->pass++;
    object->decoded = false;
    if (fails)
        return (CUptiResult)injected;
    params->targetNestingLevel = 1;
    params->passIndex = object->pass % object->n_passes;
    params->allPassesSubmitted = object->pass == object->n_passes;
    fake_log("pass pid=%d ctx=%llu pass=%u of %u ranges=%zu\n", (int)getpid(),
             (unsigned long long)fake_driver()->context_id(object->ctx), object->pass, object->n_passes,
             object->n_ranges);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerFlushCounterData(CUpti_Profiler_FlushCounterData_Params *params)
{
    CUpti_RangeProfiler_Object *object;
    struct fake_image *image;

    ENTER(params, CUpti_Profiler_FlushCounterData_Params);
    LOCKED();
    object = session_of(params->ctx, __func__);
    image = object->image;
    if (object->running)
        fake_misuse("%s: a pass is running", __func__);
    if (!own_image((const void *)image, image->size))
        fake_misuse("%s: the counter-data image was overwritten", __func__);
    if (!object->decoded && !image->n_passes) { /* otherwise the image keeps what it has, as seen there */
        image->n_passes = object->n_passes;
        image->config = object->config;
        for (size_t i = 0; i < object->max_ranges && i < image->max_ranges; i++) {
            image_ranges(image)[i] = object->ranges[i];
            image->n_ranges += object->ranges[i].passes_seen != 0;
        }
    }
    object->decoded = true;
    params->numRangesDropped = object->n_dropped;
    return CUPTI_SUCCESS;
}
