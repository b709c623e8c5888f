/* What the look-alike of CUPTI says of a kernel's instructions is what the real one was seen to say, traps included:
 * cubins, PC sampling, SASS metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_hooks.h"
#include "tests/support/child_support.h"

enum { N = 64, MOST_RECORDS = 64, MOST_REASONS = 64, MOST_METRICS = 128, WARPS = N / 32 };

static struct {
    void *cuda, *cupti;
    CUcontext ctx;
    CUmodule module;
    CUdeviceptr values, others;
} gpu;

#define CUDA(function, ...) CHECK(!TAKE(gpu.cuda, function)(__VA_ARGS__))

/* A call that must succeed; the error code of one that need not. */
#define CUPTI(function, ...)  CHECK(TAKE(gpu.cupti, function)(__VA_ARGS__) == CUPTI_SUCCESS)
#define RESULT(function, ...) TAKE(gpu.cupti, function)(__VA_ARGS__)

static const char kernels[] = "FAKEMOD increment atomic_count tiny_increment late_increment "
                              "_ZN5tests9incrementIiLi4EEEvPT_i";

static void open_gpu(void)
{
    gpu.cuda = kp_test_open_fake("libcuda.so.1");
    gpu.cupti = kp_test_open_fake("libcupti.so.13");
    CUDA(cuInit, 0);
    CUDA(cuDevicePrimaryCtxRetain, &gpu.ctx, 0);
    CUDA(cuCtxSetCurrent, gpu.ctx);
    CUDA(cuMemAlloc, &gpu.values, N * sizeof(int));
    CUDA(cuMemAlloc, &gpu.others, N * sizeof(int));
    CUDA(cuMemsetD8, gpu.values, 0, N * sizeof(int));
}

static void load(void)
{
    CUDA(cuModuleLoadData, &gpu.module, kernels);
}

static void launch_with(const char *name, unsigned blocks, CUdeviceptr values, int n)
{
    void *params[] = {&values, &n};
    CUfunction f;

    CUDA(cuModuleGetFunction, &f, gpu.module, name);
    CUDA(cuLaunchKernel, f, blocks, 1, 1, N, 1, 1, 0, NULL, params, NULL);
}

static void launch(const char *name)
{
    launch_with(name, 1, gpu.values, N);
}

/* --- cubins --- */

static struct {
    int calls;
    pthread_t thread;
    const char *image;
    size_t size;
} seen;
enum { OWN_CRC = 0x12340000 };

static void CUPTIAPI on_cubin(const void *image, size_t size, uint64_t *crc)
{
    seen.thread = pthread_self();
    seen.image = image;
    seen.size = size;
    *crc = (uint64_t)(OWN_CRC + ++seen.calls);
}

static const Elf64_Shdr *section(const char *name)
{
    const Elf64_Ehdr *header = (const void *)seen.image;
    const Elf64_Shdr *sections = (const void *)(seen.image + header->e_shoff);
    const char *names = seen.image + sections[header->e_shstrndx].sh_offset;

    for (size_t i = 0; i < header->e_shnum; i++)
        if (!strcmp(names + sections[i].sh_name, name))
            return &sections[i];
    return NULL;
}

/* The index of the function's symbol; 0: it has none. */
static uint32_t symbol_of(const char *name)
{
    const Elf64_Shdr *table = section(".symtab"), *strings = section(".strtab");
    const Elf64_Sym *symbols;

    CHECK(table && strings);
    symbols = (const void *)(seen.image + table->sh_offset);
    for (uint32_t i = 1; i < table->sh_size / sizeof(*symbols); i++)
        if (!strcmp(seen.image + strings->sh_offset + symbols[i].st_name, name))
            return i;
    return 0;
}

static bool has_operation(const Elf64_Shdr *text, uint16_t code)
{
    for (size_t i = 0; i < text->sh_size; i += 16) {
        uint16_t low;

        memcpy(&low, seen.image + text->sh_offset + i, sizeof(low));
        if ((low & 0xfff) == code)
            return true;
    }
    return false;
}

static void body_cubins(void)
{
    CUmodule other;
    CUlibrary library;

    open_gpu();
    load();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    CHECK(!seen.calls); /* not for what is loaded already */
    load();
    CHECK(seen.calls == 1 && pthread_equal(seen.thread, pthread_self()));
    CUDA(cuModuleLoadData, &other, ".visible .entry from_ptx(.param .u32 n) { ret; }");
    CHECK(seen.calls == 2 && symbol_of("from_ptx") && section(".text.from_ptx"));
    CUDA(cuLibraryLoadData, &library, kernels, NULL, NULL, 0, NULL, NULL, 0);
    CHECK(seen.calls == 2); /* a library is loaded when a context needs it */
    CUDA(cuLibraryGetModule, &other, library);
    CUDA(cuLibraryGetModule, &other, library);
    CHECK(seen.calls == 3 && symbol_of("increment"));
    CHECK(RESULT(cuptiRegisterComputeCrcCallback, NULL) == CUPTI_ERROR_INVALID_PARAMETER);
}

static void body_cubin_format(void)
{
    const Elf64_Ehdr *header;
    const Elf64_Shdr *text;

    open_gpu();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    load();
    header = (const void *)seen.image;
    CHECK(!memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_machine == 190 && (header->e_flags >> 8 & 0xff) == 90);
    CHECK(header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr) == seen.size);
    text = section(".text.increment");
    CHECK(text && text->sh_size && text->sh_size % 128 == 0 && text->sh_info == symbol_of("increment"));
    CHECK(has_operation(text, 0x981) && has_operation(text, 0x223) && has_operation(text, 0x94d));
    CHECK(has_operation(text, 0x986) && !has_operation(text, 0x98e) && !has_operation(text, 0xb1d));
    text = section(".text.atomic_count"); /* reduces instead of storing */
    CHECK(text && has_operation(text, 0x98e) && !has_operation(text, 0x986));
    text = section(".text._ZN5tests9incrementIiLi4EEEvPT_i"); /* the one with shared memory */
    CHECK(text && has_operation(text, 0xb1d) && has_operation(text, 0x984));
}

