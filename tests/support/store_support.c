#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

int kp_test_enter(void **state)
{
    struct kp_test_place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    snprintf(p->folder, sizeof p->folder, "%s", kp_test_folder());
    snprintf(p->file, sizeof p->file, "%s/session.kprof", p->folder);
    *state = p;
    return 0;
}

int kp_test_leave(void **state)
{
    struct kp_test_place *p = *state;
    kp_test_remove_folder(p->folder);
    free(p);
    return 0;
}

void kp_test_done(int rc, char *const *err)
{
    if (rc || *err)
        fail_msg("%d: %s", rc, *err ? *err : "(no message)");
}

struct kp_store *kp_test_reopen(const char *path)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    int rc = kp_store_open(path, &s, &err);
    kp_test_done(rc, &err);
    return s;
}
