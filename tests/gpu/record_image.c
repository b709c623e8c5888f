/*
 * Records counter data on a GPU, for the test that evaluates it without one (tests/unit/cupti/test_cupti_recorded.c):
 *   make build/tests/gpu/record_image && build/tests/gpu/record_image tests/data [FOLDER_OF_LIBCUPTI]
 *
 * Profiles a window of two launches of y[i] = a * x[i] + y[i]: the counters of the full set, and some whose values
 * follow from the kernel. Goes the library's own way: plan, checkpoint, passes, flush. Writes axpy.N.image.gz, the
 * decoded counter data of the plan's group N, and axpy.txt, the values evaluated on this machine.
 */
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/plan/plan.h"
#include "collectors/replay/flush.h"
#include "collectors/replay/replay.h"
#include "cupti/target.h"
#include "preload/os/elf.h"

enum { RANGES = 2, THREADS = 256, ELEMENTS = 1 << 18 };

/* The second launch takes half of the elements, so that the ranges can be told apart. */
static const unsigned blocks[RANGES] = {ELEMENTS / THREADS, ELEMENTS / THREADS / 2};

static const float factor = 2;

/* No bounds check: every warp executes every instruction once, so instruction counts follow from the code. The result
 * is computed twice, in single and in double precision, whose mean goes through shared memory: all are exact. */
static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
                          ".visible .entry axpy(.param .u64 px, .param .u64 py, .param .f32 pa)\n{\n"
                          ".reg .f32 %f<9>;\n.reg .f64 %g<5>;\n.reg .b32 %r<7>;\n.reg .b64 %d<6>;\n"
                          ".shared .align 4 .b8 buffer[1024];\n"
                          "ld.param.u64 %d1, [px];\nld.param.u64 %d2, [py];\nld.param.f32 %f1, [pa];\n"
                          "cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\n"
                          "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
                          "mad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %d3, %r4, 4;\n"
                          "add.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\n"
                          "ld.global.f32 %f2, [%d4];\nld.global.f32 %f3, [%d5];\n"
                          "fma.rn.f32 %f4, %f1, %f2, %f3;\n"
                          "cvt.f64.f32 %g1, %f1;\ncvt.f64.f32 %g2, %f2;\ncvt.f64.f32 %g3, %f3;\n"
                          "fma.rn.f64 %g4, %g1, %g2, %g3;\ncvt.rn.f32.f64 %f5, %g4;\n"
                          "add.rn.f32 %f6, %f4, %f5;\nmul.rn.f32 %f7, %f6, 0f3F000000;\n"
                          "mov.u32 %r5, buffer;\nshl.b32 %r6, %r3, 2;\nadd.u32 %r5, %r5, %r6;\n"
                          "st.volatile.shared.f32 [%r5], %f7;\nbar.sync 0;\nld.volatile.shared.f32 %f8, [%r5];\n"
                          "st.global.f32 [%d5], %f8;\nret;\n}\n";

static const char counted[] = "smsp__inst_executed.sum,smsp__thread_inst_executed.sum,smsp__warps_launched.sum,"
                              "smsp__thread_inst_executed_per_inst_executed.ratio,"
                              "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,"
                              "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,"
                              "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,"
                              "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,"
                              "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,"
                              "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,"
                              "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum,"
                              "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";

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
    struct kp_image **images; /* of each group */
    size_t group;             /* under way */
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

/* Returns how many instructions the kernel's code has up to EXIT. Each has 16 byte, and EXIT has 0x94d in its lowest 12
 * bits, on every compute capability from 7.0 on (seen in the output of ptxas for 7.5 to 12.0). */
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
    return kp_range_begin(g.range, KP_RANGE_AUTO, g.images[g.group]);
}

