#include "preload/context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/elf.h"
#include "preload/symbols.h"
#include "report/demangle.h"

static struct kp_context *contexts;
static atomic_uint generation;
static atomic_bool foreign_activity;

/* CUPTI, once a process. */
static struct {
    bool tried;
    struct kp_cupti *cupti;
    char *why_not;
} loaded;

const struct kp_cupti *kp_context_cupti(void)
{
    return loaded.cupti;
}

void kp_context_forget(void)
{
    atomic_fetch_add(&generation, 1);
}

void kp_context_foreign_activity(void)
{
    atomic_store(&foreign_activity, true);
}

static void load_cupti(const char *dir)
{
    char runtime[1024] = "", cublas[1024] = "";
    const char *near[] = {NULL, NULL, NULL};
    size_t n = 0;
    if (loaded.tried)
        return;
    loaded.tried = true;
    if (kp_elf_directory("libcudart.so", runtime, sizeof(runtime)))
        near[n++] = runtime;
    if (kp_elf_directory("libcublas.so", cublas, sizeof(cublas)))
        near[n++] = cublas;
    if (kp_cupti_load(kp_symbols_dl(), dir, near, &loaded.cupti, &loaded.why_not))
        return;
    int rc = kp_target_init(loaded.cupti);
    if (rc) {
        loaded.why_not = kp_cupti_explain(loaded.cupti, "cannot start CUPTI's profiler", rc);
        kp_cupti_free(loaded.cupti);
        loaded.cupti = NULL;
    }
}

/* Sets why the context has no counters; the first reason stays. */
static void without_counters(struct kp_context *c, char *why)
{
    if (c->no_counters)
        free(why);
    else
        c->no_counters = why ? why : kp_strdup("out of memory");
}

static void plan_context(const struct kp_context_setup *setup, struct kp_context *c, char **bad_input)
{
    size_t size;
    char *err = NULL;
    const struct kp_cupti *cupti = loaded.cupti;
    int rc = kp_target_chip(cupti, c->device.device, &c->chip);
    if (rc) {
        c->chip = "";
        without_counters(c, kp_cupti_explain(cupti, "cannot identify the chip", rc));
        return;
    }
    rc = kp_target_availability(cupti, c->ctx, &c->availability, &size);
    if (rc)
        without_counters(c, kp_cupti_explain(cupti, "cannot ask for counters", rc));
    /* Without permission the plan is still made: it names the rows that have to be shown as missing. */
    rc = kp_plan_make(cupti, c->chip, c->availability, c->device.cc_major, c->device.cc_minor, setup->sections,
                      setup->n_sections, setup->options->metrics, &c->plan, &err);
    if (rc == -EINVAL)
        *bad_input = err;
    else if (rc)
        without_counters(c, err);
}

static void open_collector(const struct kp_context_setup *setup, struct kp_context *c)
{
    struct kp_collector_setup s = {
        .driver = setup->driver,
        .cupti = loaded.cupti,
        .device = &c->device,
        .ctx = c->ctx,
        .chip = c->chip,
        .availability = c->availability,
        .plan = c->plan,
        .flush = !strcmp(setup->options->cache_control, "all"),
    };
    int rc = kp_collector_open(&s, &c->collector);
    if (rc)
        without_counters(c, kp_cupti_explain(loaded.cupti, "cannot prepare the collection", rc));
    else if (kp_plan_counts(c->plan) && !kp_checkpoint_available(loaded.cupti))
        without_counters(c,
                         kp_strdup("libcheckpoint.so is missing beside libcupti: memory could not be restored between "
                                   "passes"));
}

static void free_functions(struct kp_context *c)
{
    for (int b = 0; b < KP_FUNCTION_BUCKETS; b++) {
        while (c->functions[b]) {
            struct kp_known_function *f = c->functions[b];
            c->functions[b] = f->next;
            kp_function_free(&f->facts);
            free(f->demangled);
            free(f->base);
            free(f->configs);
            free(f);
        }
    }
}

static void free_context(struct kp_context *c, bool alive)
{
    kp_collector_close(c->collector, alive && !c->dead);
    kp_plan_free(c->plan);
    free_functions(c);
    free(c->availability);
    free(c->no_counters);
    free(c);
}