/* The first and last line, and the size in bytes, of the `index`-th sequence; of the few opcodes that the fake uses. */
static void read_sequence(size_t index, int *first, int *last, int *bytes)
{
    const Elf64_Shdr *lines = section(".debug_line");
    const unsigned char *at = (const unsigned char *)seen.image + lines->sh_offset, *end = at + lines->sh_size;
    uint32_t header;
    size_t sequence = 0;
    int line = 1;

    memcpy(&header, at + 6, sizeof(header));
    *first = *last = *bytes = 0;
    for (at += 10 + header; at < end; at++) {
        if (at[0] == 0 && at[2] == 1) {
            sequence++;
            line = 1;
        }
        if (at[0] == 0)
            at += at[1] + 1;
        else if (at[0] == 3) {
            line += at[1] & 0x7f;
            if (at[1] & 0x80)
                line += at[2] << 7;
            at += at[1] & 0x80 ? 2 : 1;
        } else if (at[0] == 2 && sequence == index)
            *bytes += *++at;
        else if (at[0] == 2)
            at++;
        else if (at[0] == 1 && sequence == index) {
            *first = *first ? *first : line;
            *last = line;
        } else
            CHECK(at[0] == 1);
    }
    CHECK(at == end);
}

static void body_cubin_lines(void)
{
    const Elf64_Rela *relocations;
    const Elf64_Shdr *lines, *table;
    int first, last, bytes, again;
    CUmodule other;

    open_gpu();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    load();
    lines = section(".debug_line");
    table = section(".rela.debug_line");
    CHECK(lines && table && table->sh_size == 5 * sizeof(*relocations));
    CHECK(memmem(seen.image + lines->sh_offset, lines->sh_size, "fake_kernels.cu", sizeof("fake_kernels.cu")));
    relocations = (const void *)(seen.image + table->sh_offset);
    CHECK(ELF64_R_SYM(relocations[1].r_info) == symbol_of("atomic_count"));
    read_sequence(0, &first, &last, &bytes);
    CHECK(last == first + 10 && bytes == (int)section(".text.increment")->sh_size);
    read_sequence(1, &again, &last, &bytes);
    CHECK(again != first);
    CUDA(cuModuleLoadData, &other, "FAKEMOD slow increment");
    read_sequence(1, &again, &last, &bytes); /* the same lines in another module */
    CHECK(again == first);
}

/* Images that are cubins already are handed out as they are. */
static void body_cubin_given(void)
{
    char path[] = "/tmp/kprof-test-cubin-XXXXXX";
    const char *image;
    CUmodule other;
    size_t size;
    FILE *f;

    open_gpu();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    load();
    image = seen.image;
    size = seen.size;
    CUDA(cuModuleLoadData, &other, image);
    CHECK(seen.calls == 2 && seen.image != image && seen.size == size && !memcmp(seen.image, image, size));
    f = fdopen(mkstemp(path), "wb");
    CHECK(f && fwrite(image, 1, size, f) == size && !fclose(f));
    setenv("FAKE_CUBIN", path, 1);
    CUDA(cuModuleLoadData, &other, "FAKEMOD slow");
    remove(path);
    CHECK(seen.calls == 3 && seen.size == size && !memcmp(seen.image, image, size));
}

static void body_crc(void)
{
    CUpti_GetCubinCrcParams params = {CUpti_GetCubinCrcParamsSize, 9, "123456789", 0};

    open_gpu();
    CUPTI(cuptiGetCubinCrc, &params);
    CHECK(params.cubinCrc == 0xcbf43926); /* the check value of CRC-32 */
    params.cubin = "123456780";
    CUPTI(cuptiGetCubinCrc, &params);
    CHECK(params.cubinCrc != 0xcbf43926);
    params.size = 3;
    CHECK(RESULT(cuptiGetCubinCrc, &params) == CUPTI_ERROR_INVALID_PARAMETER);
}

/* --- PC sampling --- */

#define SAMPLING_PARAMS(type, name) type name = {.size = type##Size, .ctx = gpu.ctx}

static char reasons[MOST_REASONS][CUPTI_STALL_REASON_STRING_SIZE]; /* by index */
static uint32_t listed[MOST_REASONS];
static size_t n_reasons;

static void read_reasons(void)
{
    char names[MOST_REASONS][CUPTI_STALL_REASON_STRING_SIZE], *pointers[MOST_REASONS];
    SAMPLING_PARAMS(CUpti_PCSamplingGetNumStallReasonsParams, count);
    SAMPLING_PARAMS(CUpti_PCSamplingGetStallReasonsParams, get);

    count.numStallReasons = &n_reasons;
    CUPTI(cuptiPCSamplingGetNumStallReasons, &count);
    CHECK(n_reasons <= MOST_REASONS);
    for (size_t i = 0; i < n_reasons; i++)
        pointers[i] = names[i];
    get.numStallReasons = n_reasons;
    get.stallReasonIndex = listed;
    get.stallReasons = pointers;
    CUPTI(cuptiPCSamplingGetStallReasons, &get);
    for (size_t i = 0; i < n_reasons; i++) {
        CHECK(listed[i] < n_reasons && !*reasons[listed[i]]);
        memcpy(reasons[listed[i]], names[i], sizeof(names[i]));
    }
}

static size_t index_of_reason(const char *name)
{
    size_t i = 0;

    while (i < n_reasons && strcmp(reasons[i], name))
        i++;
    return i;
}

