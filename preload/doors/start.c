/* The doors at the program's start and end. At the start one fact is noted; the library wakes when CUDA does. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/work.h"
#include "preload/os/log.h"
#include "preload/os/symbols.h"
#include "preload/process/process.h"
#include "preload/who/nvtx.h"

#define EXPORT __attribute__((visibility("default")))

typedef void (*end_function)(int status) __attribute__((noreturn));

static _Noreturn void go(const char *name, int status)
{
    kp_work_begin();
    end_function real = (end_function)(uintptr_t)kp_symbols_behind_door(name);
    kp_work_end();
    real(status);
}

static _Noreturn void end(const char *name, int status)
{
    kp_process_finish();
    go(name, status);
}

EXPORT void _exit(int status)
{
    end("_exit", status);
}

EXPORT void _Exit(int status)
{
    end("_Exit", status);
}

EXPORT void quick_exit(int status)
{
    end("quick_exit", status);
}

/* Runs the exit handlers; ours writes the report. */
EXPORT void exit(int status)
{
    kp_process_exit_called();
    go("exit", status);
}

typedef int (*main_function)(int argc, char **argv, char **envp);
typedef int (*start_function)(main_function program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                              void (*rtld_fini)(void), void *stack_end);

static main_function program_main;

static int call_main(int argc, char **argv, char **envp)
{
    int status = program_main(argc, argv, envp);
    kp_process_exit_called();
    go("exit", status);
}

int __libc_start_main(main_function program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

/* Wraps main, because the C library ends a return from main by an exit() that bypasses ours. Before 2.41 that thread
 * and one in exit() would run the handlers concurrently, and free memory still in use. */
EXPORT int __libc_start_main(main_function program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end)
{
    start_function real = (start_function)(uintptr_t)kp_symbols_behind_door("__libc_start_main");
    program_main = program;
    return real(call_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Costs one system call, for the file of stderr, and a look at the environment. */
__attribute__((constructor)) static void at_load(void)
{
    kp_process_watch_forks();
    kp_log_remember_stderr();
    kp_nvtx_offer();
}

/* Runs after the program's exit handlers and static destructors. If CUDA was used, the report has been written. */
__attribute__((destructor)) static void at_unload(void)
{
    kp_process_finish();
}
