#include "cmd/doctor_cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/catalog.h"
#include "collectors/providers/library.h"

#ifdef KP_TOOLS_GLIBC_COMPAT_H
/* Repeats names of tools/glibc_compat.h, which cannot be included: other sources define them. */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#endif

/* The driver functions used. The command does not link the driver. */
struct driver {
    __typeof__(cuInit) *init;
    __typeof__(cuDriverGetVersion) *version;
    __typeof__(cuDeviceGetCount) *count;
    __typeof__(cuDeviceGetName) *name;
    __typeof__(cuDeviceGetAttribute) *attribute;
};

static bool bind(void *handle, struct driver *d)
{
    const struct {
        const char *name;
        void *entry;
    } entries[] = {
        {"cuInit", &d->init},          {"cuDriverGetVersion", &d->version},     {"cuDeviceGetCount", &d->count},
        {"cuDeviceGetName", &d->name}, {"cuDeviceGetAttribute", &d->attribute},
    };
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *function = dlsym(handle, entries[i].name);
        if (!function)
            return false;
        memcpy(entries[i].entry, &function, sizeof(function));
    }
    return true;
}

static void look_at_gpus(const struct driver *d, struct kp_doctor_facts *out)
{
    int n = 0;
    if (d->count(&n))
        n = 0;
    for (int i = 0; i < n && i < KP_DOCTOR_GPUS; i++) {
        struct kp_doctor_gpu *gpu = &out->gpus[out->n_gpus];
        if (d->attribute(&gpu->cc_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i) ||
            d->attribute(&gpu->cc_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i))
            continue;
        if (d->name(gpu->name, sizeof(gpu->name), i))
            *gpu->name = '\0';
        out->n_gpus++;
    }
}

static void look_at_driver(struct kp_doctor_facts *out)
{
    struct driver d;
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle || !bind(handle, &d)) {
        snprintf(out->driver_error, sizeof(out->driver_error), "%s", dlerror());
        return;
    }
    out->has_driver = true;
    if (d.version(&out->driver_version))
        out->driver_version = 0;
    out->init_code = d.init(0);
    if (!out->init_code)
        look_at_gpus(&d, out);
}

static void look_at_cupti(const char *cupti_dir, struct kp_doctor_facts *out)
{
    struct kp_cupti *cupti = NULL;
    char *err = NULL;
    if (kp_library_load(&kp_catalog_dl, cupti_dir, NULL, &cupti, &err)) {
        snprintf(out->cupti_error, sizeof(out->cupti_error), "%s", err ? err : "out of memory");
    } else {
        const char *path = kp_library_path(cupti), *end = strrchr(path, '/');
        snprintf(out->cupti_version, sizeof(out->cupti_version), "%s", kp_library_version(cupti));
        snprintf(out->cupti_folder, sizeof(out->cupti_folder), "%.*s", end ? (int)(end - path) : 1, end ? path : ".");
    }
    kp_library_free(cupti);
    free(err);
}

void kp_doctor_machine(const char *cupti_dir, struct kp_doctor_facts *out)
{
    *out = (struct kp_doctor_facts){0};
    look_at_driver(out);
    look_at_cupti(cupti_dir, out);
}
