/*
 * SASS metrics, as seen with CUPTI 13.0 on an H200. The values are those of code in which all threads of all warps
 * execute each instruction once, up to the last EXIT; half of the threads if it is predicated. The list of metrics is
 * the real library's if KP_REAL_CUPTI names it, else that of an H200 with numbers of its own.
 *
 * Undocumented behaviour of the real one: a device accepts one configuration per process; after data was flushed
 * nothing is counted until the next Enable; without another feature of CUPTI having been on before, only the first
 * function after Enable is counted; nothing to flush is an error; records name the function, but have no symbol. Lazy
 * patching or not makes no difference here.
 */

#define SASS_PREFIX "smsp__sass_"

/* For an instruction the first row of a metric counts whose kinds it all has; without one it has no record. A metric's
 * rows follow each other. */
static const struct sass_row {
    const char *name;
    uint32_t kinds;
    uint32_t per_warp;
} sass_rows[] = {
    {"branch_targets_threads_divergent", BRANCH | PREDICATED, 1},
    {"branch_targets_threads_uniform", BRANCH | UNPREDICATED, 1},
    {"inst_executed", 0, 1},
    {"inst_executed_memdesc_explicit", NEVER, 0},
    {"inst_executed_memdesc_explicit_hitprop_evict_first", NEVER, 0},
    {"inst_executed_memdesc_explicit_hitprop_evict_last", NEVER, 0},
    {"inst_executed_memdesc_explicit_hitprop_evict_normal", NEVER, 0},
    {"inst_executed_memdesc_explicit_hitprop_evict_normal_demote", NEVER, 0},
    {"inst_executed_memdesc_explicit_missprop_evict_first", NEVER, 0},
    {"inst_executed_memdesc_explicit_missprop_evict_normal", NEVER, 0},
    {"inst_executed_op_atom", ATOMIC, 1},
    {"inst_executed_op_branch", BRANCH, 1},
    {"inst_executed_op_dshared", NEVER, 0},
    {"inst_executed_op_dshared_atom", NEVER, 0},
    {"inst_executed_op_dshared_ld", NEVER, 0},
    {"inst_executed_op_dshared_st", NEVER, 0},
    {"inst_executed_op_dshared_tma_red", NEVER, 0},
    {"inst_executed_op_dshared_tma_st", NEVER, 0},
    {"inst_executed_op_global", GLOBAL, 1},
    {"inst_executed_op_global_atom", GLOBAL | ATOMIC, 1},
    {"inst_executed_op_global_ld", GLOBAL | LOAD, 1},
    {"inst_executed_op_global_red", GLOBAL | REDUCTION, 1},
    {"inst_executed_op_global_st", GLOBAL | STORE, 1},
    {"inst_executed_op_ld", LOAD, 1},
    {"inst_executed_op_ldgsts", NEVER, 0},
    {"inst_executed_op_ldgsts_cache_access", NEVER, 0},
    {"inst_executed_op_ldgsts_cache_bypass", NEVER, 0},
    {"inst_executed_op_ldsm", NEVER, 0},
    {"inst_executed_op_local", LOCAL, 1},
    {"inst_executed_op_local_ld", LOCAL | LOAD, 1},
    {"inst_executed_op_local_st", LOCAL | STORE, 1},
    {"inst_executed_op_memory_128b", NEVER, 0},
    {"inst_executed_op_memory_16b", NEVER, 0},
    {"inst_executed_op_memory_32b", GLOBAL, 1},
    {"inst_executed_op_memory_32b", SHARED, 1},
    {"inst_executed_op_memory_32b", LOCAL, 1},
    {"inst_executed_op_memory_64b", NEVER, 0},
    {"inst_executed_op_memory_8b", NEVER, 0},
    {"inst_executed_op_shared", SHARED, 1},
    {"inst_executed_op_shared_atom", SHARED | ATOMIC, 1},
    {"inst_executed_op_shared_gmma", NEVER, 0},
    {"inst_executed_op_shared_ld", SHARED | LOAD, 1},
    {"inst_executed_op_shared_st", SHARED | STORE, 1},
    {"inst_executed_op_shared_stsm", NEVER, 0},
    {"inst_executed_op_st", STORE, 1},
    {"inst_executed_op_texture", NEVER, 0},
    {"inst_executed_op_tma", NEVER, 0},
    {"inst_executed_op_tma_ld", NEVER, 0},
    {"inst_executed_op_tma_red", NEVER, 0},
    {"inst_executed_op_tma_st", NEVER, 0},
    {"l1tex_pipe_lsu_wavefronts_mem_shared", SHARED | LOAD, 4}, /* conflicts of loads only */
    {"l1tex_pipe_lsu_wavefronts_mem_shared", SHARED, 1},
    {"l1tex_pipe_lsu_wavefronts_mem_shared_ideal", SHARED, 1},
    {"l1tex_tags_mem_global", GLOBAL | LOAD, 2},
    {"l1tex_tags_mem_global", GLOBAL, 1},
    {"sectors_mem_global", GLOBAL | LOAD, 8}, /* loads that are not coalesced */
    {"sectors_mem_global", GLOBAL, 4},
    {"sectors_mem_global_ideal", GLOBAL, 4},
    {"sectors_mem_local", LOCAL, 4},
    {"thread_inst_executed", 0, 32},
    {"thread_inst_executed_op_branch", BRANCH, 32},
    {"thread_inst_executed_op_global_pred_on", GLOBAL, 32},
    {"thread_inst_executed_op_ldgsts_pred_on", NEVER, 0},
    {"thread_inst_executed_op_shared_pred_on", SHARED, 32},
    {"thread_inst_executed_pred_on", PREDICATED, 16},
    {"thread_inst_executed_pred_on", UNPREDICATED, 32},
};
enum { N_SASS_ROWS = sizeof(sass_rows) / sizeof(sass_rows[0]), MOST_SASS_METRICS = 128, MOST_DEVICES = 16 };

