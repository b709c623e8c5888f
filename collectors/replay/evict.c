#include "collectors/replay/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the kernel driver's requests ---- */

struct control {
    uint32_t client, object, command, flags;
    uint64_t params;
    uint32_t size, status;
};

struct allocation {
    uint32_t client, parent, object, class;
    uint64_t params;
    uint32_t size, status;
};

struct attached {
    uint32_t gpus[32];
};

struct address {
    uint32_t gpu, domain;
    uint16_t bus, slot;
};

struct identity {
    uint32_t gpu, flags, device, subdevice, sli, board, instance;
    int32_t numa;
};

struct device {
    uint32_t device, share, target_client, target_device, flags;
    uint64_t space_size, space_start, space_end;
    uint32_t space_mode;
};

struct subdevice {
    uint32_t subdevice;
};

struct virtualization {
    uint32_t mode, is_grid;
};

struct flush {
    uint64_t addresses[500];
    uint32_t n_addresses, align;
    uint64_t block_bytes;
    uint32_t flags;
};

enum {
    REQUEST_CONTROL = 0x2a,
    REQUEST_ALLOCATE = 0x2b,

    CLASS_CLIENT = 0x41,
    CLASS_DEVICE = 0x80,
    CLASS_SUBDEVICE = 0x2080,

    COMMAND_ATTACHED = 0x201,
    COMMAND_IDENTITY = 0x205,
    COMMAND_ADDRESS = 0x21b,
    COMMAND_VIRTUALIZATION = 0x800289,
    COMMAND_FLUSH = 0x2080130e,

    FLUSH_WRITE_BACK = 1 << 2,
    FLUSH_INVALIDATE = 1 << 3,
    FLUSH_ALL = 1 << 4,
    FLUSH_HOST = 1, /* lines of host memory; without it, those of the device's memory */

    NO_GPU = -1, /* ends the list of attached GPUs */
    SHARED_GPU = 2,

    DEVICE_NAME = 0x6b700001, /* the client chooses the names of objects */
    SUBDEVICE_NAME = 0x6b700002,
};

struct kp_evict {
    int file;
    uint32_t client;
    struct flush host, device; /* as requested */
};

static int control(const struct kp_evict *e, uint32_t object, uint32_t command, void *params, uint32_t size)
{
    struct control c = {
        .client = e->client, .object = object, .command = command, .params = (uintptr_t)params, .size = size};
    if (ioctl(e->file, _IOWR('F', REQUEST_CONTROL, struct control), &c))
        return -errno;
    return c.status ? -EIO : 0;
}

static int allocate(const struct kp_evict *e, struct allocation *a)
{
    if (ioctl(e->file, _IOWR('F', REQUEST_ALLOCATE, struct allocation), a))
        return -errno;
    return a->status ? -EIO : 0;
}

/* ---- reaching a GPU ---- */

static int open_client(struct kp_evict *e)
{
    struct allocation a = {.class = CLASS_CLIENT};
    e->file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    if (e->file < 0)
        return -errno;
    int rc = allocate(e, &a);
    e->client = a.object;
    return rc;
}

/* Returns true if `gpu` is the one at that address. */
static bool is_at(const struct kp_evict *e, uint32_t gpu, const char *pci_bus_id)
{
    struct address a = {.gpu = gpu};
    unsigned domain, bus, slot;
    return sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) == 3 &&
           !control(e, e->client, COMMAND_ADDRESS, &a, sizeof(a)) && a.domain == domain && a.bus == bus &&
           a.slot == slot;
}

static int find(const struct kp_evict *e, const char *pci_bus_id, struct identity *out)
{
    struct attached all;
    int rc = control(e, e->client, COMMAND_ATTACHED, &all, sizeof(all));
    for (size_t i = 0; !rc && i < sizeof(all.gpus) / sizeof(all.gpus[0]) && all.gpus[i] != (uint32_t)NO_GPU; i++)
        if (is_at(e, all.gpus[i], pci_bus_id)) {
            out->gpu = all.gpus[i];
            return control(e, e->client, COMMAND_IDENTITY, out, sizeof(*out));
        }
    return rc ? rc : -ENODEV;
}

static int open_device(const struct kp_evict *e, const struct identity *of)
{
    struct device device = {.device = of->device, .share = e->client};
    struct subdevice subdevice = {.subdevice = of->subdevice};
    struct virtualization how = {0};
    struct allocation a = {.client = e->client,
                           .parent = e->client,
                           .object = DEVICE_NAME,
                           .class = CLASS_DEVICE,
                           .params = (uintptr_t)&device,
                           .size = sizeof(device)};
    struct allocation b = {.client = e->client,
                           .parent = DEVICE_NAME,
                           .object = SUBDEVICE_NAME,
                           .class = CLASS_SUBDEVICE,
                           .params = (uintptr_t)&subdevice,
                           .size = sizeof(subdevice)};
    int rc = allocate(e, &a);
    if (!rc)
        rc = allocate(e, &b);
    if (!rc)
        rc = control(e, DEVICE_NAME, COMMAND_VIRTUALIZATION, &how, sizeof(how));
    return !rc && how.mode == SHARED_GPU ? -ENOTSUP : rc;
}

int kp_evict_open(const char *pci_bus_id, struct kp_evict **out)
{
    struct kp_evict *e = calloc(1, sizeof(*e));
    struct identity gpu = {0};
    *out = NULL;
    if (!e)
        return -ENOMEM;
    e->file = -1;
    e->device.flags = FLUSH_WRITE_BACK | FLUSH_INVALIDATE | FLUSH_ALL;
    e->host.flags = e->device.flags | FLUSH_HOST;
    int rc = open_client(e);
    if (!rc)
        rc = find(e, pci_bus_id, &gpu);
    if (!rc)
        rc = open_device(e, &gpu);
    if (!rc)
        rc = kp_evict_run(e);
    if (rc) {
        kp_evict_close(e);
        return rc;
    }
    *out = e;
    return 0;
}

void kp_evict_close(struct kp_evict *e)
{
    if (!e)
        return;
    if (e->file >= 0)
        close(e->file); /* which frees the client and its objects */
    free(e);
}

int kp_evict_run(struct kp_evict *e)
{
    int rc = control(e, SUBDEVICE_NAME, COMMAND_FLUSH, &e->host, sizeof(e->host));
    return rc ? rc : control(e, SUBDEVICE_NAME, COMMAND_FLUSH, &e->device, sizeof(e->device));
}
