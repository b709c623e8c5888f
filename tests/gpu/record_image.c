/*
 * Records counter data on a GPU, for the test that evaluates it without one (tests/test_cupti_recorded.c):
 *   make build/tests/gpu/record_image && build/tests/gpu/record_image tests/data [FOLDER_OF_LIBCUPTI]
 *
 * Profiles a window of two launches of y[i] = a * x[i] + y[i] with the counters of the basic set, and some whose values
 * follow from the kernel, in the library's own way: plan, checkpoint, passes, flush. Writes axpy.image.gz, the decoded
 * counter data, and axpy.txt, the values evaluated on this machine and what they must be.
 */
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/flush.h"
#include "collectors/plan.h"
#include "collectors/replay.h"
#include "cupti/target.h"
#include "preload/elf.h"

enum { RANGES = 2, THREADS = 256, ELEMENTS = 1 << 18 };

/* The second launch takes half of the elements, so that the ranges can be told apart. */
static const unsigned blocks[RANGES] = {ELEMENTS / THREADS, ELEMENTS / THREADS / 2};

static const float factor = 2;

/* No bounds check: every warp executes every instruction once, so instruction counts follow from the code. */
static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
                          ".visible .entry axpy(.param .u64 px, .param .u64 py, .param .f32 pa)\n{\n"
                          ".reg .f32 %f<5>;\n.reg .b32 %r<5>;\n.reg .b64 %d<6>;\n"
                          "ld.param.u64 %d1, [px];\nld.param.u64 %d2, [py];\nld.param.f32 %f1, [pa];\n"
                          "cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\n"
                          "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
                          "mad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %d3, %r4, 4;\n"
                          "add.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\n"
                          "ld.global.f32 %f2, [%d4];\nld.global.f32 %f3, [%d5];\n"
                          "fma.rn.f32 %f4, %f1, %f2, %f3;\nst.global.f32 [%d5], %f4;\nret;\n}\n";

static const char counted[] = "smsp__inst_executed.sum,smsp__thread_inst_executed.sum,smsp__warps_launched.sum,"
                              "smsp__thread_inst_executed_per_inst_executed.ratio,"
                              "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,"
                              "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,"
                              "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,"
                              "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";

static void *library;

static void *find(const char *symbol)
{
    return dlsym(library, symbol);
}

/* Driver functions that the library itself does not call. */
static struct {
    PFN_cuInit_v2000 init;
    PFN_cuDevicePrimaryCtxRetain_v7000 retain;
    PFN_cuCtxSetCurrent_v4000 set_current;
    PFN_cuMemcpyHtoD_v3020 to_device;
    PFN_cuMemcpyDtoH_v3020 to_host;
    PFN_cuLinkCreate_v6050 link_create;
    PFN_cuLinkAddData_v6050 link_add;
    PFN_cuLinkComplete_v5050 link_complete;
} cu;

static struct {
    struct kp_driver driver;
    struct kp_device device;
    struct kp_cupti *cupti;
    CUcontext ctx;
    CUfunction kernel;
    CUdeviceptr x, y;
    size_t instructions; /* that each warp executes */
    const char *chip;
    uint8_t *availability;
    struct kp_plan *plan;
    struct kp_flush *flush;
    struct kp_checkpoint *saved;
    struct kp_range *range;
    struct kp_image *image;
} g;

static void must(int rc, const char *what)
{
    if (!rc)
        return;
    fprintf(stderr, "record_image: %s: %d\n", what, rc);
    exit(1);
}

static void must_cupti(int rc, const char *what)
{
    if (!rc)
        return;
    char *why = kp_cupti_explain(g.cupti, what, rc);
    fprintf(stderr, "record_image: %s\n", why ? why : what);
    exit(1);
}

static void open_driver(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    must(!library, "no libcuda.so.1");
    *(void **)&cu.init = find("cuInit");
    *(void **)&cu.retain = find("cuDevicePrimaryCtxRetain");
    *(void **)&cu.set_current = find("cuCtxSetCurrent");
    *(void **)&cu.to_device = find("cuMemcpyHtoD_v2");
    *(void **)&cu.to_host = find("cuMemcpyDtoH_v2");
    *(void **)&cu.link_create = find("cuLinkCreate_v2");
    *(void **)&cu.link_add = find("cuLinkAddData_v2");
    *(void **)&cu.link_complete = find("cuLinkComplete");
    const char *missing = kp_driver_fill(&g.driver, find);
    must(missing != NULL, missing ? missing : "");
    must(cu.init(0), "cuInit");
    must(cu.retain(&g.ctx, 0), "cuDevicePrimaryCtxRetain");
    must(cu.set_current(g.ctx), "cuCtxSetCurrent");
    must(kp_device_read(&g.driver, 0, &g.device), "device attributes");
}

/* Instructions before and with EXIT in the code of the kernel: 16 byte each, EXIT has 0x94d in its lowest 12 bits, on
 * every compute capability from 7.0 on (seen in the output of ptxas for 7.5 to 12.0). */
