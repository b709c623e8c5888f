/*
 * PC sampling, as seen with CUPTI 13.0 on an H200, in the mode that runs one kernel at a time. The samples of an
 * instruction are computed from the launch: its kernel, shape and arguments, so that a launch that is issued again has
 * the same in every run. A kernel with "tiny" in its name has none.
 *
 * Not every function is recognised; an unrecognised one has no records, and its samples count as those of a kernel that
 * is not the user's. If the range profiler has been enabled on the context, even if it is disabled again, a function's
 * first launch must come while PC sampling is enabled, started or not, or kernel activity is collected. A function
 * launched before that is recognised, unless SASS metrics patched it before one of these saw it. That never changes
 * later. A kernel that is not in its module's cubin is never recognised. While the range profiler is configured, there
 * are no samples.
 */

/* What the device writes for one sample. When its buffer is full, samples of the kernel are lost, and no data is
 * delivered until sampling is enabled again. */
uint64_t fake_cupti_pc_sample_bytes = 16;

/* Values of either size, at the start of each attribute's data. */
static const struct sampling_attribute {
    size_t size;
    uint64_t initial, low, high;
} sampling_attributes[] = {
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD] = {4, 11, 5, 31},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE] = {8, 1 << 20, 1, INT64_MAX},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE] = {8, 512 << 20, 1, INT64_MAX},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE] = {4, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS,
                                                                   CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS,
                                                                   CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL] = {4, 0, 0, 1},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT] = {4, CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED,
                                                                      CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED,
                                                                      CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER] = {8, 0, 1, UINT64_MAX},
    [CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN] = {4, 100, 1, UINT32_MAX},
};
enum { N_SAMPLING_ATTRIBUTES = sizeof(sampling_attributes) / sizeof(sampling_attributes[0]) };

#define SAMPLING(sampler, attribute) ((sampler)->values[CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_##attribute])

enum { STALLS_A_RECORD = 3 };

struct pc_record {
    const struct code *code;
    uint32_t offset, correlation;
    CUpti_PCSamplingStallReason stalls[STALLS_A_RECORD];
    size_t n_stalls;
    uint64_t samples;
};

/* A string that the user holds from the first record of the function to the end of sampling. */
struct given_name {
    char *given;
    const struct code *code;
    struct given_name *next;
};

/* Of one context. */
struct pc_sampler {
    CUcontext ctx;
    bool enabled, started;
    uint64_t values[N_SAMPLING_ATTRIBUTES];
    struct pc_record *records; /* the first `n_taken` were handed out */
    size_t n_records, cap_records, n_taken;
    bool full;
    uint64_t dropped, not_users; /* samples since the last time that data was handed out */
    uint64_t range;
    struct given_name *names;
    struct pc_sampler *next;
};
static struct pc_sampler *pc_samplers;

