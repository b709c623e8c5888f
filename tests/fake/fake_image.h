/*
 * The counter-data image of the fake range profiler: it records which kernels ran in each pass of each range, instead
 * of counters. The values "measured" are computed from names, so that a test can compute them too.
 */
#ifndef TESTS_FAKE_IMAGE_H
#define TESTS_FAKE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_IMAGE_MAGIC "FAKECTR1"
#define FAKE_MAX_PASSES  128

struct fake_image_pass {
    uint32_t kernels;
    uint64_t chain;      /* hash over name, shape and arguments of the kernels, in their order */
    uint64_t data_chain; /* hash over the memory that their arguments led to, before each ran */
};

/* In memory of any alignment. */
__extension__ typedef unsigned __int128 fake_passes __attribute__((aligned(1)));

struct fake_image_range {
    char name[64];           /* the range: "0", "1" … in auto range mode, else as pushed */
    char kernel[256];        /* the first kernel in it */
    uint32_t threads;        /* of its blocks */
    uint32_t number;         /* the first one among its arguments */
    uint32_t reaches_host;   /* 1: a kernel in it writes host memory */
    uint32_t after_another;  /* 1: the launch before was of another kernel, counted or not */
    fake_passes passes_seen; /* a bit for each */
    struct fake_image_pass pass[FAKE_MAX_PASSES];
};

/* Followed by `n_metrics` hashes of base names (what precedes the first dot), then by `max_ranges` ranges. */
struct fake_image {
    char magic[8];
    uint64_t size;
    uint64_t n_metrics;
    uint32_t max_ranges, n_ranges, n_dropped, n_passes;
    uint64_t processes; /* that its passes ran in, less one */
    uint64_t config;    /* hash of the config image that its passes counted */
};

/*
 * The value of a metric in a range: let u be the FNV-1a hash (64 bits) of "metric\nkernel\nrange index" shifted right
 * by 11 and divided by 2^53, so that 0 <= u < 1. Then it is 100 u               when the name holds "pct", 32 u when it
 * ends in ".ratio", 1e9 (1 + u)         when it holds "per_second", floor(1 + 1e6 u)    for all others. Exported by the
 * fake libcupti.so.13. What kernels write to host memory is 0 but for those that do. With FAKE_BEST_BLOCK=N in the
 * environment, the duration of a kernel is 1 us for blocks of N threads. It is the longer the further its blocks are
 * from that: 1000 (1 + |threads - N| / N).
 */
double fake_cupti_value(const char *metric, const char *kernel, size_t range);

/* Additional bytes per range in a session's image: the real one has more than a megabyte. */
extern size_t fake_cupti_session_bytes;

/*
 * PM sampling: a kernel lasts fake_cupti_pm_samples samples, with FAKE_PM_IDLE idle ones before the first kernel and
 * after each. The value of sample `index` of a kernel is fake_cupti_value's of that range; of an idle one ("") 0.
 * Samples that do not fit into the counter data wait for the next decoding; with fake_cupti_pm_lose_rest set to 1 they
 * are lost, as in CUPTI 13.0. fake_cupti_pm_more_idle: more idle samples before the first kernel and after each.
 */
enum { FAKE_PM_IDLE = 3, FAKE_PM_RECORD = 64 /* bytes of the hardware buffer that a sample takes */ };
size_t fake_cupti_pm_samples(const char *kernel);
double fake_cupti_pm_value(const char *metric, const char *kernel, size_t index);
extern int fake_cupti_pm_lose_rest;
extern size_t fake_cupti_pm_more_idle[2];

/* Bytes of the device's buffer that one sample of warps needs. */
extern uint64_t fake_cupti_pc_sample_bytes;

#endif
