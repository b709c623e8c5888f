/*
 * cuGetProcAddress: base name, version of the ABI and stream flavour to function. Versions are those of the PFN_ types
 * of cudaTypedefs.h, and each row is checked against them.
 */
#include "core.h"

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

struct proc {
    const char *name;
    int version;
    bool per_thread;
    void *function;
};

/* ROW: a function without flavours; TWO: legacy from `version`, per-thread from `ptsz_version`, exported as
 * function ## suffix. */
#define TYPE_CHECKED(function, type)                                                                                   \
    __builtin_choose_expr(__builtin_types_compatible_p(__typeof__(&function), type), (void *)(function), (void)0)
#define ROW(base, version, function)                                                                                   \
    {                                                                                                                  \
#base, version, false, TYPE_CHECKED(function, PFN_##base##_v##version)                                         \
    }
#define TWO(base, version, ptsz_version, function, suffix)                                                             \
    ROW(base, version, function),                                                                                      \
    {                                                                                                                  \
#base, ptsz_version, true, TYPE_CHECKED(function##suffix, PFN_##base##_v##ptsz_version##suffix)                \
    }

static const struct proc procs[] = {
    ROW(cuInit, 2000, cuInit),
    ROW(cuDriverGetVersion, 2020, cuDriverGetVersion),
    ROW(cuGetErrorName, 6000, cuGetErrorName),
    ROW(cuGetErrorString, 6000, cuGetErrorString),
    ROW(cuGetExportTable, 3000, cuGetExportTable),
    ROW(cuGetProcAddress, 11030, cuGetProcAddress),
    ROW(cuGetProcAddress, 12000, cuGetProcAddress_v2),
    ROW(cuProfilerStart, 4000, cuProfilerStart),
    ROW(cuProfilerStop, 4000, cuProfilerStop),
    ROW(cuDeviceGet, 2000, cuDeviceGet),
    ROW(cuDeviceGetCount, 2000, cuDeviceGetCount),
    ROW(cuDeviceGetName, 2000, cuDeviceGetName),
    ROW(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    ROW(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2),
    ROW(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
    ROW(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
    ROW(cuDeviceComputeCapability, 2000, cuDeviceComputeCapability),
    ROW(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
    ROW(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId),
    ROW(cuDeviceGetDevResource, 12040, cuDeviceGetDevResource),
    ROW(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
    ROW(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
    ROW(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2),
    ROW(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2),
    ROW(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
    ROW(cuCtxCreate, 3020, cuCtxCreate_v2),
    ROW(cuCtxCreate, 11040, cuCtxCreate_v3),
    ROW(cuCtxCreate, 12050, cuCtxCreate_v4),
    ROW(cuCtxDestroy, 4000, cuCtxDestroy_v2),
    ROW(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2),
    ROW(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2),
    ROW(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
    ROW(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
    ROW(cuCtxGetDevice, 2000, cuCtxGetDevice),
    ROW(cuCtxGetDevice, 13000, cuCtxGetDevice_v2),
    ROW(cuCtxGetFlags, 7000, cuCtxGetFlags),
    ROW(cuCtxGetId, 12000, cuCtxGetId),
    ROW(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion),
    ROW(cuCtxSynchronize, 2000, cuCtxSynchronize),
    ROW(cuCtxGetLimit, 3010, cuCtxGetLimit),
    ROW(cuCtxSetLimit, 3010, cuCtxSetLimit),
    ROW(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig),
    ROW(cuCtxGetDevResource, 12040, cuCtxGetDevResource),
    ROW(cuDevSmResourceSplitByCount, 12040, cuDevSmResourceSplitByCount),
    ROW(cuDevResourceGenerateDesc, 12040, cuDevResourceGenerateDesc),
    ROW(cuGreenCtxCreate, 12040, cuGreenCtxCreate),
    ROW(cuGreenCtxDestroy, 12040, cuGreenCtxDestroy),
    ROW(cuGreenCtxStreamCreate, 12050, cuGreenCtxStreamCreate),
    ROW(cuCtxFromGreenCtx, 12040, cuCtxFromGreenCtx),
    ROW(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange),
    ROW(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode),
    ROW(cuModuleLoadData, 2000, cuModuleLoadData),
    ROW(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx),
    ROW(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary),
    ROW(cuLinkCreate, 6050, cuLinkCreate_v2),
    ROW(cuLinkAddData, 6050, cuLinkAddData_v2),
    ROW(cuLinkComplete, 5050, cuLinkComplete),
    ROW(cuLinkDestroy, 5050, cuLinkDestroy),
    ROW(cuModuleUnload, 2000, cuModuleUnload),
    ROW(cuModuleGetLoadingMode, 11070, cuModuleGetLoadingMode),
    ROW(cuModuleGetFunction, 2000, cuModuleGetFunction),
    ROW(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount),
    ROW(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions),
    ROW(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2),
    ROW(cuLibraryLoadData, 12000, cuLibraryLoadData),
    ROW(cuLibraryUnload, 12000, cuLibraryUnload),
    ROW(cuLibraryGetKernel, 12000, cuLibraryGetKernel),
    ROW(cuLibraryGetModule, 12000, cuLibraryGetModule),
    ROW(cuKernelGetFunction, 12000, cuKernelGetFunction),
    ROW(cuKernelGetLibrary, 12050, cuKernelGetLibrary),
    ROW(cuKernelGetName, 12030, cuKernelGetName),
    ROW(cuKernelGetParamInfo, 12040, cuKernelGetParamInfo),
    ROW(cuKernelGetAttribute, 12000, cuKernelGetAttribute),
    ROW(cuKernelSetAttribute, 12000, cuKernelSetAttribute),
    ROW(cuFuncGetName, 12030, cuFuncGetName),
    ROW(cuFuncGetModule, 11000, cuFuncGetModule),
    ROW(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo),
    ROW(cuFuncIsLoaded, 12040, cuFuncIsLoaded),
    ROW(cuFuncLoad, 12040, cuFuncLoad),
    ROW(cuFuncGetAttribute, 2020, cuFuncGetAttribute),
    ROW(cuFuncSetAttribute, 9000, cuFuncSetAttribute),
    ROW(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig),
    ROW(cuFuncSetBlockShape, 2000, cuFuncSetBlockShape),
    ROW(cuFuncSetSharedSize, 2000, cuFuncSetSharedSize),
    ROW(cuParamSetSize, 2000, cuParamSetSize),
    ROW(cuParamSeti, 2000, cuParamSeti),
    ROW(cuParamSetf, 2000, cuParamSetf),
    ROW(cuParamSetv, 2000, cuParamSetv),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    ROW(cuOccupancyMaxPotentialClusterSize, 11070, cuOccupancyMaxPotentialClusterSize),
    ROW(cuOccupancyMaxActiveClusters, 11070, cuOccupancyMaxActiveClusters),
    ROW(cuMemGetInfo, 3020, cuMemGetInfo_v2),
    ROW(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool),
    ROW(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute),
    ROW(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute),
    ROW(cuMemAlloc, 3020, cuMemAlloc_v2),
    ROW(cuMemAllocPitch, 3020, cuMemAllocPitch_v2),
    ROW(cuMemAllocManaged, 6000, cuMemAllocManaged),
    ROW(cuMemFree, 3020, cuMemFree_v2),
    ROW(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2),
    ROW(cuMemAllocHost, 2000, cuMemAllocHost),
    ROW(cuMemAllocHost, 3020, cuMemAllocHost_v2),
    ROW(cuMemHostAlloc, 2020, cuMemHostAlloc),
    ROW(cuMemHostGetFlags, 2030, cuMemHostGetFlags),
    ROW(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
    ROW(cuMemFreeHost, 2000, cuMemFreeHost),
    ROW(cuMemHostRegister, 4000, cuMemHostRegister),
    ROW(cuMemHostRegister, 6050, cuMemHostRegister_v2),
    ROW(cuMemHostUnregister, 4000, cuMemHostUnregister),
    ROW(cuPointerGetAttribute, 4000, cuPointerGetAttribute),
    ROW(cuPointerGetAttributes, 7000, cuPointerGetAttributes),
    ROW(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity),
    ROW(cuMemCreate, 10020, cuMemCreate),
    ROW(cuMemRelease, 10020, cuMemRelease),
    ROW(cuMemAddressReserve, 10020, cuMemAddressReserve),
    ROW(cuMemAddressFree, 10020, cuMemAddressFree),
    ROW(cuMemMap, 10020, cuMemMap),
    ROW(cuMemUnmap, 10020, cuMemUnmap),
    ROW(cuMemSetAccess, 10020, cuMemSetAccess),
    ROW(cuMemGetAccess, 10020, cuMemGetAccess),
    TWO(cuMemcpy, 4000, 7000, cuMemcpy, _ptds),
    TWO(cuMemcpyHtoD, 3020, 7000, cuMemcpyHtoD_v2, _ptds),
    TWO(cuMemcpyDtoH, 3020, 7000, cuMemcpyDtoH_v2, _ptds),
    TWO(cuMemcpyDtoD, 3020, 7000, cuMemcpyDtoD_v2, _ptds),
    TWO(cuMemsetD8, 3020, 7000, cuMemsetD8_v2, _ptds),
    TWO(cuMemsetD32, 3020, 7000, cuMemsetD32_v2, _ptds),
    TWO(cuMemcpyAsync, 4000, 7000, cuMemcpyAsync, _ptsz),
    TWO(cuMemcpyBatchAsync, 13000, 13000, cuMemcpyBatchAsync_v2, _ptsz),
    TWO(cuMemcpyHtoDAsync, 3020, 7000, cuMemcpyHtoDAsync_v2, _ptsz),
    TWO(cuMemcpyDtoHAsync, 3020, 7000, cuMemcpyDtoHAsync_v2, _ptsz),
    TWO(cuMemcpyDtoDAsync, 3020, 7000, cuMemcpyDtoDAsync_v2, _ptsz),
    TWO(cuMemsetD8Async, 3020, 7000, cuMemsetD8Async, _ptsz),
    TWO(cuMemsetD16Async, 3020, 7000, cuMemsetD16Async, _ptsz),
    TWO(cuMemsetD32Async, 3020, 7000, cuMemsetD32Async, _ptsz),
    TWO(cuMemcpy2D, 3020, 7000, cuMemcpy2D_v2, _ptds),
    TWO(cuMemcpy2DUnaligned, 3020, 7000, cuMemcpy2DUnaligned_v2, _ptds),
    TWO(cuMemcpy3D, 3020, 7000, cuMemcpy3D_v2, _ptds),
    ROW(cuArrayCreate, 3020, cuArrayCreate_v2),
    ROW(cuArray3DCreate, 3020, cuArray3DCreate_v2),
    ROW(cuArrayDestroy, 2000, cuArrayDestroy),
    ROW(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate),
    ROW(cuMipmappedArrayGetLevel, 5000, cuMipmappedArrayGetLevel),
    ROW(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy),
    ROW(cuSurfObjectCreate, 5000, cuSurfObjectCreate),
    ROW(cuSurfObjectDestroy, 5000, cuSurfObjectDestroy),
    ROW(cuSurfObjectGetResourceDesc, 5000, cuSurfObjectGetResourceDesc),
    ROW(cuTexObjectCreate, 5000, cuTexObjectCreate),
    ROW(cuTexObjectDestroy, 5000, cuTexObjectDestroy),
    ROW(cuTexObjectGetResourceDesc, 5000, cuTexObjectGetResourceDesc),
    TWO(cuMemcpy2DAsync, 3020, 7000, cuMemcpy2DAsync_v2, _ptsz),
    TWO(cuMemcpy3DAsync, 3020, 7000, cuMemcpy3DAsync_v2, _ptsz),
    TWO(cuMemAllocAsync, 11020, 11020, cuMemAllocAsync, _ptsz),
    TWO(cuMemAllocFromPoolAsync, 11020, 11020, cuMemAllocFromPoolAsync, _ptsz),
    ROW(cuMemPoolCreate, 11020, cuMemPoolCreate),
    ROW(cuMemPoolDestroy, 11020, cuMemPoolDestroy),
    ROW(cuMemGetMemPool, 13000, cuMemGetMemPool),
    TWO(cuMemFreeAsync, 11020, 11020, cuMemFreeAsync, _ptsz),
    ROW(cuStreamCreate, 2000, cuStreamCreate),
    ROW(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority),
    ROW(cuStreamDestroy, 4000, cuStreamDestroy_v2),
    TWO(cuStreamSynchronize, 2000, 7000, cuStreamSynchronize, _ptsz),
    TWO(cuStreamQuery, 2000, 7000, cuStreamQuery, _ptsz),
    TWO(cuStreamGetId, 12000, 12000, cuStreamGetId, _ptsz),
    TWO(cuStreamGetCtx, 9020, 9020, cuStreamGetCtx, _ptsz),
    TWO(cuStreamGetFlags, 5050, 7000, cuStreamGetFlags, _ptsz),
    TWO(cuStreamGetPriority, 5050, 7000, cuStreamGetPriority, _ptsz),
    TWO(cuStreamWaitEvent, 3020, 7000, cuStreamWaitEvent, _ptsz),
    TWO(cuStreamIsCapturing, 10000, 10000, cuStreamIsCapturing, _ptsz),
    TWO(cuStreamBeginCapture, 10010, 10010, cuStreamBeginCapture_v2, _ptsz),
    TWO(cuStreamEndCapture, 10000, 10000, cuStreamEndCapture, _ptsz),
    ROW(cuEventCreate, 2000, cuEventCreate),
    ROW(cuEventDestroy, 4000, cuEventDestroy_v2),
    ROW(cuEventQuery, 2000, cuEventQuery),
    ROW(cuEventSynchronize, 2000, cuEventSynchronize),
    ROW(cuEventElapsedTime, 2000, cuEventElapsedTime),
    ROW(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
    TWO(cuEventRecord, 2000, 7000, cuEventRecord, _ptsz),
    TWO(cuLaunchKernel, 4000, 7000, cuLaunchKernel, _ptsz),
    TWO(cuLaunchKernelEx, 11060, 11060, cuLaunchKernelEx, _ptsz),
    TWO(cuLaunchCooperativeKernel, 9000, 9000, cuLaunchCooperativeKernel, _ptsz),
    TWO(cuLaunchHostFunc, 10000, 10000, cuLaunchHostFunc, _ptsz),
    TWO(cuStreamAddCallback, 5000, 7000, cuStreamAddCallback, _ptsz),
    ROW(cuLaunchCooperativeKernelMultiDevice, 9000, cuLaunchCooperativeKernelMultiDevice),
    ROW(cuLaunch, 2000, cuLaunch),
    ROW(cuLaunchGrid, 2000, cuLaunchGrid),
    ROW(cuLaunchGridAsync, 2000, cuLaunchGridAsync),
    ROW(cuGraphCreate, 10000, cuGraphCreate),
    ROW(cuGraphAddKernelNode, 10000, cuGraphAddKernelNode),
    ROW(cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2),
    ROW(cuGraphKernelNodeGetParams, 12000, cuGraphKernelNodeGetParams_v2),
    ROW(cuGraphMemcpyNodeGetParams, 10000, cuGraphMemcpyNodeGetParams),
    ROW(cuGraphMemsetNodeGetParams, 10000, cuGraphMemsetNodeGetParams),
    ROW(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams),
    ROW(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2),
    ROW(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams),
    ROW(cuGraphExecMemsetNodeSetParams, 10020, cuGraphExecMemsetNodeSetParams),
    ROW(cuGraphExecNodeSetParams, 12020, cuGraphExecNodeSetParams),
    ROW(cuGraphNodeSetEnabled, 11060, cuGraphNodeSetEnabled),
    ROW(cuGraphExecUpdate, 12000, cuGraphExecUpdate_v2),
    ROW(cuGraphAddEventRecordNode, 11010, cuGraphAddEventRecordNode),
    ROW(cuGraphAddEventWaitNode, 11010, cuGraphAddEventWaitNode),
    ROW(cuGraphEventWaitNodeGetEvent, 11010, cuGraphEventWaitNodeGetEvent),
    ROW(cuGraphKernelNodeGetAttribute, 11000, cuGraphKernelNodeGetAttribute),
    ROW(cuGraphEventRecordNodeGetEvent, 11010, cuGraphEventRecordNodeGetEvent),
    ROW(cuGraphAddHostNode, 10000, cuGraphAddHostNode),
    ROW(cuGraphHostNodeGetParams, 10000, cuGraphHostNodeGetParams),
    ROW(cuGraphExecHostNodeSetParams, 10020, cuGraphExecHostNodeSetParams),
    ROW(cuGraphAddEmptyNode, 10000, cuGraphAddEmptyNode),
    ROW(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode),
    ROW(cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode),
    ROW(cuGraphMemAllocNodeGetParams, 11040, cuGraphMemAllocNodeGetParams),
    ROW(cuGraphMemFreeNodeGetParams, 11040, cuGraphMemFreeNodeGetParams),
    ROW(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim),
    ROW(cuDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute),
    ROW(cuGraphAddMemcpyNode, 10000, cuGraphAddMemcpyNode),
    ROW(cuGraphAddMemsetNode, 10000, cuGraphAddMemsetNode),
    ROW(cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode),
    ROW(cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph),
    ROW(cuGraphGetNodes, 10000, cuGraphGetNodes),
    ROW(cuGraphNodeGetType, 10000, cuGraphNodeGetType),
    ROW(cuGraphNodeGetDependencies, 10000, cuGraphNodeGetDependencies),
    ROW(cuGraphNodeGetDependencies, 12030, cuGraphNodeGetDependencies_v2),
    ROW(cuGraphDestroy, 10000, cuGraphDestroy),
    ROW(cuGraphInstantiate, 10000, cuGraphInstantiate),
    ROW(cuGraphInstantiate, 11000, cuGraphInstantiate_v2),
    {"cuGraphInstantiate", 12000, false,
     TYPE_CHECKED(cuGraphInstantiateWithFlags, PFN_cuGraphInstantiateWithFlags_v11040)},
    ROW(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags),
    TWO(cuGraphInstantiateWithParams, 12000, 12000, cuGraphInstantiateWithParams, _ptsz),
    ROW(cuGraphExecGetFlags, 12000, cuGraphExecGetFlags),
    ROW(cuGraphExecDestroy, 10000, cuGraphExecDestroy),
    TWO(cuGraphUpload, 11010, 11010, cuGraphUpload, _ptsz),
    TWO(cuGraphLaunch, 10000, 10000, cuGraphLaunch, _ptsz),
};

/* The newest row not above `version`; a per-thread request falls back to the legacy function. */
static const struct proc *find_proc(const char *name, int version, bool per_thread, bool *known)
{
    const struct proc *best = NULL;

    *known = false;
    for (size_t i = 0; i < sizeof(procs) / sizeof(procs[0]); i++) {
        const struct proc *p = &procs[i];

        if (strcmp(p->name, name) || (p->per_thread && !per_thread))
            continue;
        *known = true;
        if (p->version > version)
            continue;
        if (!best || p->per_thread > best->per_thread ||
            (p->per_thread == best->per_thread && p->version > best->version))
            best = p;
    }
    return best;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const struct proc *proc;
    bool known;

    ENTER(NEED_NOTHING);
    if (!name || !function || version > CUDA_VERSION || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    proc = find_proc(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    *function = proc ? proc->function : NULL;
    if (status)
        *status = proc    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

/* The first version had no status: a miss is an error. */
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult result = cuGetProcAddress_v2(name, function, version, flags, NULL);

    return !result && !*function ? CUDA_ERROR_NOT_FOUND : result;
}
