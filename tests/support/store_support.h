/* What the tests of the session store share: a folder for each test, and a store that must open. */
#ifndef KP_TESTS_SUPPORT_STORE_SUPPORT_H
#define KP_TESTS_SUPPORT_STORE_SUPPORT_H

#include <limits.h>

#include "report/store/store.h"

/* The state of a test: a new folder, and the path of a session file in it that does not exist yet. The two functions
 * are a cmocka setup and teardown. */
struct kp_test_place {
    char folder[PATH_MAX / 2], file[PATH_MAX];
};

int kp_test_enter(void **state);
int kp_test_leave(void **state);

/* Fails the test if a function of the store has failed, or has left a message. */
void kp_test_done(int rc, char *const *err);

/* An existing session file, opened for reading; free with kp_store_close. */
struct kp_store *kp_test_reopen(const char *path);

#endif
