/* Examines the driver, its GPUs and CUPTI for `kprof doctor`. */
#ifndef KP_CMD_DOCTOR_CUDA_H
#define KP_CMD_DOCTOR_CUDA_H

#include "cmd/doctor.h"

/* Loads the driver and CUPTI, if present, for the life of the process. `cupti_dir` as in options.def. */
void kp_doctor_machine(const char *cupti_dir, struct kp_doctor_facts *out);

#endif