static void body_reasons(void)
{
    size_t in_order = 0;

    open_gpu();
    read_reasons();
    CHECK(n_reasons == 40);
    for (size_t i = 0; i < n_reasons; i++)
        in_order += listed[i] == i;
    CHECK(in_order < n_reasons / 2);
    CHECK(index_of_reason("smsp__pcsamp_warps_issue_stalled_long_scoreboard") < n_reasons);
    CHECK(index_of_reason("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued") < n_reasons);
    CHECK(index_of_reason("smsp__pcsamp_warps_issue_stalled_warpgroup_arrive") < n_reasons);
}

static CUpti_PCSamplingPCData records[MOST_RECORDS];
static CUpti_PCSamplingStallReason stalls[MOST_RECORDS][MOST_REASONS];
static CUpti_PCSamplingData data;

static CUpti_PCSamplingData *new_data(size_t most)
{
    for (size_t i = 0; i < MOST_RECORDS; i++)
        records[i] = (CUpti_PCSamplingPCData){.size = sizeof(records[i]), .stallReason = stalls[i]};
    data = (CUpti_PCSamplingData){.size = sizeof(data), .collectNumPcs = most, .pPcData = records};
    return &data;
}

static void configure(CUpti_PCSamplingConfigurationAttributeType type, uint64_t value)
{
    CUpti_PCSamplingConfigurationInfo info = {.attributeType = type, .attributeData.invalidData.data = {value}};
    SAMPLING_PARAMS(CUpti_PCSamplingConfigurationInfoParams, set);

    set.numAttributes = 1;
    set.pPCSamplingConfigurationInfo = &info;
    CUPTI(cuptiPCSamplingSetConfigurationAttribute, &set);
    CHECK(info.attributeStatus == CUPTI_SUCCESS);
}

static void enable_sampling(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingEnableParams, enable);

    CUPTI(cuptiPCSamplingEnable, &enable);
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE,
              CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
}

static void open_sampling(void)
{
    open_gpu();
    read_reasons();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    load();
    enable_sampling();
}

static void take(size_t most)
{
    SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);

    get.pcSamplingData = new_data(most);
    CUPTI(cuptiPCSamplingGetData, &get);
}

static void disable_sampling(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingDisableParams, disable);

    CUPTI(cuptiPCSamplingDisable, &disable);
}

static bool is_not_issued(const CUpti_PCSamplingStallReason *s)
{
    static const char suffix[] = "_not_issued";
    const char *name = reasons[s->pcSamplingStallReasonIndex];
    size_t length = strlen(name);

    return length > strlen(suffix) && !strcmp(name + length - strlen(suffix), suffix);
}

/* Of the record, issued or not. */
static uint64_t samples_of(const CUpti_PCSamplingPCData *r)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < r->stallReasonCount; i++) {
        CHECK(r->stallReason[i].samples);
        if (!is_not_issued(&r->stallReason[i]))
            sum += r->stallReason[i].samples;
    }
    return sum;
}

static uint64_t samples_taken(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < data.totalNumPcs; i++)
        sum += samples_of(&records[i]);
    return sum;
}

static void body_records(void)
{
    const Elf64_Shdr *text;
    uint32_t correlation;
    size_t n;

    open_sampling();
    launch("increment");
    take(MOST_RECORDS);
    n = data.totalNumPcs;
    correlation = records[0].correlationId;
    CHECK(n > 4 && !data.remainingNumPcs && !data.droppedSamples && !data.nonUsrKernelsTotalSamples);
    CHECK(data.totalSamples == samples_taken() && data.totalSamples);
    text = section(".text.increment");
    for (size_t i = 0; i < n; i++) {
        CHECK(records[i].cubinCrc == OWN_CRC + 1 && records[i].functionIndex == symbol_of("increment"));
        CHECK(!strcmp(records[i].functionName, "increment") && records[i].functionName == records[0].functionName);
        CHECK(records[i].pcOffset < text->sh_size && records[i].pcOffset % 16 == 0);
        CHECK(records[i].correlationId == correlation);
    }
    launch("tiny_increment");
    take(MOST_RECORDS);
    CHECK(!data.totalNumPcs && !data.totalSamples);
    launch("atomic_count");
    take(MOST_RECORDS);
    CHECK(data.totalNumPcs && records[0].correlationId == correlation + 2);
}

static void body_again(void)
{
    CUpti_PCSamplingPCData first[MOST_RECORDS];
    uint64_t samples[MOST_RECORDS], total;
    size_t n;

    open_sampling();
    launch("increment");
    take(MOST_RECORDS);
    n = data.totalNumPcs;
    total = data.totalSamples;
    memcpy(first, records, sizeof(first));
    for (size_t i = 0; i < n; i++)
        samples[i] = samples_of(&records[i]);
    launch_with("increment", 1, gpu.others, N); /* where memory is makes no difference */
    take(MOST_RECORDS);
    CHECK(data.totalNumPcs == n && data.totalSamples == total);
    for (size_t i = 0; i < n; i++)
        CHECK(records[i].pcOffset == first[i].pcOffset && samples_of(&records[i]) == samples[i]);
    launch_with("increment", 2, gpu.values, N);
    take(MOST_RECORDS);
    CHECK(data.totalSamples != total);
    launch_with("increment", 1, gpu.values, N - 1);
    take(MOST_RECORDS);
    CHECK(data.totalSamples != total);
}

static void body_in_parts(void)
{
    size_t all;
    uint64_t total;

    open_sampling();
    launch("increment");
    take(MOST_RECORDS);
    all = data.totalNumPcs;
    total = data.totalSamples;
    launch("increment");
    take(2);
    CHECK(data.totalNumPcs == 2 && data.remainingNumPcs == all - 2 && data.totalSamples == samples_taken());
    total -= data.totalSamples;
    take(MOST_RECORDS);
    CHECK(data.totalNumPcs == all - 2 && !data.remainingNumPcs && data.totalSamples == total);
    take(MOST_RECORDS);
    CHECK(!data.totalNumPcs && !data.totalSamples);
}

