/* The end of a child that a test has forked. */
#ifndef KP_TESTS_SUPPORT_END_SUPPORT_H
#define KP_TESTS_SUPPORT_END_SUPPORT_H

/* Ends the child as _exit does, but keeps what it has counted, where `make coverage` counts. */
_Noreturn void kp_test_end(int status);

#endif
