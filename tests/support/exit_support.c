/* A child that a test forks leaves by _exit, which loses what gcov has counted in it: here the counts are written
 * first. Linked with --wrap=_exit where coverage is counted. */
#ifdef KP_COVERAGE
#include <stdnoreturn.h>

void __gcov_dump(void);
noreturn void __real__exit(int status);
noreturn void __wrap__exit(int status);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
#endif