#define SIZED(params, type)                                                                                            \
    if (!(params) || (params)->pPriv)                                                                                  \
        return CUPTI_ERROR_INVALID_PARAMETER;                                                                          \
    if ((params)->size != type##Size)                                                                                  \
    fake_misuse("%s: parameters of %zu bytes", __func__, (params)->size)

#define SAMPLING_ENTER(params, type)                                                                                   \
    COUNT_CALL();                                                                                                      \
    SIZED(params, type);                                                                                               \
    LOCKED();                                                                                                          \
    need_usable((params)->ctx, __func__)

static struct pc_sampler *pc_sampler_of(CUcontext ctx)
{
    struct pc_sampler *s = pc_samplers;

    while (s && s->ctx != ctx)
        s = s->next;
    return s;
}

static struct pc_sampler *enabled_sampler(CUcontext ctx, const char *function)
{
    struct pc_sampler *s = pc_sampler_of(ctx);

    if (!s || !s->enabled)
        fake_misuse("%s: PC sampling is not enabled on the context", function);
    return s;
}

static bool one_at_a_time(const struct pc_sampler *s)
{
    return SAMPLING(s, COLLECTION_MODE) == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
}

static bool sampling(const struct pc_sampler *s)
{
    return s && s->enabled && (s->started || !SAMPLING(s, ENABLE_START_STOP_CONTROL));
}

static bool sampled_one_at_a_time(CUcontext ctx)
{
    const struct pc_sampler *s = pc_sampler_of(ctx);

    return sampling(s) && one_at_a_time(s);
}

/* --- stall reasons --- */

static const char *const stall_names[N_STALLS] = {
    [BARRIER] = "barrier",
    [BRANCH_RESOLVING] = "branch_resolving",
    [DISPATCH_STALL] = "dispatch_stall",
    [DRAIN] = "drain",
    [IMC_MISS] = "imc_miss",
    [LG_THROTTLE] = "lg_throttle",
    [LONG_SCOREBOARD] = "long_scoreboard",
    [MATH_PIPE_THROTTLE] = "math_pipe_throttle",
    [MEMBAR] = "membar",
    [MIO_THROTTLE] = "mio_throttle",
    [MISC] = "misc",
    [NO_INSTRUCTIONS] = "no_instructions",
    [NOT_SELECTED] = "not_selected",
    [SELECTED] = "selected",
    [SHORT_SCOREBOARD] = "short_scoreboard",
    [SLEEPING] = "sleeping",
    [TEX_THROTTLE] = "tex_throttle",
    [WAIT] = "wait",
    [WARPGROUP_ARRIVE] = "warpgroup_arrive",
};

/* In addition to each reason and its samples without an issue, two that are not reasons. */
enum { N_REASONS = 2 * N_STALLS + 2 };
static const char *const other_reasons[] = {"smsp__pcsamp_sample_buffer_full", "smsp__pcsamp_samples_data_dropped"};

static void name_reason(size_t i, char *name)
{
    if (i < 2 * N_STALLS)
        snprintf(name, CUPTI_STALL_REASON_STRING_SIZE, "smsp__pcsamp_warps_issue_stalled_%s%s",
                 stall_names[i % N_STALLS], i < N_STALLS ? "" : "_not_issued");
    else
        snprintf(name, CUPTI_STALL_REASON_STRING_SIZE, "%s", other_reasons[i - 2 * N_STALLS]);
}

/* Not the order of the list. */
static uint32_t reason_index(size_t i)
{
    enum { STEP = 7, START = 3 }; /* 7 and the number of reasons, 40, have no common divisor */

    return (uint32_t)((i * STEP + START) % N_REASONS);
}

CUptiResult cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *params)
{
    SAMPLING_ENTER(params, CUpti_PCSamplingGetNumStallReasonsParams);
    if (!params->numStallReasons)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *params->numStallReasons = N_REASONS;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *params)
{
    SAMPLING_ENTER(params, CUpti_PCSamplingGetStallReasonsParams);
    if (!params->stallReasonIndex || !params->stallReasons || params->numStallReasons < N_REASONS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < N_REASONS; i++) {
        params->stallReasonIndex[i] = reason_index(i);
        name_reason(i, params->stallReasons[i]);
    }
    return CUPTI_SUCCESS;
}

/* --- configuration --- */

static const struct sampling_attribute *attribute_of(const CUpti_PCSamplingConfigurationInfo *info)
{
    size_t type = info->attributeType;

    return type < N_SAMPLING_ATTRIBUTES && sampling_attributes[type].size ? &sampling_attributes[type] : NULL;
}

static CUptiResult set_attribute(struct pc_sampler *s, const CUpti_PCSamplingConfigurationInfo *info)
{
    const struct sampling_attribute *a = attribute_of(info);
    uint64_t value = 0;

    if (!a)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(&value, &info->attributeData, a->size);
    if (value < a->low || value > a->high)
        return CUPTI_ERROR_INVALID_OPERATION;
    s->values[info->attributeType] = value;
    return CUPTI_SUCCESS;
}

