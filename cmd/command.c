/* The kprof command as a program. Code that libkprof.so must not contain is here. */
#include "cmd/main.h"

#ifdef KP_TOOLS_GLIBC_COMPAT_H
/* Replaces the start-up function, which the entry point asks for under the version of the build's glibc; the linker
 * redirects it here (--wrap). The same function exists under its first version. From glibc 2.34 on `init` is NULL,
 * and an older glibc then runs no constructors of the program: the command has none. */
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
