/*
 * A look-alike of libnvperf_host.so, as far as counter data needs it: what metrics are made of, which here is a counter
 * of their own name, and the layout of counter data for them. It lacks the functions that take throughputs apart and
 * schedule raw counters, like a library that does not support them.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvperf_cuda_host.h>
#include <nvperf_host.h>

#include "fake_common.h"

/* Counts the call, and checks what the real library checks first. */
#define CHECK(params, type)                                                                                            \
    static struct fake_counter counter_ = {__func__, 0, NULL};                                                         \
    int injected_;                                                                                                     \
    if (fake_count(&counter_, &injected_))                                                                             \
        return (NVPA_Status)injected_;                                                                                 \
    if (!(params) || (params)->structSize != type##_STRUCT_SIZE || (params)->pPriv)                                    \
    return NVPA_STATUS_INVALID_ARGUMENT

/* A metric by number, because the evaluator has no room for names. */
struct name {
    struct name *next;
    size_t number;
    char text[];
};

struct NVPW_MetricsEvaluator {
    struct name *names;
};

struct NVPA_CounterDataBuilder {
    size_t counters;
};

NVPA_Status NVPW_InitializeHost(NVPW_InitializeHost_Params *params)
{
    CHECK(params, NVPW_InitializeHost_Params);
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(
    NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params *params)
{
    CHECK(params, NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params);
    params->scratchBufferSize = sizeof(struct NVPW_MetricsEvaluator);
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CUDA_MetricsEvaluator_Initialize(NVPW_CUDA_MetricsEvaluator_Initialize_Params *params)
{
    CHECK(params, NVPW_CUDA_MetricsEvaluator_Initialize_Params);
    if (params->scratchBufferSize < sizeof(struct NVPW_MetricsEvaluator) || !params->pChipName)
        return NVPA_STATUS_INVALID_ARGUMENT;
    params->pMetricsEvaluator = (void *)params->pScratchBuffer;
    params->pMetricsEvaluator->names = NULL;
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_MetricsEvaluator_Destroy(NVPW_MetricsEvaluator_Destroy_Params *params)
{
    CHECK(params, NVPW_MetricsEvaluator_Destroy_Params);
    while (params->pMetricsEvaluator->names) {
        struct name *next = params->pMetricsEvaluator->names->next;

        free(params->pMetricsEvaluator->names);
        params->pMetricsEvaluator->names = next;
    }
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(
    NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params *params)
{
    CHECK(params, NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params);
    size_t n = strcspn(params->pMetricName, ".");
    struct name *name;

    name = fake_realloc(NULL, sizeof(*name) + n + 1);
    if (!name)
        return NVPA_STATUS_OUT_OF_MEMORY;
    memcpy(name->text, params->pMetricName, n);
    name->text[n] = '\0';
    name->next = params->pMetricsEvaluator->names;
    name->number = name->next ? name->next->number + 1 : 0;
    params->pMetricsEvaluator->names = name;
    memset(params->pMetricEvalRequest, 0, params->metricEvalRequestStructSize);
    params->pMetricEvalRequest->metricIndex = name->number;
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status
NVPW_MetricsEvaluator_GetMetricRawDependencies(NVPW_MetricsEvaluator_GetMetricRawDependencies_Params *params)
{
    CHECK(params, NVPW_MetricsEvaluator_GetMetricRawDependencies_Params);
    const struct name *name;

    name = params->pMetricsEvaluator->names;
    while (name && name->number != params->pMetricEvalRequests->metricIndex)
        name = name->next;
    if (!name || params->numMetricEvalRequests != 1)
        return NVPA_STATUS_INVALID_ARGUMENT;
    if (params->ppRawDependencies)
        params->ppRawDependencies[0] = name->text;
    params->numRawDependencies = 1;
    params->numOptionalRawDependencies = 0;
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CUDA_CounterDataBuilder_Create(NVPW_CUDA_CounterDataBuilder_Create_Params *params)
{
    CHECK(params, NVPW_CUDA_CounterDataBuilder_Create_Params);
    params->pCounterDataBuilder = calloc(1, sizeof(*params->pCounterDataBuilder));
    return params->pCounterDataBuilder ? NVPA_STATUS_SUCCESS : NVPA_STATUS_OUT_OF_MEMORY;
}

NVPA_Status NVPW_CounterDataBuilder_Destroy(NVPW_CounterDataBuilder_Destroy_Params *params)
{
    CHECK(params, NVPW_CounterDataBuilder_Destroy_Params);
    free(params->pCounterDataBuilder);
    return NVPA_STATUS_SUCCESS;
}

/* Without all instances of a counter its smallest and largest would be missing. */
NVPA_Status NVPW_CounterDataBuilder_AddRawCounters(NVPW_CounterDataBuilder_AddRawCounters_Params *params)
{
    CHECK(params, NVPW_CounterDataBuilder_AddRawCounters_Params);
    for (size_t i = 0; i < params->numRawCounterRequests; i++)
        if (!params->pRawCounterRequests[i].pRawCounterName || !params->pRawCounterRequests[i].keepInstances)
            return NVPA_STATUS_INVALID_ARGUMENT;
    params->pCounterDataBuilder->counters += params->numRawCounterRequests;
    return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CounterDataBuilder_GetCounterDataPrefix(NVPW_CounterDataBuilder_GetCounterDataPrefix_Params *params)
{
    CHECK(params, NVPW_CounterDataBuilder_GetCounterDataPrefix_Params);
    size_t n = sizeof(params->pCounterDataBuilder->counters);

    params->bytesCopied = n;
    if (params->pBuffer && params->bytesAllocated < n)
        return NVPA_STATUS_INVALID_ARGUMENT;
    if (params->pBuffer)
        memcpy(params->pBuffer, &params->pCounterDataBuilder->counters, n);
    return NVPA_STATUS_SUCCESS;
}