static CUptiResult get_attribute(const struct pc_sampler *s, CUpti_PCSamplingConfigurationInfo *info)
{
    const struct sampling_attribute *a = attribute_of(info);

    if (!a)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(&info->attributeData, &s->values[info->attributeType], a->size);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *params)
{
    CUptiResult result = CUPTI_SUCCESS;
    struct pc_sampler *s;

    SAMPLING_ENTER(params, CUpti_PCSamplingConfigurationInfoParams);
    s = enabled_sampler(params->ctx, __func__);
    if (!params->numAttributes || !params->pPCSamplingConfigurationInfo)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < params->numAttributes; i++) {
        CUpti_PCSamplingConfigurationInfo *info = &params->pPCSamplingConfigurationInfo[i];

        info->attributeStatus = set_attribute(s, info);
        result = result ? result : info->attributeStatus;
    }
    set_pace(s->ctx);
    return result;
}

CUptiResult cuptiPCSamplingGetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *params)
{
    CUptiResult result = CUPTI_SUCCESS;
    const struct pc_sampler *s;

    SAMPLING_ENTER(params, CUpti_PCSamplingConfigurationInfoParams);
    s = enabled_sampler(params->ctx, __func__);
    if (!params->numAttributes || !params->pPCSamplingConfigurationInfo)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < params->numAttributes; i++) {
        CUpti_PCSamplingConfigurationInfo *info = &params->pPCSamplingConfigurationInfo[i];

        info->attributeStatus = get_attribute(s, info);
        result = result ? result : info->attributeStatus;
    }
    return result;
}

/* --- samples --- */

/* How often the instruction is met at the sampling period; some are never met. */
static uint64_t samples_at(const struct pc_sampler *s, const struct fake_launch *launch, const struct code *code,
                           size_t i)
{
    enum { MOST = 16, USUAL_PERIOD = 11 };
    uint64_t hash = fake_hash(FAKE_HASH_START, launch->name, strlen(launch->name));
    uint64_t n, period = SAMPLING(s, SAMPLING_PERIOD);

    hash = fake_hash(hash, launch->grid, sizeof(launch->grid));
    hash = fake_hash(hash, launch->block, sizeof(launch->block));
    hash = fake_hash(hash, &launch->numbers_hash, sizeof(launch->numbers_hash));
    hash = fake_hash(hash, &i, sizeof(i));
    n = code->instructions[i].operation->weight * ((hash >> 32) % MOST);
    return period < USUAL_PERIOD ? n << (USUAL_PERIOD - period) : n >> (period - USUAL_PERIOD);
}

static void add_stall(struct pc_record *record, size_t reason, uint64_t samples)
{
    if (samples)
        record->stalls[record->n_stalls++] = (CUpti_PCSamplingStallReason){reason_index(reason), (uint32_t)samples};
}

/* A quarter belongs to warps that issue; three quarters of the rest to a moment when no warp did. */
static void add_record(struct pc_sampler *s, const struct code *code, size_t i, uint32_t correlation, uint64_t samples)
{
    enum stall stall = code->instructions[i].operation->stall;
    struct pc_record *record;

    if (s->n_records == s->cap_records) {
        s->cap_records = s->cap_records ? 2 * s->cap_records : 256;
        s->records = realloc(s->records, s->cap_records * sizeof(*s->records));
    }
    if (!s->records)
        fake_misuse("out of host memory");
    record = &s->records[s->n_records++];
    *record = (struct pc_record){
        .code = code, .offset = (uint32_t)(i * INSTRUCTION_BYTES), .correlation = correlation, .samples = samples};
    add_stall(record, SELECTED, samples / 4);
    add_stall(record, stall, samples - samples / 4);
    add_stall(record, N_STALLS + stall, (samples - samples / 4) * 3 / 4);
}

static void sample_code(struct pc_sampler *s, const struct fake_launch *launch, struct code *code, uint32_t correlation)
{
    uint64_t room = SAMPLING(s, HARDWARE_BUFFER_SIZE) / fake_cupti_pc_sample_bytes;

    for (size_t i = 0; i < code->n_instructions; i++) {
        uint64_t n = samples_at(s, launch, code, i);

        if (n > room)
            s->full = true;
        else if (code->strange)
            s->not_users += n;
        else if (n)
            add_record(s, code, i, correlation, n);
        room -= n > room ? room : n;
    }
}

