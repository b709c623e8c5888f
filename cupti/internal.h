/* The loaded functions, shared by the files of cupti/ only. */
#ifndef KP_CUPTI_INTERNAL_H
#define KP_CUPTI_INTERNAL_H

#include <cuda.h>
#include <stdbool.h> /* cupti_profiler_host.h needs bool */
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <nvperf_cuda_host.h>

#include "cupti/checkpoint_abi.h"
#include "cupti/host.h"
#include "cupti/loader.h"

struct kp_cupti {
#define KP_CUPTI(lib, fn, needed, lost) __typeof__(fn) *fn;
#include "cupti/cupti_api.def"
#undef KP_CUPTI
    const struct kp_dl *dl;
    void *library; /* handle of libcupti */
    char version[16];
    char *path, *folder;   /* folder; "" if unknown */
    bool (*goes_on)(void); /* of a copy: polled by slow calls of host.h; NULL = go on */
};

/* Declares a zeroed params struct with its size set, which every CUPTI call of the profiler family needs. */
#define KP_PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}

/* Like kp_host_open and kp_host_schedule, for the metrics of either profiler. */
int kp_host_open_for(const struct kp_cupti *c, CUpti_ProfilerType profiler, const char *chip,
                     const uint8_t *availability, struct kp_host **out);
int kp_host_schedule_for(const struct kp_cupti *c, CUpti_ProfilerType profiler, const char *chip,
                         const uint8_t *availability, const char *const *names, size_t n, struct kp_config *out);

/* Returns 0 if the process's limits leave the memory that a call of CUPTI may need, else -ENOMEM. Any thread.
 * KP_VENDOR: without memory libcupti ends the process by an exception that nobody can catch. */
int kp_cupti_room(void);

/* Indexes of the functions in cupti_api.def. */
enum kp_cupti_function {
#define KP_CUPTI(lib, fn, needed, lost) KP_AT_##fn,
#include "cupti/cupti_api.def"
#undef KP_CUPTI
    KP_CUPTI_FUNCTIONS
};

/* Returns true if CUPTI is given up and the function's row in cupti_api.def forbids calling it then. Any thread. */
bool kp_cupti_refuses(enum kp_cupti_function f);

/* Calls a function of table `c`, the only way to do so. Returns its code, or KP_CUPTI_LOST if it is refused. */
#define KP_CALL(c, fn, ...) (kp_cupti_refuses(KP_AT_##fn) ? (int)KP_CUPTI_LOST : (int)(c)->fn(__VA_ARGS__))

/* Gives CUPTI up for this process: from now on KP_CALL refuses what would count, sample or record. Any thread.
 * KP_VENDOR: when CUPTI 13.0 cannot end PC sampling, because another process counts, it has freed what its other parts
 * use. Activity records and the query of available counters then read through null pointers. */
void kp_cupti_lose(void);
/* Takes that back, for tests, which use several libraries in one process. */
void kp_cupti_forget_loss(void);

/* Prints into a malloc'ed string; NULL without memory. */
char *kp_cupti_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
