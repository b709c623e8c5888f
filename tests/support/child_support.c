#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/child_support.h"
#include "tests/support/end_support.h"

void *kp_test_open_fake(const char *name)
{
    const char *build = getenv("KP_TEST_BUILD");
    char path[PATH_MAX];
    void *handle;

    snprintf(path, sizeof(path), "%s/fake/%s", build ? build : "build", name);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    return handle;
}

static int run_child(void (*body)(void))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would continue with the tests in the child */
        signal(SIGBUS, SIG_DFL);
        alarm(60);
        body();
        kp_test_end(RIGHT);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED + WTERMSIG(status);
}

static void run_case(void **state)
{
    const struct kp_test_case *c = *state;
    int code = run_child(c->body);

    if (code == SKIPPED)
        skip();
    assert_int_equal(code, c->expected);
}

void kp_test_cases(struct CMUnitTest *tests, const struct kp_test_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){cases[i].name, run_case, NULL, NULL, (void *)(uintptr_t)&cases[i]};
}
