/*
 * NVLink, and confidential computing, from NVIDIA's management library (NVML). The library is opened on demand;
 * without it everything else works.
 * Threads: shares no data; each call initialises NVML and shuts it down.
 */
#ifndef KP_COLLECTORS_FACTS_NVLINK_H
#define KP_COLLECTORS_FACTS_NVLINK_H

#include "report/model/reasons.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"

/* A device's physical links: one bit each, by port. */
struct kp_nvlink_device {
    uint32_t ports;   /* known to NVML; 0 = unknown */
    uint32_t enabled; /* the links that are up */
    int mode;         /* nvmlGpuVirtualizationMode_t, or -1 if NVML does not say */
};

enum { KP_NVLINK_CPU = -1 }; /* in place of an ordinal */
enum { KP_NVML_VGPU = 2 };   /* kp_nvlink_device.mode */

/* The links between two devices: all physical links between them, or from each of them to the NVSwitch. */
struct kp_nvlink_pair {
    int dev0, dev1;          /* ordinals, dev0 < dev1; dev1 may be KP_NVLINK_CPU */
    uint32_t ports0, ports1; /* ports1: 0 if the other end is not one of our devices */
    bool direct, peer_access, peer_atomic, system_access, system_atomic;
};

struct kp_nvlink {
    struct kp_nvlink_device *devices; /* in the given order */
    size_t n_devices;
    struct kp_nvlink_pair *pairs;
    size_t n_pairs;
    bool nvswitch;    /* some link leads to an NVSwitch */
    int confidential; /* 1 if GPUs compute confidentially, 0 if not, -1 if NVML does not say */
};

/* Reads the devices with these PCI bus ids, whose index is their ordinal, from `library`. 0; -ENOMEM; -ENOENT with
 * *why, a static clause, if the library is missing or does not answer. Frees nothing of *out on entry. */
int kp_nvlink_read(const struct kp_dl *dl, const char *library, const char *const *bus_ids, size_t n,
                   struct kp_nvlink *out, enum kp_reason *why);
void kp_nvlink_free(struct kp_nvlink *n);

#endif
