/*
 * Return addresses of the calling thread, by libunwind, in the process itself: its address space is one whose memory is
 * read by functions of ours. So nothing that unwind tables, or a guess where there are none, lead to can fault: the
 * thread's own stack and the tables of loaded objects are read as they are, all else through the kernel, which refuses
 * what is not there.
 *
 * What libunwind makes of a return address is kept, until an object is unloaded.
 *
 * Threads: any. Not for signal handlers that interrupt it on the same thread: the caller sees to that.
 */
#ifndef KP_PRELOAD_WHO_UNWIND_H
#define KP_PRELOAD_WHO_UNWIND_H

#include <stddef.h>
#include <stdint.h>

/* The registers that a function has to keep, and where they were read. */
struct kp_registers {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

/* Those of the function it is called in, which must not have returned when they are used. A few stores. */
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

/* The return addresses of the functions around `from`, innermost first, into out[cap]; a function that was interrupted
 * by a signal stands with the place itself. Returns their number. Ends early where the stack cannot be followed. */
size_t kp_unwind(const struct kp_registers *from, uint64_t *out, size_t cap);

/* Changes when an object may have been unloaded, and an address may mean something else than before. */
uint64_t kp_unwind_generation(void);

#endif
