/* The kprof command as a program. Code that libkprof.so must not contain is here. */
#include <signal.h>
#include <stdlib.h>

#include "base/temporary.h"
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

/* Removes temporary folders, and lets the signal end the command. */
static void at_signal(int sig)
{
    kp_temporary_end();
    raise(sig);
}

/* Whatever ends the command, its temporary folders go with it. What a kill leaves, a later command sweeps. */
static void remove_at_ends(void)
{
    static const int ends[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2,
                               SIGXCPU, SIGXFSZ, SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL};
    struct sigaction act = {.sa_handler = at_signal, .sa_flags = SA_RESETHAND}, old;
    sigfillset(&act.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(ends[i], &act, NULL);
    atexit(kp_temporary_end);
}

int main(int argc, char **argv)
{
    remove_at_ends();
    return kp_main(argc, argv);
}
