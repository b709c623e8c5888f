/*
 * Call stacks of launches: which there were, each once, found again by its return addresses and Python lines. What they
 * are called is found out at the end; until then a stack is kept as places in modules, so that a module which has been
 * unloaded is still known.
 *
 * Threads: any; a lock inside serialises. In a forked child nothing here is used.
 */
#ifndef KP_PRELOAD_WHO_STACK_H
#define KP_PRELOAD_WHO_STACK_H

#include "preload/who/unwind.h"
#include "report/model/model.h"
#include "report/options/options.h"

/* Takes the kinds of stacks from call-stack. To be called once, before any launch. */
void kp_stack_configure(const struct kp_options *o);

/* The stack of this thread, from the function on that `from` was read in, without this library's own frames: the id of
 * its kp_stack, from 1 on in the order of their first capture. 0 when none is asked for, or without memory. errno is
 * kept. */
uint64_t kp_stack_capture(const struct kp_registers *from);

/* Calls `fn` for each stack that it has not been called for, until it returns other than 0, which is returned. The
 * functions have no names yet. Where memory is short the rest waits for the next time. One thread at a time. */
int kp_stack_each_new(int (*fn)(const struct kp_stack *s, void *arg), void *arg);

/* Looks functions and lines up for all stacks so far, in the files of their modules. For the end of the program: it
 * loads libkprof-symbols.so, which may wait for another thread that is loading a library. Where that cannot be had it
 * warns, and there are names of exported functions only. Returns the number of stacks; 0 when no name was looked up. */
uint64_t kp_stack_name_all(void);

/* Why there are no Python frames though they were asked for: a clause that completes a sentence, static; else NULL. */
const char *kp_stack_python_missing(void);

/* The stack as far as it is known, to be freed with kp_stack_free: Python frames stand where the interpreter's own
 * were. 0, -ENOENT or -ENOMEM. */
int kp_stack_get(uint64_t id, struct kp_stack *out);

#endif