static size_t count_instructions(const unsigned char *cubin)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)cubin;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(cubin + header->e_shoff);
    const char *strings = (const char *)cubin + sections[header->e_shstrndx].sh_offset;
    for (size_t s = 0; s < header->e_shnum; s++) {
        if (strcmp(strings + sections[s].sh_name, ".text.axpy"))
            continue;
        const uint64_t *words = (const uint64_t *)(cubin + sections[s].sh_offset);
        for (size_t i = 0; i < sections[s].sh_size / 16; i++)
            if ((words[2 * i] & 0xfff) == 0x94d)
                return i + 1;
    }
    return 0;
}

static void load_kernel(void)
{
    CUlinkState link;
    CUmodule module;
    void *cubin;
    size_t size;
    must(cu.link_create(0, NULL, NULL, &link), "cuLinkCreate");
    must(cu.link_add(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, sizeof(ptx), "axpy", 0, NULL, NULL),
         "cuLinkAddData");
    must(cu.link_complete(link, &cubin, &size), "cuLinkComplete");
    g.instructions = count_instructions(cubin);
    must(!g.instructions, "no code found in the cubin");
    must(g.driver.cuModuleLoadData(&module, cubin), "cuModuleLoadData");
    must(g.driver.cuModuleGetFunction(&g.kernel, module, "axpy"), "cuModuleGetFunction");
}

/* Small whole numbers and halves: every result is exact. */
static float x_at(size_t i)
{
    return (float)(i % 1000) * 0.5f;
}

static float y_at(size_t i)
{
    return (float)(i % 77);
}

static void fill_memory(void)
{
    float *host = malloc(ELEMENTS * sizeof(*host));
    must(!host, "no memory");
    must(g.driver.cuMemAlloc(&g.x, ELEMENTS * sizeof(*host)), "cuMemAlloc");
    must(g.driver.cuMemAlloc(&g.y, ELEMENTS * sizeof(*host)), "cuMemAlloc");
    for (size_t i = 0; i < ELEMENTS; i++)
        host[i] = x_at(i);
    must(cu.to_device(g.x, host, ELEMENTS * sizeof(*host)), "cuMemcpyHtoD");
    for (size_t i = 0; i < ELEMENTS; i++)
        host[i] = y_at(i);
    must(cu.to_device(g.y, host, ELEMENTS * sizeof(*host)), "cuMemcpyHtoD");
    free(host);
}

/* The window has been executed once, however many passes there were. */
static void check_memory(void)
{
    float *host = malloc(ELEMENTS * sizeof(*host));
    size_t wrong = 0;
    must(!host, "no memory");
    must(cu.to_host(host, g.y, ELEMENTS * sizeof(*host)), "cuMemcpyDtoH");
    for (size_t i = 0; i < ELEMENTS; i++) {
        float expected = y_at(i);
        for (int r = 0; r < RANGES; r++)
            if (i < (size_t)blocks[r] * THREADS)
                expected += factor * x_at(i);
        wrong += host[i] != expected;
    }
    free(host);
    must(wrong != 0, "memory is not what one execution leaves");
}

/* ---- the operations of the replay loop ---- */

