/*
 * Finds what would stop profiling on this machine, each with its remedy.
 *
 * Threads: reads the environment of the process.
 */
#ifndef KP_CMD_DOCTOR_H
#define KP_CMD_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/sink.h"

enum { KP_DOCTOR_GPUS = 16, KP_DOCTOR_NAME_MAX = 128, KP_DOCTOR_TEXT_MAX = 512, KP_DOCTOR_FOLDER_MAX = 4096 };

/* Facts that only the driver and CUPTI know. Unknown text is "". */
struct kp_doctor_facts {
    bool has_driver;                       /* libcuda.so.1 loaded */
    char driver_error[KP_DOCTOR_TEXT_MAX]; /* why not, in the loader's words */
    int driver_version;                    /* as cuDriverGetVersion: 13000 */
    int init_code;                         /* the result of cuInit */
    struct kp_doctor_gpu {
        char name[KP_DOCTOR_NAME_MAX];
        int cc_major, cc_minor;
    } gpus[KP_DOCTOR_GPUS];
    size_t n_gpus;
    char cupti_version[32];                  /* "13.0"; "" without a suitable CUPTI */
    char cupti_folder[KP_DOCTOR_FOLDER_MAX]; /* its folder */
    char cupti_error[KP_DOCTOR_TEXT_MAX];    /* why there is none, and the remedy */
};

/* Paths that it reads. */
enum kp_doctor_path {
    KP_DOCTOR_PARAMS,       /* parameters of the driver's kernel module */
    KP_DOCTOR_CAPABILITIES, /* folder of MIG instances */
    KP_DOCTOR_CONTROL,      /* the driver's device file */
    KP_DOCTOR_PROCESSES,    /* folder with one folder a process */
    KP_DOCTOR_STATUS,       /* of this process */
    KP_DOCTOR_UID_MAP,      /* of this process */
    KP_DOCTOR_TCP,          /* sockets */
    KP_DOCTOR_PTRACE,
    KP_DOCTOR_DOCKER, /* a file that only containers of this kind have */
    KP_DOCTOR_PODMAN,
    KP_DOCTOR_CGROUP, /* of the first process */
    KP_DOCTOR_KERNEL, /* its release */
    KP_DOCTOR_TMP,    /* if TMPDIR is not set */
    KP_DOCTOR_PATHS,
};
extern const char *const kp_doctor_paths[KP_DOCTOR_PATHS];

struct kp_doctor_input {
    const struct kp_doctor_facts *facts;
    const char *const *paths;  /* kp_doctor_paths, or others in the same order */
    const char *library;       /* libkprof.so; NULL = not found */
    const char *glibc_version; /* "2.39" */
    const char *symbols_error; /* why the library of symbols next to it cannot be loaded; NULL = loads */
    size_t width;              /* of a line, which is broken there; 0 = any */
};

/* Writes a line for each check: OK, WARN or FAIL, its subject, and the remedy; then a verdict. *faults receives the
 * number of FAILs: with none, profiling can work. Returns 0, or an error of `out`. */
int kp_doctor(const struct kp_sink *out, const struct kp_doctor_input *input, size_t *faults);

#endif
