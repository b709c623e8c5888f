/* A window of launches over memory that each of them changes for good, in the fake driver, and the program that runs
 * it: for the tests of what runs it again. Calls are logged as fake_support.h has it: "launch", "issue" or "plain",
 * "rehearse". Good until the context ends; one at a time. */
#ifndef KP_TESTS_SUPPORT_WINDOW_SUPPORT_H
#define KP_TESTS_SUPPORT_WINDOW_SUPPORT_H

#include "collectors/run/collector.h"

enum { KP_TEST_MOST_LAUNCHES = 80, KP_TEST_CAPACITY = 4096 };
enum { KP_TEST_APPEND, KP_TEST_INCREMENT, KP_TEST_ATOMIC, KP_TEST_KERNELS };

extern const char *const kp_test_kernel_names[KP_TEST_KERNELS];

struct kp_test_window {
    CUmodule module;
    CUfunction kernels[KP_TEST_KERNELS];
    CUdeviceptr buffer, cursor;
    int after[KP_TEST_CAPACITY], cursor_after; /* what one execution leaves */
    int kernel[KP_TEST_MOST_LAUNCHES];         /* of each launch */
    bool wanted[KP_TEST_MOST_LAUNCHES];
    size_t n, n_wanted;
    struct kp_executed executed[KP_TEST_MOST_LAUNCHES];
    struct kp_window_job job;
    CUstream stream; /* that the hooks are told */
    bool foreign;    /* launches one of its own beside each */
    unsigned us;     /* that a launch takes, at least */
};

extern struct kp_test_window kp_test_window;

/* In the current context, with memory of 0. */
void kp_test_window_open(void);
/* Loads the kernels anew: functions that nothing has been launched of. */
void kp_test_window_load(void);
/* A letter each, a append, i increment, c atomic count; capitals are wanted. */
void kp_test_window_of(const char *letters);

/* Launch `i`, of so many blocks of a warp. */
CUresult kp_test_window_launch(size_t i);
unsigned kp_test_window_blocks(size_t i);

/* Memory of 0 again. */
void kp_test_window_clear(void);
/* Executed once by the program. */
void kp_test_window_run(void);
/* Fails the test unless memory is what one execution leaves. */
void kp_test_window_check_memory(void);

/* Has `cupti` log what it does of checkpoints as "save", "restore" and "drop", and then do what `fake` does. */
void kp_test_log_checkpoints(struct kp_cupti *cupti, const struct kp_cupti *fake);

#endif
