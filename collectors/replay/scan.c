#include "collectors/replay/scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectors/replay/scan_code.h"

enum { MOVES = 1 << 16, KEY_BYTES = KP_SCAN_PARTS * KP_SCAN_WORDS * KP_SCAN_THREADS * 4 };

_Static_assert(KP_BLOCK_BYTES == KP_SCAN_THREADS * KP_SCAN_PARTS * KP_SCAN_UNITS * KP_UNIT_BYTES,
               "each thread reads its units");
_Static_assert(KP_DIGEST_BYTES == KP_SCAN_LANES * 8, "a digest is the sums of all lanes");
_Static_assert(sizeof(struct kp_block) == 16 && sizeof(struct kp_move) == 24, "as the kernels read them");

struct kp_scan {
    const struct kp_driver *d;
    unsigned sms;
    CUmodule module;
    CUfunction scan, move;
    CUstream stream;
    struct kp_vmem memory; /* the key, the moves, the number of blocks found */
    CUdeviceptr key, moves, n_found;
};

static CUresult load(struct kp_scan *s)
{
    const struct kp_driver *d = s->d;
    char *code = kp_scan_code();
    CUresult rc = code ? d->cuModuleLoadData(&s->module, code) : CUDA_ERROR_OUT_OF_MEMORY;
    free(code);
    if (rc == CUDA_SUCCESS)
        rc = d->cuModuleGetFunction(&s->scan, s->module, "kprof_scan");
    if (rc == CUDA_SUCCESS)
        rc = d->cuModuleGetFunction(&s->move, s->module, "kprof_move");
    return rc == CUDA_SUCCESS ? d->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING) : rc;
}

/* A key that no program can know: contents constructed to have the same digest have it only by chance. */
static CUresult make_key(struct kp_scan *s)
{
    unsigned char *key = malloc(KEY_BYTES);
    FILE *source = key ? fopen("/dev/urandom", "re") : NULL; /* an older glibc lacks getrandom() */
    size_t made = source ? fread(key, 1, KEY_BYTES, source) : 0;
    if (source)
        fclose(source);
    CUresult rc = made == KEY_BYTES ? s->d->cuMemcpyHtoD(s->key, key, KEY_BYTES) : CUDA_ERROR_OPERATING_SYSTEM;
    free(key);
    return rc;
}

CUresult kp_scan_open(const struct kp_driver *d, CUdevice device, unsigned sms, struct kp_scan **out)
{
    struct kp_scan *s = calloc(1, sizeof(*s));
    *out = NULL;
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->d = d;
    s->sms = sms;
    CUresult rc = kp_vmem_make(d, device, KEY_BYTES + MOVES * sizeof(struct kp_move) + KP_UNIT_BYTES, &s->memory);
    s->key = s->memory.at;
    s->moves = s->key + KEY_BYTES;
    s->n_found = s->moves + MOVES * sizeof(struct kp_move);
    if (rc == CUDA_SUCCESS)
        rc = load(s);
    if (rc == CUDA_SUCCESS)
        rc = make_key(s);
    if (rc != CUDA_SUCCESS) {
        kp_scan_close(s, true);
        return rc;
    }
    *out = s;
    return rc;
}

/* Reads the list that the scan made. */
static CUresult read_found(const struct kp_scan *s, CUdeviceptr list, uint32_t *found, uint32_t *n_found)
{
    CUresult rc = s->d->cuMemcpyDtoH(n_found, s->n_found, sizeof(*n_found));
    return rc == CUDA_SUCCESS && *n_found ? s->d->cuMemcpyDtoH(found, list, *n_found * sizeof(*found)) : rc;
}

CUresult kp_scan_run(struct kp_scan *s, CUdeviceptr blocks, uint32_t n, const struct kp_digests *before,
                     const struct kp_digests *now, CUdeviceptr list, uint32_t *found, uint32_t *n_found)
{
    CUdeviceptr digests = now->digests, units = now->units, old = before->digests;
    void *args[] = {&blocks, &n, &s->key, &digests, &units, &old, &list, &s->n_found};
    unsigned most = KP_SCAN_BLOCKS_PER_SM * s->sms;
    *n_found = 0;
    if (!n)
        return CUDA_SUCCESS;
    CUresult rc = s->d->cuMemsetD32Async(s->n_found, 0, 1, s->stream);
    if (rc == CUDA_SUCCESS)
        rc = s->d->cuLaunchKernel(s->scan, n < most ? n : most, 1, 1, KP_SCAN_THREADS, 1, 1, 0, s->stream, args, NULL);
    if (rc == CUDA_SUCCESS)
        rc = s->d->cuStreamSynchronize(s->stream);
    return rc == CUDA_SUCCESS ? read_found(s, list, found, n_found) : rc;
}

CUresult kp_scan_move(struct kp_scan *s, const struct kp_move *moves, size_t n)
{
    CUresult rc = CUDA_SUCCESS;
    void *args[] = {&s->moves};
    for (size_t at = 0; rc == CUDA_SUCCESS && at < n; at += MOVES) {
        unsigned here = n - at < MOVES ? (unsigned)(n - at) : MOVES;
        rc = s->d->cuMemcpyHtoD(s->moves, moves + at, here * sizeof(*moves));
        if (rc == CUDA_SUCCESS)
            rc = s->d->cuLaunchKernel(s->move, here, 1, 1, KP_MOVE_THREADS, 1, 1, 0, s->stream, args, NULL);
        if (rc == CUDA_SUCCESS)
            rc = s->d->cuStreamSynchronize(s->stream);
    }
    return rc;
}

uint64_t kp_scan_held(const struct kp_scan *s)
{
    return s ? s->memory.bytes : 0;
}

void kp_scan_close(struct kp_scan *s, bool context_alive)
{
    if (!s)
        return;
    if (context_alive) {
        if (s->stream)
            s->d->cuStreamDestroy(s->stream);
        if (s->module)
            s->d->cuModuleUnload(s->module);
        kp_vmem_free(s->d, &s->memory);
    }
    free(s);
}