static bool begins_metric(size_t row)
{
    return !row || strcmp(sass_rows[row].name, sass_rows[row - 1].name);
}

/* --- the list --- */

static void own_details(size_t row, CUpti_SassMetrics_MetricDetails *out)
{
    static char names[N_SASS_ROWS][128];

    snprintf(names[row], sizeof(names[row]), SASS_PREFIX "%s", sass_rows[row].name);
    *out = (CUpti_SassMetrics_MetricDetails){fake_hash(FAKE_HASH_START, names[row], strlen(names[row])), names[row],
                                             "a metric of the fake library"};
}

/* Starts a question whose answer is kept, see host.c: false if it is not. */
static bool ask_sass(const char *function, const char *chip, size_t n, struct bytes *question)
{
    memset(question, 0, sizeof(*question));
    if (!host_opened || !chip || !put_library(question))
        return false;
    put_text(question, function);
    put_text(question, chip);
    put_number(question, n);
    return true;
}

/* Opens the library if all host objects so far had kept answers. Its object stays. */
static void open_for_lists(const char *chip)
{
    struct host h = {.type = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .chip = (char *)(uintptr_t)chip};

    if (host_opened && !real_opened)
        real_initialize(&h);
}

static CUptiResult own_count(CUpti_SassMetrics_GetNumOfMetrics_Params *params)
{
    params->numOfMetrics = 0;
    for (size_t row = 0; row < N_SASS_ROWS; row++)
        params->numOfMetrics += begins_metric(row);
    return params->pChipName ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static CUptiResult count_metrics(CUpti_SassMetrics_GetNumOfMetrics_Params *params)
{
    struct bytes question, answer = {NULL, 0, false};
    CUptiResult (*real)(CUpti_SassMetrics_GetNumOfMetrics_Params *);
    CUptiResult result;
    bool kept = ask_sass(__func__, params->pChipName, 0, &question);

    if (kept && recall(&question, &result, &answer) && answer.n == sizeof(params->numOfMetrics)) {
        memcpy(&params->numOfMetrics, answer.at, sizeof(params->numOfMetrics));
    } else {
        open_for_lists(params->pChipName);
        *(void **)&real = real_symbol("cuptiSassMetricsGetNumOfMetrics");
        result = real ? real(params) : own_count(params);
        put(&answer, &params->numOfMetrics, sizeof(params->numOfMetrics));
        if (kept && real && !result)
            keep(&question, result, &answer);
    }
    free(question.at);
    free(answer.at);
    return result;
}

static CUptiResult own_list(CUpti_SassMetrics_GetMetrics_Params *params)
{
    size_t n = 0;

    if (!params->pChipName || !params->pMetricsList)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t row = 0; row < N_SASS_ROWS && n < params->numOfMetrics; row++)
        if (begins_metric(row))
            own_details(row, &params->pMetricsList[n++]);
    return CUPTI_SUCCESS;
}

static void put_list(struct bytes *answer, const CUpti_SassMetrics_GetMetrics_Params *params)
{
    for (size_t i = 0; i < params->numOfMetrics; i++) {
        put_number(answer, params->pMetricsList[i].metricId);
        put_text(answer, params->pMetricsList[i].pMetricName);
        put_text(answer, params->pMetricsList[i].pMetricDescription);
    }
}

