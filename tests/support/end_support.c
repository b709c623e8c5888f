#include "tests/support/end_support.h"

#include <unistd.h>

/* Part of each program that is compiled with --coverage: writes the counts, as the program's end does otherwise. */
void __gcov_exit(void) __attribute__((weak));

void kp_test_end(int status)
{
    if (__gcov_exit)
        __gcov_exit();
    _exit(status);
}
