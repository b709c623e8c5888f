#include "collectors/facts/nvlink.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The part of NVML's interface in use, from its public documentation, so that the toolkit's header is not needed. */
typedef struct nvml_device *nvml_device;

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_MOST_LINKS = 18 };
enum { NVML_REMOTE_GPU, NVML_REMOTE_CPU, NVML_REMOTE_SWITCH };                 /* nvmlIntNvLinkDeviceType_t */
enum { P2P_ACCESS, SYSTEM_ACCESS, P2P_ATOMIC, SYSTEM_ATOMIC, N_CAPABILITIES }; /* nvmlNvLinkCapability_t */

struct nvml_pci { /* nvmlPciInfo_t */
    char legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};

struct nvml_confidential { /* nvmlConfComputeSystemState_t */
    unsigned environment, feature, developer;
};

struct nvml {
    int (*nvmlInit_v2)(void);
    int (*nvmlShutdown)(void);
    int (*nvmlDeviceGetHandleByPciBusId_v2)(const char *id, nvml_device *device);
    int (*nvmlDeviceGetVirtualizationMode)(nvml_device device, int *mode);
    int (*nvmlDeviceGetNvLinkState)(nvml_device device, unsigned link, int *active);
    int (*nvmlDeviceGetNvLinkCapability)(nvml_device device, unsigned link, int capability, unsigned *yes);
    int (*nvmlDeviceGetNvLinkRemoteDeviceType)(nvml_device device, unsigned link, int *type);
    int (*nvmlDeviceGetNvLinkRemotePciInfo_v2)(nvml_device device, unsigned link, struct nvml_pci *pci);
};

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
#define ENTRY(name)                                                                                                    \
    {                                                                                                                  \
#name, offsetof(struct nvml, name)                                                                             \
    }
    ENTRY(nvmlInit_v2),
    ENTRY(nvmlShutdown),
    ENTRY(nvmlDeviceGetHandleByPciBusId_v2),
    ENTRY(nvmlDeviceGetVirtualizationMode),
    ENTRY(nvmlDeviceGetNvLinkState),
    ENTRY(nvmlDeviceGetNvLinkCapability),
    ENTRY(nvmlDeviceGetNvLinkRemoteDeviceType),
    ENTRY(nvmlDeviceGetNvLinkRemotePciInfo_v2),
#undef ENTRY
};

/* One device and the other ends of its links. */
struct ends {
    uint32_t to_switch, to_cpu;
    uint32_t *to_device; /* by ordinal */
    uint32_t able[N_CAPABILITIES];
};

struct reading {
    struct nvml nvml;
    const char *const *bus_ids;
    struct ends *ends;
    struct kp_nvlink *out;
};

static bool bind(struct nvml *n, const struct kp_dl *dl, void *library)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *sym = dl->sym(library, entries[i].name);
        if (!sym)
            return false;
        memcpy((char *)n + entries[i].offset, &sym, sizeof(sym));
    }
    return true;
}

/* Reads confidential computing. Drivers before R535 lack the function; on incapable hardware it is off. */
static int read_confidential(const struct kp_dl *dl, void *library)
{
    struct nvml_confidential state = {0};
    int (*get)(struct nvml_confidential *);
    void *sym = dl->sym(library, "nvmlSystemGetConfComputeState");
    if (!sym)
        return -1;
    memcpy(&get, &sym, sizeof(get));
    int rc = get(&state);
    return rc == NVML_SUCCESS ? state.feature != 0 : rc == NVML_NOT_SUPPORTED ? 0 : -1;
}

/* Compares bus ids: the driver writes a PCI domain with four digits, NVML with eight. */
static bool same_bus_id(const char *a, const char *b)
{
    char *rest_a, *rest_b;
    return strtoul(a, &rest_a, 16) == strtoul(b, &rest_b, 16) && !strcasecmp(rest_a, rest_b);
}

static void read_end(struct reading *x, nvml_device device, unsigned link, struct ends *e)
{
    int type = -1;
    struct nvml_pci pci;
    memset(&pci, 0, sizeof(pci));
    x->nvml.nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type);
    if (type == NVML_REMOTE_SWITCH)
        e->to_switch |= 1u << link;
    else if (type == NVML_REMOTE_CPU)
        e->to_cpu |= 1u << link;
    else if (x->nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci) == NVML_SUCCESS)
        for (size_t i = 0; i < x->out->n_devices; i++)
            if (same_bus_id(pci.id, x->bus_ids[i]))
                e->to_device[i] |= 1u << link;
    for (int c = 0; c < N_CAPABILITIES; c++) {
        unsigned yes = 0;
        if (x->nvml.nvmlDeviceGetNvLinkCapability(device, link, c, &yes) == NVML_SUCCESS && yes)
            e->able[c] |= 1u << link;
    }
}