/* Cold caches for the first launch; a flush between the launches could itself be a range. */
static int op_start(void *arg)
{
    (void)arg;
    int rc = (int)kp_flush_run(g.flush, CU_STREAM_LEGACY, KP_FLUSH_FILL);
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

/* The profiler is enabled anew for each list: one that has run the passes of one never ends those of the next. */
static size_t profile_group(void)
{
    static const struct kp_replay_ops ops = {.restore = op_restore,
                                             .begin = op_begin,
                                             .start = op_start,
                                             .issue = op_issue,
                                             .stop = op_stop,
                                             .decode = op_decode,
                                             .plain = op_issue};
    const struct kp_config *config = &g.plan->groups[g.group];
    struct kp_replay_request request = {.passes = &config->passes, .groups = 1};
    struct kp_replay_outcome out;
    must_cupti(kp_range_open(g.cupti, g.ctx, &g.range), "range profiler");
    must_cupti(kp_image_make(g.range, config, RANGES, &g.images[g.group]), "counter data");
    kp_passes_run(&ops, NULL, &request, &out);
    if (out.failed)
        fprintf(stderr, "record_image: group %zu: stage %d of replay.h failed\n", g.group, out.failed);
    must_cupti(out.failed ? out.code : 0, "replay");
    kp_range_close(g.range);
    return out.passes;
}

static void profile(void)
{
    size_t passes = 0;
    must(kp_flush_open(&g.driver, &g.device, &g.flush), "flush");
    g.images = calloc(g.plan->n_groups, sizeof(struct kp_image *));
    must(!g.images, "no memory");
    must_cupti(kp_checkpoint_save(g.cupti, g.ctx, &g.saved), "save");
    must(launch_all(), "launch");
    for (g.group = 0; g.group < g.plan->n_groups; g.group++)
        passes += profile_group();
    kp_checkpoint_free(g.saved);
    printf("%zu groups, %zu passes\n", g.plan->n_groups, passes);
}

static void open_cupti(const char *folder)
{
    static const struct kp_dl dl = {.open = dlopen, .sym = dlsym, .directory_of = kp_elf_directory_of};
    const struct kp_section **sections;
    size_t n, size;
    char *err = NULL;
    int rc = kp_cupti_load(&dl, folder, NULL, &g.cupti, &err);
    must(rc, err ? err : "libcupti");
    must_cupti(kp_cupti_target_init(g.cupti), "cuptiProfilerInitialize");
    must_cupti(kp_cupti_target_chip(g.cupti, 0, &g.chip), "chip name");
    must_cupti(kp_cupti_target_availability(g.cupti, g.ctx, &g.availability, &size), "counter availability");
    must(kp_sections_select("full", "", &sections, &n, &err), "sections");
    rc = kp_plan_make(g.cupti, g.chip, g.availability, g.device.cc_major, g.device.cc_minor, sections, n, counted,
                      KP_PLAN_RULES, &g.plan, &err);
    must(rc, err ? err : "plan");
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
static void evaluate(size_t group, size_t range, double *values)
{
    const struct kp_config *c = &g.plan->groups[group];
    const uint8_t *availability[] = {NULL, g.availability}, *image;
    size_t size;
    double *without = calloc(c->n_names, sizeof(*without));
    must(!without, "no memory");
    kp_image_data(g.images[group], &image, &size);
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

static void write_group(const char *folder, size_t group, FILE *text)
{
    const struct kp_config *c = &g.plan->groups[group];
    const uint8_t *image;
    size_t size;
    char name[64];
    double *values = calloc(c->n_names, sizeof(*values));
    must(!values, "no memory");
    kp_image_data(g.images[group], &image, &size);
    snprintf(name, sizeof(name), "axpy.%zu.image.gz", group);
    FILE *out = create(folder, name, true);
    must(fwrite(image, 1, size, out) != size, name);
    must(pclose(out), "gzip");
    fprintf(text, "image\t%zu\n", size);
    for (size_t r = 0; r < RANGES; r++) {
        evaluate(group, r, values);
        fprintf(text, "range\t%u\t%d\n", blocks[r], THREADS);
        for (size_t i = 0; i < c->n_names; i++)
            fprintf(text, "%s\t%.17g\n", c->names[i], values[i]);
    }
    free(values);
}

static void write_all(const char *folder)
{
    int driver = 0;
    FILE *out = create(folder, "axpy.txt", false);
    g.driver.cuDriverGetVersion(&driver);
    fprintf(out,
            "# Written by tests/gpu/record_image.c: y[i] = a * x[i] + y[i], values of axpy.N.image.gz as evaluated\n");
    fprintf(out, "# device %s, driver %d, CUPTI %s\n", g.device.name, driver, kp_cupti_version(g.cupti));
    fprintf(out, "chip\t%s\ninstructions\t%zu\n", g.chip, g.instructions);
    for (size_t group = 0; group < g.plan->n_groups; group++)
        write_group(folder, group, out);
    must(fclose(out), "axpy.txt");
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
    for (size_t i = 0; i < g.plan->n_groups; i++)
        kp_image_free(g.images[i]);
    free(g.images);
    kp_flush_close(g.flush, true);
    kp_plan_free(g.plan);
    kp_cupti_free(g.cupti);
    free(g.availability);
    return 0;
}
