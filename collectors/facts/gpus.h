/*
 * The GPUs of the machine, including GPUs hidden from the process by CUDA_VISIBLE_DEVICES, which Nsight Compute lists
 * in its tables of NUMA nodes and NVLinks.
 */
#ifndef KP_COLLECTORS_FACTS_GPUS_H
#define KP_COLLECTORS_FACTS_GPUS_H

#include "collectors/facts/device.h"

enum { KP_BUS_ID = 32 };

struct kp_gpu {
    char id[KP_BUS_ID]; /* of the PCI bus, in lower case like the kernel's: "0000:1a:00.0"; "" if unknown */
    char name[256];     /* "" if unknown */
};

struct kp_gpus {
    struct kp_gpu *all;
    size_t n;
    size_t own; /* index of the device in question */
};

/* Lists the GPUs in `folder`, which NVIDIA's driver fills with one folder per GPU, in the order of their bus ids. If
 * there are no more of them than the process sees, or the folder lacks one of those, lists the process's in its order.
 * 0 or -ENOMEM. To kp_gpus_free. */
int kp_gpus_list(const struct kp_driver *d, const struct kp_device *device, const char *folder, struct kp_gpus *out);
void kp_gpus_free(struct kp_gpus *g);

#endif