static uint64_t samples_at_period(uint32_t period)
{
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD, period);
    launch("increment");
    take(MOST_RECORDS);
    return data.totalSamples;
}

static void body_period(void)
{
    CUpti_PCSamplingConfigurationInfo info = {.attributeType =
                                                  CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD};
    SAMPLING_PARAMS(CUpti_PCSamplingConfigurationInfoParams, params);
    uint64_t usual;

    open_sampling();
    params.ctx = gpu.ctx;
    params.numAttributes = 1;
    params.pPCSamplingConfigurationInfo = &info;
    CUPTI(cuptiPCSamplingGetConfigurationAttribute, &params);
    CHECK(info.attributeData.samplingPeriodData.samplingPeriod == 11);
    usual = samples_at_period(11);
    CHECK(samples_at_period(5) == 64 * usual);
    CHECK(samples_at_period(31) == 0);
    CUPTI(cuptiPCSamplingGetConfigurationAttribute, &params);
    CHECK(info.attributeData.samplingPeriodData.samplingPeriod == 31);
    info.attributeData.samplingPeriodData.samplingPeriod = 4;
    CHECK(RESULT(cuptiPCSamplingSetConfigurationAttribute, &params) && info.attributeStatus);
    info.attributeData.samplingPeriodData.samplingPeriod = 32;
    CHECK(RESULT(cuptiPCSamplingSetConfigurationAttribute, &params) && info.attributeStatus);
    info.attributeType = 99;
    CHECK(RESULT(cuptiPCSamplingSetConfigurationAttribute, &params) == CUPTI_ERROR_INVALID_PARAMETER);
}

static void body_left_over(void)
{
    uint64_t total;

    open_sampling();
    launch("increment");
    take(MOST_RECORDS);
    total = data.totalSamples;
    launch("increment");
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER,
              (uint64_t)(uintptr_t)new_data(MOST_RECORDS));
    disable_sampling();
    CHECK(data.totalSamples == total && samples_taken() == total);
    free(records[0].functionName);
    launch("increment"); /* is not sampled */
    enable_sampling();
    take(MOST_RECORDS);
    CHECK(!data.totalSamples);
}

static void body_buffer_full(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);
    uint64_t total;

    open_sampling();
    get.ctx = gpu.ctx;
    get.pcSamplingData = &data;
    launch("increment");
    take(MOST_RECORDS);
    total = data.totalSamples;
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE, 16 * (total / 2));
    launch("increment");
    for (int i = 0; i < 2; i++) {
        CHECK(RESULT(cuptiPCSamplingGetData, &get) == CUPTI_ERROR_OUT_OF_MEMORY);
        CHECK(data.hardwareBufferFull && !data.totalSamples && !data.remainingNumPcs);
    }
    disable_sampling();
    enable_sampling();
    launch("increment");
    take(MOST_RECORDS);
    CHECK(!data.hardwareBufferFull && data.totalSamples == total);
}

static void body_start_stop(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingStartParams, start);
    SAMPLING_PARAMS(CUpti_PCSamplingStopParams, stop);

    open_sampling();
    start.ctx = stop.ctx = gpu.ctx;
    CHECK(RESULT(cuptiPCSamplingStart, &start) == CUPTI_ERROR_INVALID_OPERATION); /* the control is not on */
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL, 1);
    launch("increment");
    take(MOST_RECORDS);
    CHECK(!data.totalSamples);
    CUPTI(cuptiPCSamplingStart, &start);
    launch("increment");
    CUPTI(cuptiPCSamplingStop, &stop);
    launch("increment");
    take(MOST_RECORDS);
    CHECK(data.totalSamples && data.rangeId == 1);
    CHECK(RESULT(cuptiPCSamplingStop, &stop) == CUPTI_ERROR_INVALID_OPERATION);
}

static void late_increment(void)
{
    int n = N, ms = 50;
    void *params[] = {&gpu.values, &n, &ms};
    CUfunction f;

    CUDA(cuModuleGetFunction, &f, gpu.module, "late_increment");
    CUDA(cuLaunchKernel, f, 1, 1, 1, N, 1, 1, 0, NULL, params, NULL);
}

/* Device memory of the fake is host memory. */
static int first_value(void)
{
    return *(volatile int *)(uintptr_t)gpu.values;
}

static void body_serialised(void)
{
    open_sampling();
    late_increment();
    CHECK(first_value() == 1);
    disable_sampling();
    late_increment();
    CHECK(first_value() == 1);
    CUDA(cuCtxSynchronize);
    CHECK(first_value() == 2);
}

/* A kernel that its module's cubin lacks, as any of a binary that the fake cannot read. */
static void body_unknown_code(void)
{
    open_sampling();
    CUDA(cuModuleLoadData, &gpu.module, "\177ELF of something");
    launch("increment");
    take(MOST_RECORDS);
    CHECK(!data.totalNumPcs && data.nonUsrKernelsTotalSamples && data.totalSamples == data.nonUsrKernelsTotalSamples);
}

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}

static CUpti_RangeProfiler_Object *range_profiler;

static void enable_range_profiler(void)
{
    PARAMS(CUpti_Profiler_Initialize_Params, init);
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable);

    CUPTI(cuptiProfilerInitialize, &init);
    enable.ctx = gpu.ctx;
    CUPTI(cuptiRangeProfilerEnable, &enable);
    range_profiler = enable.pRangeProfilerObject;
}

static void disable_range_profiler(void)
{
    PARAMS(CUpti_RangeProfiler_Disable_Params, disable);

    disable.pRangeProfilerObject = range_profiler;
    CUPTI(cuptiRangeProfilerDisable, &disable);
}

/* Launches the function while PC sampling is on. */
static bool recognised(const char *name)
{
    bool known;

    enable_sampling();
    launch(name);
    take(MOST_RECORDS);
    known = data.totalNumPcs;
    CHECK(data.totalSamples && !known == (data.nonUsrKernelsTotalSamples == data.totalSamples));
    disable_sampling();
    return known;
}