/* A disabled one counts, too. */
static bool range_profiler_was_on(CUcontext ctx)
{
    const CUpti_RangeProfiler_Object *object = objects;

    while (object && object->ctx != ctx)
        object = object->next;
    return object;
}

/* Before any part of CUPTI was used, nothing could have missed a launch. */
static void note_earlier_launches(const struct fake_launch *launch)
{
    static uint64_t next;
    struct fake_launch earlier;

    for (; next < launch->ordinal && !fake_driver()->launch_get(next, &earlier); next++)
        code_of(&earlier)->launched = true;
}

/* A function's launch decides if PC sampling will ever recognise it. */
static void get_to_know(const struct fake_launch *launch, bool patched)
{
    const struct pc_sampler *s = pc_sampler_of(launch->ctx);
    struct code *code;

    note_earlier_launches(launch);
    code = code_of(launch);
    if ((s && s->enabled) || kinds_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        code->known |= !code->strange;
    else if (patched || (!code->launched && range_profiler_was_on(launch->ctx)))
        code->strange |= !code->known;
    code->launched = true;
}

static void sample_launch(const struct fake_launch *launch)
{
    enum { SAMPLES_OF_UNKNOWN = 100 };
    static uint32_t last_correlation;
    struct pc_sampler *s = pc_sampler_of(launch->ctx);
    struct code *code;

    if (!sampling(s) || range_profiler_has_counters(launch->ctx))
        return;
    if (!one_at_a_time(s))
        fake_misuse("kernel %s is to be sampled beside others, which the fake cannot do", launch->name);
    code = code_of(launch);
    last_correlation++;
    if (!code->n_instructions)
        s->not_users += SAMPLES_OF_UNKNOWN;
    else if (!strstr(launch->name, "tiny"))
        sample_code(s, launch, code, last_correlation);
}

/* --- handing out --- */

static char *name_to_give(struct pc_sampler *s, const struct code *code)
{
    struct given_name *n = s->names;

    while (n && n->code != code)
        n = n->next;
    if (n)
        return n->given;
    n = calloc(1, sizeof(*n));
    if (!n || !(n->given = strdup(code->name)))
        fake_misuse("out of host memory");
    n->code = code;
    n->next = s->names;
    s->names = n;
    return n->given;
}

/* Not strcmp, because a sanitiser would stop it at freed memory. */
static bool is_text(const volatile char *text, const char *expected)
{
    while (*expected && *text == *expected)
        text++, expected++;
    return *text == *expected;
}

/* Later records share them; freed memory normally has other contents. */
static void check_names(const struct pc_sampler *s, const char *function)
{
    for (const struct given_name *n = s->names; n; n = n->next)
        if (!is_text(n->given, n->code->name))
            fake_misuse("%s: the name of function %s was freed or changed while sampling is enabled", function,
                        n->code->name);
}

static void give_record(struct pc_sampler *s, const struct pc_record *from, CUpti_PCSamplingPCData *to,
                        const char *function)
{
    if (to->size != sizeof(*to) || !to->stallReason)
        fake_misuse("%s: a record of %zu bytes, or without room for its reasons", function, to->size);
    to->cubinCrc = crc_of(from->code->cubin);
    to->pcOffset = from->offset;
    to->functionIndex = from->code->symbol;
    to->functionName = name_to_give(s, from->code);
    to->correlationId = from->correlation;
    to->stallReasonCount = from->n_stalls;
    memcpy(to->stallReason, from->stalls, from->n_stalls * sizeof(from->stalls[0]));
}

static CUptiResult give(struct pc_sampler *s, CUpti_PCSamplingData *data, const char *function)
{
    check_names(s, function);
    if (!data)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (data->size != sizeof(*data))
        fake_misuse("%s: a data buffer of %zu bytes", function, data->size);
    if (!data->collectNumPcs || !data->pPcData)
        return CUPTI_ERROR_INVALID_PARAMETER;
    data->totalNumPcs = 0;
    data->droppedSamples = s->dropped;
    data->nonUsrKernelsTotalSamples = s->not_users;
    data->totalSamples = s->dropped + s->not_users;
    data->rangeId = s->range;
    data->hardwareBufferFull = s->full;
    if (s->full) {
        data->totalSamples = data->droppedSamples = data->nonUsrKernelsTotalSamples = data->remainingNumPcs = 0;
        return CUPTI_ERROR_OUT_OF_MEMORY;
    }
    for (; data->totalNumPcs < data->collectNumPcs && s->n_taken < s->n_records; s->n_taken++) {
        give_record(s, &s->records[s->n_taken], &data->pPcData[data->totalNumPcs++], function);
        data->totalSamples += s->records[s->n_taken].samples;
    }
    data->remainingNumPcs = s->n_records - s->n_taken;
    if (!data->remainingNumPcs)
        s->n_records = s->n_taken = 0;
    s->dropped = s->not_users = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *params)
{
    SAMPLING_ENTER(params, CUpti_PCSamplingGetDataParams);
    return give(enabled_sampler(params->ctx, __func__), params->pcSamplingData, __func__);
}

/* --- on and off --- */

CUptiResult cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *params)
{
    struct pc_sampler *s;

    SAMPLING_ENTER(params, CUpti_PCSamplingEnableParams);
    s = pc_sampler_of(params->ctx);
    if (s && s->enabled)
        fake_misuse("%s: PC sampling is enabled on the context already", __func__);
    if (!s) {
        s = calloc(1, sizeof(*s));
        if (!s)
            return CUPTI_ERROR_OUT_OF_MEMORY;
        s->ctx = params->ctx;
        s->next = pc_samplers;
        pc_samplers = s;
    }
    for (size_t i = 0; i < N_SAMPLING_ATTRIBUTES; i++)
        s->values[i] = sampling_attributes[i].initial;
    s->enabled = true;
    s->started = s->full = false;
    fake_driver()->set_launch_hook(on_launch, NULL);
    return CUPTI_SUCCESS;
}