static bool read_context(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_driver *d = setup->driver;
    CUdevice device = 0;
    unsigned long long id = 0;
    if (d->cuCtxGetDevice(&device) != CUDA_SUCCESS || kp_device_read(d, device, &c->device) != CUDA_SUCCESS ||
        kp_context_facts_read(d, c->ctx, &c->device, &c->facts) != CUDA_SUCCESS)
        return false;
    c->device_ordinal = device;
    if (loaded.cupti && !kp_target_context_id(loaded.cupti, c->ctx, &c->id))
        return true;
    if (d->cuCtxGetId && d->cuCtxGetId(c->ctx, &id) == CUDA_SUCCESS)
        c->id = (uint32_t)id;
    return true;
}

struct kp_context *kp_context_get(const struct kp_context_setup *setup, CUcontext ctx, char **bad_input)
{
    *bad_input = NULL;
    for (struct kp_context *c = contexts; c; c = c->next)
        if (c->ctx == ctx)
            return c;
    struct kp_context *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    load_cupti(setup->options->cupti_dir);
    c->ctx = ctx;
    c->chip = "";
    c->generation = atomic_load(&generation);
    if (!read_context(setup, c)) {
        free_context(c, true);
        return NULL;
    }
    if (!loaded.cupti)
        without_counters(c, kp_strdup(loaded.why_not));
    else
        plan_context(setup, c, bad_input);
    if (c->plan)
        open_collector(setup, c);
    c->next = contexts;
    contexts = c;
    return c;
}

static struct kp_known_function **bucket_of(struct kp_context *c, CUfunction f)
{
    uintptr_t h = (uintptr_t)f >> 4;
    return &c->functions[(h ^ (h >> 8)) % KP_FUNCTION_BUCKETS];
}

struct kp_known_function *kp_context_function(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f)
{
    unsigned now = atomic_load(&generation);
    if (c->generation != now) {
        free_functions(c);
        kp_context_facts_read(setup->driver, c->ctx, &c->device, &c->facts);
        c->generation = now;
    }
    struct kp_known_function **bucket = bucket_of(c, f);
    for (struct kp_known_function *k = *bucket; k; k = k->next)
        if (k->key == f)
            return k;
    struct kp_known_function *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->key = f;
    if (kp_function_read(setup->driver, &c->device, f, &k->facts) != CUDA_SUCCESS) {
        free(k);
        return NULL;
    }
    k->demangled = kp_demangle(k->facts.mangled);
    k->base = kp_demangle_base(k->facts.mangled);
    if (!k->demangled || !k->base) {
        kp_function_free(&k->facts);
        free(k->demangled);
        free(k->base);
        free(k);
        return NULL;
    }
    k->next = *bucket;
    *bucket = k;
    return k;
}

const struct kp_known_config *kp_context_config(const struct kp_known_function *f, uint32_t threads,
                                                uint64_t dynamic_shared)
{
    for (size_t i = 0; i < f->n_configs; i++)
        if (f->configs[i].threads == threads && f->configs[i].dynamic_shared == dynamic_shared)
            return &f->configs[i];
    return NULL;
}

void kp_context_learn(struct kp_known_function *f, const struct kp_known_config *config)
{
    struct kp_known_config *grown = realloc(f->configs, (f->n_configs + 1) * sizeof(*grown));
    if (!grown)
        return; /* asked for again the next time */
    f->configs = grown;
    grown[f->n_configs++] = *config;
}

uint64_t kp_context_stream_id(const struct kp_context_setup *setup, const struct kp_context *c, CUstream stream,
                              bool ptsz)
{
    uint32_t id = 0;
    unsigned long long driver_id = 0;
    bool per_thread = stream == CU_STREAM_PER_THREAD || (ptsz && !stream);
    CUstream asked = stream == CU_STREAM_PER_THREAD || stream == CU_STREAM_LEGACY ? NULL : stream;
    if (loaded.cupti && !kp_target_stream_id(loaded.cupti, c->ctx, asked, per_thread, &id))
        return id;
    if (setup->driver->cuStreamGetId && setup->driver->cuStreamGetId(stream, &driver_id) == CUDA_SUCCESS)
        return driver_id;
    return 0;
}

void kp_context_close(const struct kp_context_setup *setup, bool (*match)(const struct kp_context *c, uint64_t arg),
                      uint64_t arg, bool alive)
{
    const struct kp_driver *d = setup->driver;
    for (struct kp_context **link = &contexts; *link;) {
        struct kp_context *c = *link;
        CUcontext popped;
        if (match && !match(c, arg)) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        bool current = alive && d->cuCtxPushCurrent(c->ctx) == CUDA_SUCCESS;
        free_context(c, current);
        if (current)
            d->cuCtxPopCurrent(&popped);
    }
}

bool kp_context_may_probe(void)
{
    return loaded.cupti && kp_activity_available(loaded.cupti) && !atomic_load(&foreign_activity);
}