static CUresult launch_all(void)
{
    float a = factor;
    void *params[] = {&g.x, &g.y, &a};
    for (int r = 0; r < RANGES; r++) {
        CUresult rc = g.driver.cuLaunchKernel(g.kernel, blocks[r], 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
        if (rc != CUDA_SUCCESS)
            return rc;
    }
    return g.driver.cuCtxSynchronize();
}

static int op_restore(void *arg)
{
    (void)arg;
    return kp_checkpoint_restore(g.saved);
}

static int op_begin(void *arg, size_t group)
{
    (void)arg;
    (void)group;
    return kp_range_begin(g.range, KP_RANGE_AUTO, g.image);
}

/* Cold caches for the first launch; a flush between the launches could itself be a range. */
static int op_start(void *arg)
{
    (void)arg;
    int rc = (int)kp_flush_run(g.flush, CU_STREAM_LEGACY);
    if (!rc)
        rc = (int)g.driver.cuCtxSynchronize();
    return rc ? rc : kp_range_start(g.range);
}

static int op_issue(void *arg)
{
    (void)arg;
    return (int)launch_all();
}

static int op_stop(void *arg, bool *last)
{
    (void)arg;
    return kp_range_stop(g.range, last);
}

static int op_decode(void *arg, size_t group)
{
    size_t ranges = 0, dropped = 0;
    (void)arg;
    (void)group;
    int rc = kp_range_decode(g.range, &ranges, &dropped);
    return rc ? rc : ranges != RANGES || dropped ? -1 : 0;
}

static void profile(void)
{
    static const struct kp_replay_ops ops = {.restore = op_restore,
                                             .begin = op_begin,
                                             .start = op_start,
                                             .issue = op_issue,
                                             .stop = op_stop,
                                             .decode = op_decode,
                                             .plain = op_issue};
    struct kp_replay_request request = {.passes = &g.plan->groups[0].passes, .groups = 1};
    struct kp_replay_outcome out;
    must(kp_flush_open(&g.driver, &g.device, &g.flush), "flush");
    must_cupti(kp_range_open(g.cupti, g.ctx, &g.range), "range profiler");
    must_cupti(kp_image_make(g.range, &g.plan->groups[0], RANGES, &g.image), "counter data");
    must_cupti(kp_checkpoint_save(g.cupti, g.ctx, &g.saved), "save");
    must(launch_all(), "launch");
    kp_replay_run(&ops, NULL, &request, &out);
    if (out.failed)
        fprintf(stderr, "record_image: stage %d of replay.h failed\n", out.failed);
    must_cupti(out.failed ? out.code : 0, "replay");
    kp_checkpoint_free(g.saved);
    printf("%zu passes\n", out.passes);
}

static void open_cupti(const char *folder)
{
    static const struct kp_dl dl = {.open = dlopen, .sym = dlsym, .directory_of = kp_elf_directory_of};
    const struct kp_section **sections;
    size_t n, size;
    char *err = NULL;
    int rc = kp_cupti_load(&dl, folder, NULL, &g.cupti, &err);
    must(rc, err ? err : "libcupti");
    must_cupti(kp_target_init(g.cupti), "cuptiProfilerInitialize");
    must_cupti(kp_target_chip(g.cupti, 0, &g.chip), "chip name");
    must_cupti(kp_target_availability(g.cupti, g.ctx, &g.availability, &size), "counter availability");
    must(kp_sections_select("basic", "", &sections, &n, &err), "sections");
    rc = kp_plan_make(g.cupti, g.chip, g.availability, g.device.cc_major, g.device.cc_minor, sections, n, counted,
                      false, &g.plan, &err);
    must(rc, err ? err : "plan");
    must(g.plan->n_groups != 1, "the counters do not fit into one list");
    free(sections);
}

/* ---- what is written ---- */

static FILE *create(const char *folder, const char *name, bool compressed)
{
    char path[4096], command[4200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(command, sizeof(command), "gzip -9n > '%s'", path);
    FILE *f = compressed ? popen(command, "w") : fopen(path, "w");
    must(!f, path);
    return f;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The test has no availability image: evaluation must not need one. */
static void evaluate(const uint8_t *image, size_t size, size_t range, double *values)
{
    const struct kp_config *c = &g.plan->groups[0];
    const uint8_t *availability[] = {NULL, g.availability};
    double *without = calloc(c->n_names, sizeof(*without));
    must(!without, "no memory");
    for (int i = 0; i < 2; i++) {
        struct kp_host *h = NULL;
        must_cupti(kp_host_open(g.cupti, g.chip, availability[i], &h), "host");
        must_cupti(kp_host_evaluate(h, image, size, range, c->names, c->n_names, i ? values : without), "evaluate");
        kp_host_close(h);
    }
    for (size_t i = 0; i < c->n_names; i++)
        must(!same(values[i], without[i]), c->names[i]);
    free(without);
}

static void write_all(const char *folder)
{
    const struct kp_config *c = &g.plan->groups[0];
    const uint8_t *image;
    size_t size;
    int driver = 0;
    double *values = calloc(c->n_names, sizeof(*values));
    must(!values, "no memory");
    kp_image_data(g.image, &image, &size);
    FILE *out = create(folder, "axpy.image.gz", true);
    must(fwrite(image, 1, size, out) != size, "axpy.image.gz");
    must(pclose(out), "gzip");
    out = create(folder, "axpy.txt", false);
    g.driver.cuDriverGetVersion(&driver);
    fprintf(out,
            "# Written by tests/gpu/record_image.c: y[i] = a * x[i] + y[i], values of axpy.image.gz as evaluated\n");
    fprintf(out, "# device %s, driver %d, CUPTI %s\n", g.device.name, driver, kp_cupti_version(g.cupti));
    fprintf(out, "chip\t%s\nimage\t%zu\ninstructions\t%zu\n", g.chip, size, g.instructions);
    for (size_t r = 0; r < RANGES; r++) {
        evaluate(image, size, r, values);
        fprintf(out, "range\t%u\t%d\n", blocks[r], THREADS);
        for (size_t i = 0; i < c->n_names; i++)
            fprintf(out, "%s\t%.17g\n", c->names[i], values[i]);
    }
    must(fclose(out), "axpy.txt");
    free(values);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: record_image OUTPUT_FOLDER [FOLDER_OF_LIBCUPTI]\n");
        return 2;
    }
    open_driver();
    open_cupti(argc > 2 ? argv[2] : NULL);
    load_kernel();
    fill_memory();
    profile();
    check_memory();
    write_all(argv[1]);
    kp_image_free(g.image);
    kp_range_close(g.range);
    kp_flush_close(g.flush, true);
    kp_plan_free(g.plan);
    kp_cupti_free(g.cupti);
    free(g.availability);
    return 0;
}
