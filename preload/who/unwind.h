/*
 * Finds return addresses of the calling thread by libunwind, in the process itself. Our own functions read the memory,
 * so no address from unwind tables, or guessed without them, can cause a fault. The thread's own stack and the tables
 * of loaded objects are read directly, everything else through the operating system, which refuses invalid addresses.
 * libunwind's rules for a return address are cached until an object is unloaded.
 *
 * Threads: any. Not reentrant: the caller must keep out signal handlers that interrupt it on the same thread.
 */
#ifndef KP_PRELOAD_WHO_UNWIND_H
#define KP_PRELOAD_WHO_UNWIND_H

#include <stddef.h>
#include <stdint.h>

/* The callee-saved registers, and where they were read. */
struct kp_registers {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

/* Reads the registers of the calling function, which must not have returned when they are used. Costs a few stores. */
static inline __attribute__((always_inline)) void kp_registers_here(struct kp_registers *r)
{
    __asm__ volatile("movq %%rbx, 0(%0)\n\t"
                     "movq %%rbp, 8(%0)\n\t"
                     "movq %%r12, 16(%0)\n\t"
                     "movq %%r13, 24(%0)\n\t"
                     "movq %%r14, 32(%0)\n\t"
                     "movq %%r15, 40(%0)\n\t"
                     "movq %%rsp, 48(%0)\n\t"
                     "leaq 0(%%rip), %%rax\n\t"
                     "movq %%rax, 56(%0)"
                     :
                     : "D"(r)
                     : "rax", "memory");
}

/* Writes the return addresses of the functions around `from`, innermost first, to out[cap]. For a function interrupted
 * by a signal it writes the interrupted address itself. Returns their number. Ends early if the stack cannot be
 * followed. */
size_t kp_unwind(const struct kp_registers *from, uint64_t *out, size_t cap);

/* Returns a number that changes when an object may have been unloaded, and an address may have changed its meaning. */
uint64_t kp_unwind_generation(void);

#endif
