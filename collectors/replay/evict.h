/*
 * Writes back and empties the L2, like Nsight Compute before each pass. CUDA has no call for it, so this asks the GPU's
 * kernel driver, which needs no privileges and changes no data.
 *
 * Commands and layouts are those of NVIDIA's open kernel modules (src/common/sdk/nvidia/inc: nvos.h,
 * ctrl/ctrl0000/ctrl0000gpu.h, ctrl/ctrl2080/ctrl2080fb.h, class/cl0080.h).
 */
#ifndef KP_COLLECTORS_REPLAY_EVICT_H
#define KP_COLLECTORS_REPLAY_EVICT_H

struct kp_evict;

/* Connects to the kernel driver for the GPU at `pci_bus_id` (domain:bus:device.function, hexadecimal), which the
 * process must have opened, like CUDA does. Returns 0, -ENOMEM, -errno of the device file, -ENODEV if the driver does
 * not know the GPU, -EIO if it refuses, or -ENOTSUP in a virtual machine that shares the GPU: there it has no effect.
 * The caller closes `*out`, which is NULL on failure. */
int kp_evict_open(const char *pci_bus_id, struct kp_evict **out);
void kp_evict_close(struct kp_evict *e);

/* Writes modified lines back and drops all. The caller first waits for the GPU, which would otherwise bring lines back
 * meanwhile. Returns 0, -errno or -EIO. Can be called from any thread, one at a time. */
int kp_evict_run(struct kp_evict *e);

#endif
