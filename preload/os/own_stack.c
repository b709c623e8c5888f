#include "preload/os/own_stack.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/lock.h"

/* The report stands on less than 24 KiB, beside what the program's own handlers need behind it. */
enum { ENOUGH = 128 << 10, OWN_BYTES = 1 << 20 };

static __thread void (*to_call)(void);

static void call(void)
{
    to_call();
}

static bool has_little(void)
{
    stack_t s;
    char here;
    return !sigaltstack(NULL, &s) && s.ss_flags & SS_ONSTACK &&
           (uintptr_t)&here - (uintptr_t)s.ss_sp < (uintptr_t)ENOUGH;
}

/* At the low end of the stack, as they would take 2 KiB of what is left. */
struct contexts {
    ucontext_t here, there;
};

void kp_on_own_stack(void (*fn)(void))
{
    void *stack = !to_call && has_little() ? mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)
                                           : MAP_FAILED;
    struct contexts *c = stack;
    if (stack == MAP_FAILED || getcontext(&c->there)) {
        fn();
        return;
    }
    /* A signal would find its alternate stack unused, and take it from the beginning: over the frames of the handler
     * that we are in. */
    sigset_t before = kp_signals_hold();
    to_call = fn;
    c->there.uc_stack = (stack_t){.ss_sp = c + 1, .ss_size = OWN_BYTES - sizeof(*c)};
    c->there.uc_link = &c->here;
    sigfillset(&c->there.uc_sigmask);
    makecontext(&c->there, call, 0);
    if (swapcontext(&c->here, &c->there))
        fn();
    to_call = NULL;
    kp_signals_let(&before);
    munmap(stack, OWN_BYTES);
}