static void forget_names(struct pc_sampler *s)
{
    for (struct given_name *next, *n = s->names; n; n = next) {
        next = n->next;
        free(n); /* the string is the user's */
    }
    s->names = NULL;
}

CUptiResult cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *params)
{
    static struct fake_counter counter = {__func__, 0, NULL};
    CUptiResult result = CUPTI_SUCCESS;
    bool failed;
    struct pc_sampler *s;
    int injected;
    LOCKED();

    SIZED(params, CUpti_PCSamplingDisableParams);
    need_usable(params->ctx, __func__);
    s = enabled_sampler(params->ctx, __func__);
    failed = fake_count(&counter, &injected); /* it is off anyway */
    if (!failed && SAMPLING(s, SAMPLING_DATA_BUFFER) && !s->full)
        result = give(s, (void *)(uintptr_t)SAMPLING(s, SAMPLING_DATA_BUFFER), __func__);
    s->n_records = s->n_taken = 0;
    s->dropped = s->not_users = 0;
    s->enabled = false;
    forget_names(s);
    set_pace(s->ctx);
    torn_down |= failed;
    return failed ? (CUptiResult)injected : result;
}

static CUptiResult set_started(CUcontext ctx, bool started, const char *function)
{
    struct pc_sampler *s = enabled_sampler(ctx, function);

    if (!SAMPLING(s, ENABLE_START_STOP_CONTROL) || s->started == started)
        return CUPTI_ERROR_INVALID_OPERATION;
    s->started = started;
    s->range += started;
    set_pace(ctx);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingStart(CUpti_PCSamplingStartParams *params)
{
    SAMPLING_ENTER(params, CUpti_PCSamplingStartParams);
    return set_started(params->ctx, true, __func__);
}

CUptiResult cuptiPCSamplingStop(CUpti_PCSamplingStopParams *params)
{
    SAMPLING_ENTER(params, CUpti_PCSamplingStopParams);
    return set_started(params->ctx, false, __func__);
}
