/*
 * NVLink, and whether computing is confidential, as NVIDIA's management library (NVML) tells it. The library is opened
 * when this is asked for; all goes on without it. Threads: none is shared; NVML is initialised and let go in each call.
 */
#ifndef KP_COLLECTORS_FACTS_NVLINK_H
#define KP_COLLECTORS_FACTS_NVLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"

/* A device's physical links: one bit each, by port. */
struct kp_nvlink_device {
    uint32_t ports;   /* that NVML knows; 0 = it does not tell */
    uint32_t enabled; /* those that are up */
    int mode;         /* nvmlGpuVirtualizationMode_t, or -1 when NVML does not tell */
};

enum { KP_NVLINK_CPU = -1 }; /* in place of an ordinal */
enum { KP_NVML_VGPU = 2 };   /* kp_nvlink_device.mode */

/* What joins two devices: all physical links between them, or between each of them and the NVSwitch. */
struct kp_nvlink_pair {
    int dev0, dev1;          /* ordinals, dev0 < dev1; dev1 may be KP_NVLINK_CPU */
    uint32_t ports0, ports1; /* ports1: 0 where the other end is no device of ours */
    bool direct, peer_access, peer_atomic, system_access, system_atomic;
};

struct kp_nvlink {
    struct kp_nvlink_device *devices; /* in the order asked for */
    size_t n_devices;
    struct kp_nvlink_pair *pairs;
    size_t n_pairs;
    bool nvswitch;    /* a link leads to one */
    int confidential; /* whether GPUs compute confidentially, or -1 when NVML does not tell */
};

/* Reads the devices with these PCI bus ids, whose index is their ordinal, from `library`. 0; -ENOENT with *why, a
 * static clause, when there is no such library or it does not answer; -ENOMEM. Frees nothing of *out on entry. */
int kp_nvlink_read(const struct kp_dl *dl, const char *library, const char *const *bus_ids, size_t n,
                   struct kp_nvlink *out, const char **why);
void kp_nvlink_free(struct kp_nvlink *n);

#endif
