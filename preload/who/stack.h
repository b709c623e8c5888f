/*
 * Call stacks of launches, each kept once, found again by its return addresses and Python lines. Names are looked up
 * at the end. Until then a stack consists of places in modules, so that a module which has been unloaded is still
 * known.
 *
 * Threads: any; a lock inside serialises. Do not use it in a forked child.
 */
#ifndef KP_PRELOAD_WHO_STACK_H
#define KP_PRELOAD_WHO_STACK_H

#include "preload/who/unwind.h"
#include "report/model/model.h"
#include "report/options/options.h"

/* Reads the kinds of stacks from call-stack. Call it once, before any launch. */
void kp_stack_configure(const struct kp_options *o);

/* Captures the stack of this thread from the function that read `from` on, without this library's own frames. Returns
 * the id of its kp_stack, from 1 on in the order of first capture; 0 if no stacks are requested, or if memory is short.
 * Keeps errno. */
uint64_t kp_stack_capture(const struct kp_registers *from);

/* Calls `fn` for each new stack, until it returns other than 0, which is returned. The functions have no names yet.
 * Without memory the rest waits for the next call. One thread at a time. */
int kp_stack_each_new(int (*fn)(const struct kp_stack *s, void *arg), void *arg);

/* Looks up functions and lines for all stacks so far, in the files of their modules. Call it at the end of the program:
 * it loads libkprof-symbols.so, which may wait for another thread that is loading a library. Without that library it
 * warns, and only finds names of exported functions. Returns the number of stacks; 0 if no name was looked up. */
uint64_t kp_stack_name_all(void);

/* Returns why requested Python frames are missing: a clause that completes a sentence, static; else NULL. */
const char *kp_stack_python_missing(void);

/* Finds the stack as far as known, to be freed with kp_frames_free. Python frames replace the interpreter's own.
 * Returns 0, -ENOENT or -ENOMEM. */
int kp_stack_get(uint64_t id, struct kp_stack *out);

#endif