/* Without the range profiler, whatever was launched before. */
static void body_recognised(void)
{
    open_gpu();
    read_reasons();
    load();
    launch("increment");
    CHECK(recognised("increment"));
    launch("atomic_count");
    CHECK(recognised("atomic_count"));
}

/* Once it was enabled, what was launched before; of the rest what PC sampling, started or not, or activity sees first.
 */
static void body_recognised_beside_ranges(void)
{
    open_gpu();
    read_reasons();
    load();
    launch("increment");
    enable_range_profiler();
    disable_range_profiler();
    launch("increment");
    CHECK(recognised("increment"));
    launch("atomic_count");
    CHECK(!recognised("atomic_count"));
    CHECK(!recognised("atomic_count")); /* for ever */
    load();                             /* the same names, but other functions */
    CHECK(recognised("increment"));
    launch("increment");
    CHECK(recognised("increment"));
    load();
    enable_sampling();
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL, 1);
    launch("increment");
    disable_sampling();
    CHECK(recognised("increment"));
    CUPTI(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    launch("atomic_count");
    CUPTI(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CHECK(recognised("atomic_count"));
    load();
    enable_range_profiler();
    launch("increment");
    disable_range_profiler();
    CHECK(!recognised("increment"));
}

static void get_data_without_enable(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);

    open_gpu();
    get.ctx = gpu.ctx;
    get.pcSamplingData = new_data(MOST_RECORDS);
    RESULT(cuptiPCSamplingGetData, &get);
}

static void start_without_enable(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingStartParams, start);

    open_gpu();
    start.ctx = gpu.ctx;
    RESULT(cuptiPCSamplingStart, &start);
}

static void get_data_after_disable(void)
{
    open_sampling();
    disable_sampling();
    take(MOST_RECORDS);
}

static void sampling_enabled_twice(void)
{
    open_sampling();
    enable_sampling();
}

static void wrong_params_size(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingEnableParams, enable);

    open_gpu();
    enable.ctx = gpu.ctx;
    enable.size--;
    RESULT(cuptiPCSamplingEnable, &enable);
}

static void wrong_data_size(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);

    open_sampling();
    get.ctx = gpu.ctx;
    get.pcSamplingData = new_data(MOST_RECORDS);
    data.size = 0;
    RESULT(cuptiPCSamplingGetData, &get);
}

static void wrong_record_size(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);

    open_sampling();
    launch("increment");
    get.ctx = gpu.ctx;
    get.pcSamplingData = new_data(MOST_RECORDS);
    records[1].size = 0;
    RESULT(cuptiPCSamplingGetData, &get);
}

static void name_freed(void)
{
    open_sampling();
    launch("increment");
    take(MOST_RECORDS);
    free(records[0].functionName);
    take(MOST_RECORDS);
}

