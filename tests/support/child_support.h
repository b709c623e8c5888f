/* Tests whose cases run in children, because they may end the process: those of the fakes. */
#ifndef KP_TESTS_SUPPORT_CHILD_SUPPORT_H
#define KP_TESTS_SUPPORT_CHILD_SUPPORT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* How a child ended. */
enum { RIGHT = 0, WRONG = 1, SKIPPED = 77, KILLED = 256 /* and the signal */ };

/* In a child: ends it if the condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(WRONG);                                                                                              \
        }                                                                                                              \
    } while (0)

/* A function of a fake, typed as its declaration. */
#define TAKE(handle, function)                                                                                         \
    __extension__({                                                                                                    \
        __typeof__(&function) function_;                                                                               \
        *(void **)&function_ = dlsym(handle, EXPORTED(function));                                                      \
        CHECK(function_);                                                                                              \
        function_;                                                                                                     \
    })
#define EXPORTED_(name) #name
#define EXPORTED(name)  EXPORTED_(name)

/* In a child: opens the fake with that file name, keeping its symbols local. */
void *kp_test_open_fake(const char *name);

struct kp_test_case {
    const char *name;
    void (*body)(void);
    int expected; /* RIGHT, an exit status, or KILLED and the signal; a body that ends with SKIPPED skips the case */
};

/* `n` tests, each of which runs a case in a child that has a minute; the cases must outlive them. */
struct CMUnitTest;
void kp_test_cases(struct CMUnitTest *tests, const struct kp_test_case *cases, size_t n);

#endif
