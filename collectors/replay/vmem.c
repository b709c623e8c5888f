#include "collectors/replay/vmem.h"

bool kp_vmem_available(const struct kp_driver *d)
{
    return d->cuMemCreate && d->cuMemAddressReserve && d->cuMemMap && d->cuMemSetAccess && d->cuMemUnmap &&
           d->cuMemRelease && d->cuMemAddressFree && d->cuMemGetAllocationGranularity;
}

void kp_vmem_unmap(const struct kp_driver *d, CUdeviceptr at, size_t bytes, size_t mapped)
{
    if (!mapped || d->cuMemUnmap(at, mapped) == CUDA_SUCCESS)
        d->cuMemAddressFree(at, bytes);
}

/* Maps the memory, and grants the device access. */
static CUresult map(const struct kp_driver *d, CUmemGenericAllocationHandle memory, const CUmemLocation *where,
                    struct kp_vmem *m)
{
    const CUmemAccessDesc access = {.location = *where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult rc = d->cuMemAddressReserve(&m->at, m->bytes, 0, 0, 0);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = d->cuMemMap(m->at, m->bytes, 0, memory, 0);
    size_t mapped = rc == CUDA_SUCCESS ? m->bytes : 0;
    if (mapped && (rc = d->cuMemSetAccess(m->at, m->bytes, &access, 1)) == CUDA_SUCCESS)
        return rc;
    kp_vmem_unmap(d, m->at, m->bytes, mapped);
    return rc;
}

CUresult kp_vmem_make(const struct kp_driver *d, CUdevice device, size_t bytes, struct kp_vmem *out)
{
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle memory;
    size_t unit = 0;
    *out = (struct kp_vmem){.at = 0};
    CUresult rc = d->cuMemGetAllocationGranularity(&unit, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct kp_vmem m = {.bytes = (bytes + unit - 1) / unit * unit};
    if ((rc = d->cuMemCreate(&memory, m.bytes, &what, 0)) != CUDA_SUCCESS)
        return rc;
    rc = map(d, memory, &what.location, &m);
    d->cuMemRelease(memory); /* it lives as long as its mapping */
    if (rc == CUDA_SUCCESS)
        *out = m;
    return rc;
}

void kp_vmem_free(const struct kp_driver *d, struct kp_vmem *m)
{
    if (m->at)
        kp_vmem_unmap(d, m->at, m->bytes, m->bytes);
    *m = (struct kp_vmem){.at = 0};
}
