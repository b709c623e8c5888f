/*
 * The C view of cupti_checkpoint.h, which is a C++ header (namespace, nullptr) over plain C symbols in
 * libcheckpoint.so. Layout as declared there in CUDA 13.0; the struct is versioned by its size.
 */
#ifndef KP_CUPTI_CHECKPOINT_ABI_H
#define KP_CUPTI_CHECKPOINT_ABI_H

#include <cuda.h>
#include <cupti_result.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t structSize;
    CUcontext ctx;
    size_t reserveDeviceMB;
    size_t reserveHostMB;
    uint8_t allowOverwrite;
    uint8_t optimizations;
    void *pPriv;
} kp_checkpoint_abi;

#define KP_CHECKPOINT_ABI_SIZE (offsetof(kp_checkpoint_abi, pPriv) + sizeof(void *))

CUptiResult cuptiCheckpointSave(kp_checkpoint_abi *const handle);
CUptiResult cuptiCheckpointRestore(kp_checkpoint_abi *const handle);
CUptiResult cuptiCheckpointFree(kp_checkpoint_abi *const handle);

#endif
