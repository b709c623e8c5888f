/*
 * The GPUs of the machine, also those that CUDA_VISIBLE_DEVICES hides from the process. Nsight Compute lists these in
 * its tables of NUMA nodes and NVLinks.
 */
#ifndef KP_COLLECTORS_FACTS_GPUS_H
#define KP_COLLECTORS_FACTS_GPUS_H

#include "collectors/facts/device.h"

enum { KP_BUS_ID = 32 };

struct kp_gpu {
    char id[KP_BUS_ID]; /* of the PCI bus, in lower case as the kernel writes it: "0000:1a:00.0"; "" if not told */
    char name[256];     /* "" if not told */
};

struct kp_gpus {
    struct kp_gpu *all;
    size_t n;
    size_t own; /* index of the device in question */
};

/* Lists the GPUs in `folder`, where NVIDIA's driver has a folder for each, in the order of their bus ids. Takes those
 * that the process sees, in its order, where there are no more of them. So it does where the folder does not know each
 * of them. 0 or -ENOMEM. To be freed by kp_gpus_free. */
int kp_gpus_list(const struct kp_driver *d, const struct kp_device *device, const char *folder, struct kp_gpus *out);
void kp_gpus_free(struct kp_gpus *g);

#endif