static void sampled_side_by_side(void)
{
    open_sampling();
    configure(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
    launch("increment");
}

static void sampling_context_gone(void)
{
    open_sampling();
    CUDA(cuDevicePrimaryCtxReset, 0);
    disable_sampling();
}

/* A call that fails on request; sampling is off after it all the same, and nothing else may be used. */
static void disable_fails(void)
{
    SAMPLING_PARAMS(CUpti_PCSamplingDisableParams, disable);

    setenv("FAKE_FAIL", "cuptiPCSamplingDisable:999", 1);
    open_sampling();
    disable.ctx = gpu.ctx;
    CHECK(RESULT(cuptiPCSamplingDisable, &disable) == CUPTI_ERROR_UNKNOWN);
}

static void sampling_after_failure(void)
{
    disable_fails();
    enable_sampling();
}

static void records_after_failure(void)
{
    disable_fails();
    RESULT(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

/* --- SASS metrics --- */

static CUpti_SassMetrics_MetricDetails metrics[MOST_METRICS];
static CUpti_SassMetrics_Config configs[MOST_METRICS];
static size_t n_metrics;

static CUptiResult list_metrics(void)
{
    PARAMS(CUpti_SassMetrics_GetNumOfMetrics_Params, count);
    PARAMS(CUpti_SassMetrics_GetMetrics_Params, get);
    CUptiResult result;

    count.pChipName = get.pChipName = "GH100";
    result = RESULT(cuptiSassMetricsGetNumOfMetrics, &count);
    if (result)
        return result;
    CHECK(count.numOfMetrics <= MOST_METRICS);
    get.numOfMetrics = n_metrics = count.numOfMetrics;
    get.pMetricsList = metrics;
    return RESULT(cuptiSassMetricsGetMetrics, &get);
}

static uint64_t id_of(const char *name)
{
    for (size_t i = 0; i < n_metrics; i++)
        if (!strcmp(metrics[i].pMetricName, name))
            return metrics[i].metricId;
    return 0;
}

static CUptiResult set_config(size_t n)
{
    PARAMS(CUpti_SassMetricsSetConfig_Params, set);

    for (size_t i = 0; i < n; i++)
        configs[i] = (CUpti_SassMetrics_Config){metrics[i].metricId, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU};
    set.numOfMetricConfig = n;
    set.pConfigs = configs;
    return RESULT(cuptiSassMetricsSetConfig, &set);
}

static void open_sass(void)
{
    unsetenv("KP_REAL_CUPTI");
    open_gpu();
    read_reasons();
    CUPTI(cuptiRegisterComputeCrcCallback, on_cubin);
    load();
    CHECK(!list_metrics() && !set_config(n_metrics));
}

static void enable_sass(void)
{
    PARAMS(CUpti_SassMetricsEnable_Params, enable);

    enable.ctx = gpu.ctx;
    enable.enableLazyPatching = 1;
    CUPTI(cuptiSassMetricsEnable, &enable);
}

/* Returns how many records were not flushed. */
static size_t disable_sass(void)
{
    PARAMS(CUpti_SassMetricsDisable_Params, disable);

    disable.ctx = gpu.ctx;
    CUPTI(cuptiSassMetricsDisable, &disable);
    return disable.numOfDroppedRecords;
}

static size_t n_counts(void)
{
    PARAMS(CUpti_SassMetricsGetDataProperties_Params, get);

    get.ctx = gpu.ctx;
    CUPTI(cuptiSassMetricsGetDataProperties, &get);
    CHECK(get.numOfInstances == 1);
    return get.numOfPatchedInstructionRecords;
}

static CUpti_SassMetrics_Data *counts;
static size_t n_flushed;

static CUptiResult flush_some(size_t n)
{
    CUpti_SassMetrics_InstanceValue *values = calloc(n + 1, sizeof(*values));
    PARAMS(CUpti_SassMetricsFlushData_Params, params);

    counts = calloc(n + 1, sizeof(*counts));
    CHECK(counts && values);
    for (size_t i = 0; i < n; i++)
        counts[i] = (CUpti_SassMetrics_Data){.structSize = sizeof(*counts), .pInstanceValues = &values[i]};
    params.ctx = gpu.ctx;
    params.numOfPatchedInstructionRecords = n_flushed = n;
    params.numOfInstances = 1;
    params.pMetricsData = counts;
    return RESULT(cuptiSassMetricsFlushData, &params);
}

static void flush_all(void)
{
    CHECK(flush_some(n_counts()) == CUPTI_SUCCESS);
}

/* Of an instruction; -1: there is no record. */
static int64_t count_at(const char *metric, const char *function, uint32_t offset)
{
    uint64_t id = id_of(metric);

    CHECK(id);
    for (size_t i = 0; i < n_flushed; i++)
        if (counts[i].pInstanceValues->metricId == id && counts[i].pcOffset == offset &&
            !strcmp(counts[i].functionName, function))
            return (int64_t)counts[i].pInstanceValues->value;
    return -1;
}

/* Where the first instruction of that operation is in `increment`. */
static uint32_t offset_of(uint16_t code)
{
    const Elf64_Shdr *text = section(".text.increment");

    for (uint32_t i = 0; i < text->sh_size; i += 16) {
        uint16_t low;

        memcpy(&low, seen.image + text->sh_offset + i, sizeof(low));
        if ((low & 0xfff) == code)
            return i;
    }
    CHECK(false);
    return 0;
}

static void body_own_list(void)
{
    PARAMS(CUpti_SassMetrics_GetProperties_Params, get);

    unsetenv("KP_REAL_CUPTI");
    open_gpu();
    CHECK(!list_metrics() && n_metrics == 60);
    get.pChipName = "GH100";
    get.pMetricName = "smsp__sass_thread_inst_executed_pred_on";
    CUPTI(cuptiSassMetricsGetProperties, &get);
    CHECK(get.metric.metricId == id_of(get.pMetricName) && get.metric.metricId);
    get.pMetricName = "smsp__sass_nothing";
    CHECK(RESULT(cuptiSassMetricsGetProperties, &get) == CUPTI_ERROR_INVALID_METRIC_NAME);
}

/* The own list has the names of the real one, in its order. */
static void body_real_list(void)
{
    static char names[MOST_METRICS][128];
    PARAMS(CUpti_Profiler_Host_Initialize_Params, init);
    const char *folder = getenv("KP_REAL_CUPTI");
    char kept[4096];
    size_t n;

    if (!folder || !*folder)
        _exit(SKIPPED);
    snprintf(kept, sizeof(kept), "%s", folder);
    unsetenv("KP_REAL_CUPTI");
    open_gpu();
    CHECK(!list_metrics());
    n = n_metrics;
    for (size_t i = 0; i < n; i++)
        snprintf(names[i], sizeof(names[i]), "%s", metrics[i].pMetricName);
    setenv("KP_REAL_CUPTI", kept, 1);
    CHECK(list_metrics() == CUPTI_ERROR_NOT_INITIALIZED);
    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = "GH100";
    CUPTI(cuptiProfilerHostInitialize, &init);
    CHECK(!list_metrics() && n_metrics == n);
    for (size_t i = 0; i < n; i++)
        CHECK(!strcmp(names[i], metrics[i].pMetricName));
    load();
    CHECK(!set_config(n)); /* by the real numbers */
    enable_sass();
    launch("increment");
    flush_all();
    CHECK(count_at("smsp__sass_inst_executed", "increment", 0) == WARPS);
}

static void body_configured_once(void)
{
    PARAMS(CUpti_SassMetricsUnsetConfig_Params, unset);
    PARAMS(CUpti_SassMetricsEnable_Params, enable);

    open_sass();
    CHECK(set_config(1) == CUPTI_ERROR_INVALID_OPERATION);
    CUPTI(cuptiSassMetricsUnsetConfig, &unset);
    CHECK(RESULT(cuptiSassMetricsUnsetConfig, &unset) == CUPTI_ERROR_INVALID_OPERATION);
    CHECK(set_config(1) == CUPTI_ERROR_OUT_OF_MEMORY);
    enable.ctx = gpu.ctx;
    CHECK(RESULT(cuptiSassMetricsEnable, &enable) == CUPTI_ERROR_INVALID_OPERATION);
}

/* The real library frees memory of the context at exit. */
static void exit_after_context(void)
{
    open_sass();
    CUDA(cuDevicePrimaryCtxReset, 0);
    exit(0);
}

static void body_unset_before_context(void)
{
    PARAMS(CUpti_SassMetricsUnsetConfig_Params, unset);

    open_sass();
    CUPTI(cuptiSassMetricsUnsetConfig, &unset);
    CUDA(cuDevicePrimaryCtxReset, 0);
    exit(RIGHT);
}

static void body_wrong_config(void)
{
    PARAMS(CUpti_SassMetricsSetConfig_Params, set);

    unsetenv("KP_REAL_CUPTI");
    open_gpu();
    CHECK(!list_metrics());
    set.pConfigs = configs;
    CHECK(RESULT(cuptiSassMetricsSetConfig, &set) == CUPTI_ERROR_INVALID_PARAMETER);
    set.numOfMetricConfig = 1;
    CHECK(RESULT(cuptiSassMetricsSetConfig, &set) == CUPTI_ERROR_INVALID_PARAMETER); /* no metric has the number 0 */
    configs[0].metricId = metrics[0].metricId;
    set.deviceIndex = 1;
    CHECK(RESULT(cuptiSassMetricsSetConfig, &set) == CUPTI_ERROR_INVALID_PARAMETER);
    set.deviceIndex = 0;
    CUPTI(cuptiSassMetricsSetConfig, &set);
}

static void body_counts(void)
{
    uint32_t load_at, store_at, fma_at, branch_at;

    open_sass();
    load_at = offset_of(0x981), store_at = offset_of(0x986), fma_at = offset_of(0x223), branch_at = offset_of(0x947);
    enable_sass();
    CHECK(!n_counts());
    launch_with("increment", 3, gpu.values, N);
    flush_all();
    for (size_t i = 0; i < n_flushed; i++)
        CHECK(counts[i].cubinCrc == OWN_CRC + 1 && !counts[i].functionIndex &&
              !strcmp(counts[i].functionName, "increment"));
    CHECK(count_at("smsp__sass_inst_executed", "increment", 0) == 3 * WARPS);
    CHECK(count_at("smsp__sass_inst_executed", "increment", fma_at) == 3 * WARPS);
    CHECK(count_at("smsp__sass_thread_inst_executed", "increment", fma_at) == 3 * N);
    CHECK(count_at("smsp__sass_thread_inst_executed_pred_on", "increment", fma_at) == 3 * N);
    CHECK(count_at("smsp__sass_thread_inst_executed_pred_on", "increment", branch_at) == 3 * N / 2);
    CHECK(count_at("smsp__sass_branch_targets_threads_divergent", "increment", branch_at) == 3 * WARPS);
    CHECK(count_at("smsp__sass_inst_executed_op_global_ld", "increment", load_at) == 3 * WARPS);
    CHECK(count_at("smsp__sass_sectors_mem_global", "increment", load_at) == 2 * 3 * WARPS * 4);
    CHECK(count_at("smsp__sass_sectors_mem_global_ideal", "increment", load_at) == 3 * WARPS * 4);
    CHECK(count_at("smsp__sass_sectors_mem_global", "increment", store_at) == 3 * WARPS * 4);
    /* what an instruction cannot do has no record */
    CHECK(count_at("smsp__sass_inst_executed_op_global_ld", "increment", store_at) == -1);
    CHECK(count_at("smsp__sass_sectors_mem_global", "increment", fma_at) == -1);
    CHECK(count_at("smsp__sass_inst_executed_op_shared", "increment", load_at) == -1);
    CHECK(count_at("smsp__sass_inst_executed_op_tma", "increment", load_at) == -1);
}

static void body_shared_counts(void)
{
    static const char name[] = "_ZN5tests9incrementIiLi4EEEvPT_i";
    int64_t wavefronts = 0, ideal = 0, reads = 0;

    open_sass();
    enable_sass();
    launch(name);
    flush_all();
    for (uint32_t at = 0; at < section(".text._ZN5tests9incrementIiLi4EEEvPT_i")->sh_size; at += 16) {
        if (count_at("smsp__sass_inst_executed_op_shared", name, at) < 0)
            continue;
        wavefronts += count_at("smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared", name, at);
        ideal += count_at("smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal", name, at);
        reads += count_at("smsp__sass_inst_executed_op_shared_ld", name, at) == WARPS;
    }
    CHECK(ideal == 2 * WARPS && wavefronts == (4 + 1) * WARPS && reads == 1);
}

static void body_accumulated(void)
{
    size_t n;

    open_sass();
    launch("increment"); /* before Enable: not counted */
    enable_sass();
    CHECK(flush_some(0) == CUPTI_ERROR_INVALID_PARAMETER);
    launch("increment");
    n = n_counts();
    launch("increment");
    CHECK(n && n_counts() == n);
    flush_all();
    CHECK(count_at("smsp__sass_inst_executed", "increment", 0) == 2 * WARPS);
    CHECK(!n_counts());
    launch("increment"); /* after a flush: not counted */
    CHECK(!n_counts());
    CHECK(!disable_sass());
    launch("increment");
    enable_sass();
    launch("increment");
    CHECK(flush_some(n + 1) == CUPTI_ERROR_INVALID_PARAMETER);
    CHECK(disable_sass() == n); /* lost */
    enable_sass();
    launch("increment");
    flush_all();
    CHECK(count_at("smsp__sass_inst_executed", "increment", 0) == WARPS);
}

static size_t counts_of_two(void)
{
    enable_sass();
    launch("increment");
    launch("atomic_count");
    launch("increment");
    flush_all();
    disable_sass();
    return (count_at("smsp__sass_inst_executed", "increment", 0) == 2 * WARPS) +
           (count_at("smsp__sass_inst_executed", "atomic_count", 0) == WARPS);
}

/* Other functions than the first are counted only where another feature of CUPTI has been on. */
static void body_first_only(void)
{
    open_sass();
    CHECK(counts_of_two() == 1);
    enable_sampling();
    disable_sampling();
    CHECK(counts_of_two() == 2);
}

static void body_range_profiler_on(void)
{
    open_sass();
    enable_range_profiler();
    disable_range_profiler();
    CHECK(counts_of_two() == 2);
}

/* What was patched before it was sampled is never recognised; what was sampled before stays known. */
static void body_patched_first(void)
{
    open_sass();
    CHECK(recognised("atomic_count"));
    CHECK(counts_of_two() == 2);
    CHECK(!recognised("increment"));
    CHECK(!recognised("increment"));
    CHECK(recognised("atomic_count"));
}

static void sass_enabled_twice(void)
{
    open_sass();
    enable_sass();
    enable_sass();
}

static void sass_properties_without_enable(void)
{
    open_sass();
    n_counts();
}

static void sass_disabled_twice(void)
{
    open_sass();
    enable_sass();
    disable_sass();
    disable_sass();
}

static void sass_wrong_record_size(void)
{
    CUpti_SassMetrics_InstanceValue value;
    CUpti_SassMetrics_Data record = {.pInstanceValues = &value};
    PARAMS(CUpti_SassMetricsFlushData_Params, params);

    open_sass();
    enable_sass();
    launch("increment");
    params.ctx = gpu.ctx;
    params.numOfPatchedInstructionRecords = params.numOfInstances = 1;
    params.pMetricsData = &record;
    RESULT(cuptiSassMetricsFlushData, &params);
}

static void sass_context_gone(void)
{
    open_sass();
    enable_sass();
    CUDA(cuDevicePrimaryCtxReset, 0);
    disable_sass();
}

static void body_sass_disable_fails(void)
{
    PARAMS(CUpti_SassMetricsDisable_Params, disable);

    setenv("FAKE_FAIL", "cuptiSassMetricsDisable:999:1", 1);
    open_sass();
    enable_sass();
    disable.ctx = gpu.ctx;
    CHECK(RESULT(cuptiSassMetricsDisable, &disable) == CUPTI_ERROR_UNKNOWN);
    enable_sass();
    disable_sass();
}

/* TSan's allocator leaves what is freed as it was, so the fake cannot tell there. */
#ifdef __SANITIZE_THREAD__
#define NAME_FREED_EXIT 0
#define GONE_AT_EXIT    0 /* exit handlers are left out, see tests/shim/nodeepbind.c */
#else
#define NAME_FREED_EXIT FAKE_MISUSE_EXIT
#define GONE_AT_EXIT    FAKE_MISUSE_EXIT
#endif

static const struct kp_test_case cases[] = {
    {"cubins of modules", body_cubins, RIGHT},
    {"the form of a cubin", body_cubin_format, RIGHT},
    {"lines of a cubin", body_cubin_lines, RIGHT},
    {"cubins that are given", body_cubin_given, RIGHT},
    {"CRC of an image", body_crc, RIGHT},
    {"stall reasons", body_reasons, RIGHT},
    {"records of samples", body_records, RIGHT},
    {"a launch again", body_again, RIGHT},
    {"records taken in parts", body_in_parts, RIGHT},
    {"the sampling period", body_period, RIGHT},
    {"records left when sampling ends", body_left_over, RIGHT},
    {"a buffer that is too small", body_buffer_full, RIGHT},
    {"sampling between Start and Stop", body_start_stop, RIGHT},
    {"sampled kernels run one at a time", body_serialised, RIGHT},
    {"samples of unknown code", body_unknown_code, RIGHT},
    {"functions that are recognised", body_recognised, RIGHT},
    {"functions that are recognised beside a range profiler", body_recognised_beside_ranges, RIGHT},
    {"PC sampling that cannot be disabled", disable_fails, RIGHT},
    {"sampling after that", sampling_after_failure, FAKE_MISUSE_EXIT},
    {"activity records after that", records_after_failure, FAKE_MISUSE_EXIT},
    {"GetData without Enable", get_data_without_enable, FAKE_MISUSE_EXIT},
    {"Start without Enable", start_without_enable, FAKE_MISUSE_EXIT},
    {"GetData after Disable", get_data_after_disable, FAKE_MISUSE_EXIT},
    {"PC sampling enabled twice", sampling_enabled_twice, FAKE_MISUSE_EXIT},
    {"parameters of a wrong size", wrong_params_size, FAKE_MISUSE_EXIT},
    {"a data buffer of a wrong size", wrong_data_size, FAKE_MISUSE_EXIT},
    {"a record of a wrong size", wrong_record_size, FAKE_MISUSE_EXIT},
    {"a function name freed too early", name_freed, NAME_FREED_EXIT},
    {"kernels sampled side by side", sampled_side_by_side, FAKE_MISUSE_EXIT},
    {"Disable after the context's end", sampling_context_gone, FAKE_MISUSE_EXIT},
    {"the fake's list of SASS metrics", body_own_list, RIGHT},
    {"the real list of SASS metrics", body_real_list, RIGHT},
    {"a configuration in a process", body_configured_once, RIGHT},
    {"an exit after the configuration's context", exit_after_context, GONE_AT_EXIT},
    {"an exit without a configuration", body_unset_before_context, RIGHT},
    {"configurations that are refused", body_wrong_config, RIGHT},
    {"counts of instructions", body_counts, RIGHT},
    {"counts of shared memory", body_shared_counts, RIGHT},
    {"counts of several launches", body_accumulated, RIGHT},
    {"counts of the first function only", body_first_only, RIGHT},
    {"counts beside a range profiler", body_range_profiler_on, RIGHT},
    {"code patched before it is sampled", body_patched_first, RIGHT},
    {"SASS metrics that cannot be disabled", body_sass_disable_fails, RIGHT},
    {"SASS metrics enabled twice", sass_enabled_twice, FAKE_MISUSE_EXIT},
    {"GetDataProperties without Enable", sass_properties_without_enable, FAKE_MISUSE_EXIT},
    {"SASS metrics disabled twice", sass_disabled_twice, FAKE_MISUSE_EXIT},
    {"a SASS record of a wrong size", sass_wrong_record_size, FAKE_MISUSE_EXIT},
    {"SASS metrics after the context's end", sass_context_gone, FAKE_MISUSE_EXIT},
};

int main(void)
{
    struct CMUnitTest tests[sizeof(cases) / sizeof(cases[0])];

    kp_test_cases(tests, cases, sizeof(cases) / sizeof(cases[0]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
