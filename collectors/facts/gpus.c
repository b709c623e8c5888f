#include "collectors/facts/gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

static struct kp_gpu *add(struct kp_gpus *g)
{
    if (!KP_ROOM(g->all, g->n))
        return NULL;
    g->all[g->n] = (struct kp_gpu){.id = "", .name = ""};
    return &g->all[g->n++];
}

static void set_id(struct kp_gpu *gpu, const char *id)
{
    snprintf(gpu->id, sizeof(gpu->id), "%s", id);
    for (char *c = gpu->id; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

/* ---- the process's ---- */

static int list_visible(const struct kp_driver *d, const struct kp_device *device, struct kp_gpus *out)
{
    int n = 0;
    if (!d->cuDeviceGetCount || d->cuDeviceGetCount(&n) != CUDA_SUCCESS || n <= device->device)
        n = device->device + 1;
    /* KP_VENDOR: a CUdevice is the ordinal of the device. */
    for (CUdevice i = 0; i < n; i++) {
        struct kp_gpu *gpu = add(out);
        char id[KP_BUS_ID] = "";
        if (!gpu)
            return -ENOMEM;
        if (d->cuDeviceGetName(gpu->name, sizeof(gpu->name), i) != CUDA_SUCCESS)
            *gpu->name = '\0';
        if (d->cuDeviceGetPCIBusId(id, sizeof(id), i) == CUDA_SUCCESS)
            set_id(gpu, id);
    }
    out->own = (size_t)device->device;
    return 0;
}

/* ---- the machine's ---- */

/* Reads the name from a file with the line "Model:   NVIDIA H200". */
static void read_name(const char *folder, struct kp_gpu *gpu)
{
    static const char key[] = "Model:";
    char path[PATH_MAX], line[sizeof(gpu->name)];
    snprintf(path, sizeof(path), "%s/%s/information", folder, gpu->id);
    FILE *f = fopen(path, "re");
    while (f && !*gpu->name && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, key, sizeof(key) - 1))
            strcpy(gpu->name, line + sizeof(key) - 1 + strspn(line + sizeof(key) - 1, " \t"));
    }
    if (f)
        fclose(f);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct kp_gpu *)a)->id, ((const struct kp_gpu *)b)->id);
}

static int list_folder(const char *folder, struct kp_gpus *out)
{
    DIR *dir = opendir(folder);
    int rc = 0;
    for (struct dirent *e; dir && !rc && (e = readdir(dir));) {
        if (*e->d_name == '.' || strlen(e->d_name) >= KP_BUS_ID)
            continue;
        struct kp_gpu *gpu = add(out);
        rc = gpu ? 0 : -ENOMEM;
        if (gpu) {
            set_id(gpu, e->d_name);
            read_name(folder, gpu);
        }
    }
    if (dir)
        closedir(dir);
    if (out->n)
        qsort(out->all, out->n, sizeof(*out->all), by_id);
    return rc;
}

/* Returns true if the machine has more GPUs, and each that the process sees is one of them. */
static bool has_more(const struct kp_gpus *machine, const struct kp_gpus *visible)
{
    if (machine->n <= visible->n)
        return false;
    for (size_t i = 0; i < visible->n; i++)
        if (!*visible->all[i].id || !bsearch(&visible->all[i], machine->all, machine->n, sizeof(*machine->all), by_id))
            return false;
    return true;
}

int kp_gpus_list(const struct kp_driver *d, const struct kp_device *device, const char *folder, struct kp_gpus *out)
{
    struct kp_gpus machine = {.all = NULL};
    *out = (struct kp_gpus){.all = NULL};
    int rc = list_visible(d, device, out);
    rc = rc ? rc : list_folder(folder, &machine);
    if (!rc && has_more(&machine, out)) {
        const struct kp_gpu *own = bsearch(&out->all[out->own], machine.all, machine.n, sizeof(*own), by_id);
        machine.own = (size_t)(own - machine.all);
        kp_gpus_free(out);
        *out = machine;
        return 0;
    }
    kp_gpus_free(&machine);
    return rc;
}

void kp_gpus_free(struct kp_gpus *g)
{
    free(g->all);
    *g = (struct kp_gpus){.all = NULL};
}
