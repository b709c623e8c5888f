/*
 * Counts kernels with CUPTI's activity trace: the independent count that kprof's "launches seen" is held against.
 * Loaded by the CUDA driver itself: CUDA_INJECTION64_PATH=trace_count.so TRACE_COUNT_FILE=out ./program
 */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long kernels;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = 4 << 20;
    *buffer = aligned_alloc(8, *size);
    *max_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)ctx;
    (void)stream;
    (void)size;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    free(buffer);
}

static void at_exit(void)
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    FILE *f = fopen(getenv("TRACE_COUNT_FILE"), "w");
    if (!f)
        return;
    fprintf(f, "%lu\n", kernels);
    fclose(f);
}

int InitializeInjection(void);

int InitializeInjection(void)
{
    cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    atexit(at_exit);
    return 1;
}