static void read_device(struct reading *x, size_t i)
{
    nvml_device device = NULL;
    struct kp_nvlink_device *d = &x->out->devices[i];
    d->mode = -1;
    if (x->nvml.nvmlDeviceGetHandleByPciBusId_v2(x->bus_ids[i], &device) != NVML_SUCCESS)
        return;
    if (x->nvml.nvmlDeviceGetVirtualizationMode(device, &d->mode) != NVML_SUCCESS)
        d->mode = -1;
    for (unsigned link = 0; link < NVML_MOST_LINKS; link++) {
        int active = 0;
        if (x->nvml.nvmlDeviceGetNvLinkState(device, link, &active) != NVML_SUCCESS)
            continue;
        d->ports |= 1u << link;
        if (!active)
            continue;
        d->enabled |= 1u << link;
        read_end(x, device, link, &x->ends[i]);
    }
}

static void add_pair(struct reading *x, int dev0, int dev1, uint32_t ports0, uint32_t ports1, bool direct)
{
    const uint32_t *able = x->ends[dev0].able;
    x->out->pairs[x->out->n_pairs++] = (struct kp_nvlink_pair){.dev0 = dev0,
                                                               .dev1 = dev1,
                                                               .ports0 = ports0,
                                                               .ports1 = ports1,
                                                               .direct = direct,
                                                               .peer_access = able[P2P_ACCESS] & ports0,
                                                               .peer_atomic = able[P2P_ATOMIC] & ports0,
                                                               .system_access = able[SYSTEM_ACCESS] & ports0,
                                                               .system_atomic = able[SYSTEM_ATOMIC] & ports0};
}

static void find_pairs(struct reading *x)
{
    for (size_t i = 0; i < x->out->n_devices; i++) {
        const struct ends *a = &x->ends[i];
        x->out->nvswitch = x->out->nvswitch || a->to_switch;
        if (a->to_cpu)
            add_pair(x, (int)i, KP_NVLINK_CPU, a->to_cpu, 0, true);
        for (size_t k = i + 1; k < x->out->n_devices; k++) {
            const struct ends *b = &x->ends[k];
            if (a->to_device[k])
                add_pair(x, (int)i, (int)k, a->to_device[k], b->to_device[i], true);
            else if (a->to_switch && b->to_switch)
                add_pair(x, (int)i, (int)k, a->to_switch, b->to_switch, false);
        }
    }
}

/* Allocates memory for `n` devices and all pairs of them and of each with a CPU. */
static bool make_room(struct reading *x, size_t n)
{
    x->out->n_devices = n;
    x->out->devices = calloc(n, sizeof(*x->out->devices));
    x->out->pairs = calloc(n * (n + 1) / 2, sizeof(*x->out->pairs));
    x->ends = calloc(n, sizeof(*x->ends));
    bool made = x->out->devices && x->out->pairs && x->ends;
    for (size_t i = 0; made && i < n; i++)
        made = (x->ends[i].to_device = calloc(n, sizeof(*x->ends[i].to_device)));
    return made;
}

static void free_ends(struct reading *x)
{
    for (size_t i = 0; x->ends && i < x->out->n_devices; i++)
        free(x->ends[i].to_device);
    free(x->ends);
}

int kp_nvlink_read(const struct kp_dl *dl, const char *library, const char *const *bus_ids, size_t n,
                   struct kp_nvlink *out, enum kp_reason *why)
{
    struct reading x = {.bus_ids = bus_ids, .out = out};
    *out = (struct kp_nvlink){0};
    *why = KP_REASON_NONE;
    void *handle = dl->open(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        *why = KP_REASON_NO_NVML;
    else if (!bind(&x.nvml, dl, handle))
        *why = KP_REASON_OLD_NVML;
    else if (x.nvml.nvmlInit_v2() != NVML_SUCCESS)
        *why = KP_REASON_NVML_FAILS;
    if (*why)
        return -ENOENT;
    int rc = make_room(&x, n) ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        read_device(&x, i);
    if (!rc)
        find_pairs(&x);
    out->confidential = read_confidential(dl, handle);
    x.nvml.nvmlShutdown();
    free_ends(&x);
    if (rc)
        kp_nvlink_free(out);
    return rc;
}

void kp_nvlink_free(struct kp_nvlink *n)
{
    free(n->devices);
    free(n->pairs);
    *n = (struct kp_nvlink){0};
}