static void take_list(const struct bytes *answer, CUpti_SassMetrics_GetMetrics_Params *params)
{
    const char *at = (const char *)answer->at;

    for (size_t i = 0; i < params->numOfMetrics; i++) {
        CUpti_SassMetrics_MetricDetails *m = &params->pMetricsList[i];

        memcpy(&m->metricId, at, sizeof(m->metricId));
        m->pMetricName = at + sizeof(m->metricId);
        m->pMetricDescription = m->pMetricName + strlen(m->pMetricName) + 1;
        at = m->pMetricDescription + strlen(m->pMetricDescription) + 1;
    }
}

static CUptiResult list_metrics(CUpti_SassMetrics_GetMetrics_Params *params)
{
    static struct lent *lists; /* their texts stay for the whole process, like the library's */
    struct bytes question, answer = {NULL, 0, false};
    CUptiResult (*real)(CUpti_SassMetrics_GetMetrics_Params *);
    CUptiResult result;
    bool kept = params->pMetricsList && ask_sass(__func__, params->pChipName, params->numOfMetrics, &question);

    if (kept && recall(&question, &result, &answer) && !result) {
        struct lent *list = fake_realloc(NULL, sizeof(*list));

        if (list) {
            *list = (struct lent){.next = lists, .bytes = answer};
            lists = list;
            take_list(&answer, params);
        }
        free(question.at);
        return list ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
    }
    open_for_lists(params->pChipName);
    *(void **)&real = real_symbol("cuptiSassMetricsGetMetrics");
    result = real ? real(params) : own_list(params);
    if (kept && real && !result) {
        put_list(&answer, params);
        keep(&question, result, &answer);
    }
    if (kept)
        free(question.at);
    free(answer.at);
    return result;
}

CUptiResult cuptiSassMetricsGetNumOfMetrics(CUpti_SassMetrics_GetNumOfMetrics_Params *params)
{
    ENTER(params, CUpti_SassMetrics_GetNumOfMetrics_Params);
    LOCKED();
    return count_metrics(params);
}

CUptiResult cuptiSassMetricsGetMetrics(CUpti_SassMetrics_GetMetrics_Params *params)
{
    ENTER(params, CUpti_SassMetrics_GetMetrics_Params);
    LOCKED();
    return list_metrics(params);
}

CUptiResult cuptiSassMetricsGetProperties(CUpti_SassMetrics_GetProperties_Params *params)
{
    CUptiResult (*real)(CUpti_SassMetrics_GetProperties_Params *);

    ENTER(params, CUpti_SassMetrics_GetProperties_Params);
    LOCKED();
    open_for_lists(params->pChipName);
    *(void **)&real = real_symbol(__func__);
    if (real)
        return real(params);
    if (!params->pChipName || !params->pMetricName)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t row = 0; row < N_SASS_ROWS; row++) {
        own_details(row, &params->metric);
        if (!strcmp(params->metric.pMetricName, params->pMetricName))
            return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_METRIC_NAME;
}

/* --- configuration --- */

struct sass_metric {
    uint64_t id;
    size_t row; /* its first; N_SASS_ROWS: a metric that the fake's code has no instructions for */
};

/* Of one device. */
static struct {
    bool was_set, set;
    CUcontext owner; /* of the memory that it needs, which it frees when the process exits */
    struct sass_metric metrics[MOST_SASS_METRICS];
    size_t n_metrics;
} sass_devices[MOST_DEVICES];

static size_t row_of(const char *name)
{
    size_t row = 0;

    while (row < N_SASS_ROWS && strcmp(sass_rows[row].name, name + strlen(SASS_PREFIX)))
        row++;
    return row;
}

/* The list of `chip`; *n is the room for it on entry. */
static CUptiResult metrics_of(const char *chip, CUpti_SassMetrics_MetricDetails *list, size_t *n)
{
    CUpti_SassMetrics_GetNumOfMetrics_Params count = {CUpti_SassMetrics_GetNumOfMetrics_Params_STRUCT_SIZE, NULL, chip,
                                                      0};
    CUpti_SassMetrics_GetMetrics_Params get = {CUpti_SassMetrics_GetMetrics_Params_STRUCT_SIZE, NULL, chip, 0, list};
    CUptiResult result = count_metrics(&count);

    if (!result && count.numOfMetrics > *n)
        fake_misuse("%zu SASS metrics; the fake holds up to %zu", count.numOfMetrics, *n);
    get.numOfMetrics = *n = count.numOfMetrics;
    return result ? result : list_metrics(&get);
}

