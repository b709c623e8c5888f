/* The kprof command as a program. What only it is made of stays out of libkprof.so. */
#include "cmd/main.h"

#ifdef KP_TOOLS_GLIBC_COMPAT_H
/* The entry point asks for the start-up function under the version that the glibc of the build has. The linker sends
 * it here (--wrap), and the function is the same under the version that it has always had. From glibc 2.34 on `init` is
 * NULL, and an older one then runs no constructors of the program: the command has none. */
int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int first_libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                          void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__asm__(".symver first_libc_start_main,__libc_start_main@GLIBC_2.2.5");

int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    return first_libc_start_main(program, argc, argv, init, fini, rtld_fini, stack_end);
}
#endif

int main(int argc, char **argv)
{
    return kp_main(argc, argv);
}
