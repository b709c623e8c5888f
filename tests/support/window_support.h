/* A window of launches over memory that each of them changes irreversibly, in the fake driver, and the program that
 * runs it: for tests of code that repeats it. Calls are logged through fake_support.h: "launch", "issue" or "plain",
 * "rehearse". Valid until the context ends; one at a time. */
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
    int after[KP_TEST_CAPACITY], cursor_after; /* the result of one execution */
    int kernel[KP_TEST_MOST_LAUNCHES];         /* of each launch */
    bool wanted[KP_TEST_MOST_LAUNCHES];
    size_t n, n_wanted;
    struct kp_executed executed[KP_TEST_MOST_LAUNCHES];
    struct kp_window_job job;
    CUstream stream; /* passed to the hooks */
    bool foreign;    /* launches one of its own with each */
    unsigned us;     /* least duration of a launch */
};

extern struct kp_test_window kp_test_window;

/* In the current context, with memory of 0. */
void kp_test_window_open(void);
/* Loads the kernels again: functions without any launch so far. */
void kp_test_window_load(void);
/* A letter each, a append, i increment, c atomic count; capitals are wanted. */
void kp_test_window_of(const char *letters);

/* Makes launch `i`, with the given number of blocks of one warp. */
CUresult kp_test_window_launch(size_t i);
unsigned kp_test_window_blocks(size_t i);

/* Memory of 0 again. */
void kp_test_window_clear(void);
/* Executed once by the program. */
void kp_test_window_run(void);
/* Fails the test unless memory is the result of one execution. */
void kp_test_window_check_memory(void);

/* Makes `cupti` log its checkpoint calls as "save", "restore" and "drop", and then do what `fake` does. */
void kp_test_log_checkpoints(struct kp_cupti *cupti, const struct kp_cupti *fake);

#endif