static CUptiResult read_config(const CUpti_SassMetrics_Config *config, const CUpti_SassMetrics_MetricDetails *list,
                               size_t n, struct sass_metric *out)
{
    if (config->outputGranularity != CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU)
        return CUPTI_ERROR_NOT_SUPPORTED; /* by the fake */
    for (size_t i = 0; i < n; i++)
        if (list[i].metricId == config->metricId) {
            *out = (struct sass_metric){config->metricId, row_of(list[i].pMetricName)};
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiSassMetricsSetConfig(CUpti_SassMetricsSetConfig_Params *params)
{
    CUpti_SassMetrics_MetricDetails list[MOST_SASS_METRICS];
    size_t n = MOST_SASS_METRICS;
    CUptiResult result;
    uint32_t device;

    ENTER(params, CUpti_SassMetricsSetConfig_Params);
    LOCKED();
    device = params->deviceIndex;
    if (!fake_driver() || !fake_driver()->initialised())
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!params->pConfigs || !params->numOfMetricConfig || params->numOfMetricConfig > MOST_SASS_METRICS ||
        device >= MOST_DEVICES || !fake_driver()->chip_name((int)device))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (sass_devices[device].was_set)
        return sass_devices[device].set ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_ERROR_OUT_OF_MEMORY;
    result = metrics_of(fake_driver()->chip_name((int)device), list, &n);
    for (size_t i = 0; i < params->numOfMetricConfig && !result; i++)
        result = read_config(&params->pConfigs[i], list, n, &sass_devices[device].metrics[i]);
    sass_devices[device].n_metrics = params->numOfMetricConfig;
    sass_devices[device].set = sass_devices[device].was_set = !result;
    sass_devices[device].owner = fake_driver()->context_current();
    return result;
}

CUptiResult cuptiSassMetricsUnsetConfig(CUpti_SassMetricsUnsetConfig_Params *params)
{
    ENTER(params, CUpti_SassMetricsUnsetConfig_Params);
    LOCKED();
    if (params->deviceIndex >= MOST_DEVICES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!sass_devices[params->deviceIndex].set)
        return CUPTI_ERROR_INVALID_OPERATION;
    sass_devices[params->deviceIndex].set = false;
    return CUPTI_SUCCESS;
}

__attribute__((destructor)) static void free_memory(void)
{
    for (size_t i = 0; i < MOST_DEVICES; i++)
        if (sass_devices[i].set && fake_driver()->context_state(sass_devices[i].owner) == FAKE_DESTROYED)
            fake_misuse("exit: the context that SASS metrics were configured in is gone");
}

/* --- counts --- */

/* What was launched of a function. */
struct counted {
    struct code *code;
    uint64_t warps;
};

/* Of one context. */
struct patcher {
    CUcontext ctx;
    bool enabled, flushed;
    struct counted *counted;
    size_t n_counted;
    struct patcher *next;
};
static struct patcher *patchers;

static struct patcher *patcher_of(CUcontext ctx)
{
    struct patcher *p = patchers;

    while (p && p->ctx != ctx)
        p = p->next;
    return p;
}

/* The given context, or the current one for NULL; checked, because a wrong one would be fatal. */
static CUcontext sass_context(CUcontext given, const char *function)
{
    CUcontext ctx = given ? given : fake_driver() ? fake_driver()->context_current() : NULL;

    need_usable(ctx, function);
    return ctx;
}

static struct patcher *enabled_patcher(CUcontext given, const char *function)
{
    struct patcher *p = patcher_of(sass_context(given, function));

    if (!p || !p->enabled)
        fake_misuse("%s: SASS metrics are not enabled on the context", function);
    return p;
}

/* A disabled range profiler stays in the list. */
static bool other_feature_used(void)
{
    return objects || pc_samplers;
}

static bool patches(CUcontext ctx)
{
    const struct patcher *p = patcher_of(ctx);

    return p && p->enabled;
}

static void count_launch(const struct fake_launch *launch)
{
    enum { WARP = 32 };
    struct patcher *p = patcher_of(launch->ctx);
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    struct code *code;
    size_t i = 0;

    if (!p || !p->enabled || p->flushed)
        return;
    code = code_of(launch);
    while (i < p->n_counted && p->counted[i].code != code)
        i++;
    if (i == p->n_counted) {
        if (p->n_counted && !other_feature_used())
            return;
        p->counted = realloc(p->counted, (p->n_counted + 1) * sizeof(*p->counted));
        if (!p->counted)
            fake_misuse("out of host memory");
        p->counted[p->n_counted++] = (struct counted){code, 0};
    }
    p->counted[i].warps += blocks * ((threads + WARP - 1) / WARP);
}

/* The row that counts instruction `kinds`, or NULL: the metric has no record there. */
static const struct sass_row *row_for(const struct sass_metric *metric, uint32_t kinds)
{
    for (size_t row = metric->row; row < N_SASS_ROWS; row++) {
        if (row > metric->row && begins_metric(row))
            break;
        if ((sass_rows[row].kinds & kinds) == sass_rows[row].kinds)
            return &sass_rows[row];
    }
    return NULL;
}

static void give_count(const struct counted *c, size_t i, uint64_t id, uint64_t per_warp, CUpti_SassMetrics_Data *out,
                       const char *function)
{
    if (out->structSize != sizeof(*out) || !out->pInstanceValues)
        fake_misuse("%s: a record of %zu bytes, or without room for its values", function, out->structSize);
    out->cubinCrc = (uint32_t)crc_of(c->code->cubin);
    out->functionIndex = 0;
    out->functionName = c->code->name;
    out->pcOffset = (uint32_t)(i * INSTRUCTION_BYTES);
    *out->pInstanceValues = (CUpti_SassMetrics_InstanceValue){id, per_warp * c->warps};
}

/* Writes the first `most` records to `out`, and returns how many there are. */
static size_t give_counts(const struct patcher *p, CUpti_SassMetrics_Data *out, size_t most, const char *function)
{
    int device = fake_driver()->context_device(p->ctx);
    size_t n = 0;

    for (const struct counted *c = p->counted; c < p->counted + p->n_counted; c++)
        for (size_t i = 0; i < c->code->n_instructions; i++)
            for (size_t m = 0; m < sass_devices[device].n_metrics; m++) {
                const struct sass_metric *metric = &sass_devices[device].metrics[m];
                const struct sass_row *row = row_for(metric, c->code->instructions[i].kinds);

                if (row && n < most)
                    give_count(c, i, metric->id, row->per_warp, &out[n], function);
                n += row != NULL;
            }
    return n;
}

static size_t n_counts(const struct patcher *p)
{
    return give_counts(p, NULL, 0, NULL);
}

CUptiResult cuptiSassMetricsEnable(CUpti_SassMetricsEnable_Params *params)
{
    struct patcher *p;
    CUcontext ctx;

    ENTER(params, CUpti_SassMetricsEnable_Params);
    LOCKED();
    ctx = sass_context(params->ctx, __func__);
    if (!sass_devices[fake_driver()->context_device(ctx)].set)
        return CUPTI_ERROR_INVALID_OPERATION;
    p = patcher_of(ctx);
    if (p && p->enabled)
        fake_misuse("%s: SASS metrics are enabled on the context already", __func__);
    if (!p) {
        p = calloc(1, sizeof(*p));
        if (!p)
            return CUPTI_ERROR_OUT_OF_MEMORY;
        p->ctx = ctx;
        p->next = patchers;
        patchers = p;
    }
    p->enabled = true;
    p->flushed = false;
    p->n_counted = 0;
    fake_driver()->set_launch_hook(on_launch, NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSassMetricsDisable(CUpti_SassMetricsDisable_Params *params)
{
    static struct fake_counter counter = {__func__, 0, NULL};
    struct patcher *p;
    int injected;
    LOCKED();

    if (!params || params->structSize != CUpti_SassMetricsDisable_Params_STRUCT_SIZE || params->pPriv)
        return CUPTI_ERROR_INVALID_PARAMETER;
    p = enabled_patcher(params->ctx, __func__);
    params->numOfDroppedRecords = n_counts(p);
    p->enabled = false; /* even when it fails */
    return fake_count(&counter, &injected) ? (CUptiResult)injected : CUPTI_SUCCESS;
}

CUptiResult cuptiSassMetricsGetDataProperties(CUpti_SassMetricsGetDataProperties_Params *params)
{
    ENTER(params, CUpti_SassMetricsGetDataProperties_Params);
    LOCKED();
    params->numOfPatchedInstructionRecords = n_counts(enabled_patcher(params->ctx, __func__));
    params->numOfInstances = 1;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSassMetricsFlushData(CUpti_SassMetricsFlushData_Params *params)
{
    struct patcher *p;

    ENTER(params, CUpti_SassMetricsFlushData_Params);
    LOCKED();
    p = enabled_patcher(params->ctx, __func__);
    if (!params->numOfPatchedInstructionRecords || params->numOfInstances != 1 || !params->pMetricsData ||
        params->numOfPatchedInstructionRecords > n_counts(p))
        return CUPTI_ERROR_INVALID_PARAMETER;
    give_counts(p, params->pMetricsData, params->numOfPatchedInstructionRecords, __func__);
    p->n_counted = 0;
    p->flushed = true;
    return CUPTI_SUCCESS;
}
