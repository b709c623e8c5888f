/*
 * The Python stack of the calling thread, read from CPython's own structures (python.def: their places by version).
 *
 * A launch is made from a call that Python is waiting for, so the frames of this thread stay as they are until the
 * launch returns, whether or not the thread holds the interpreter's lock. Nothing of Python is called but
 * PyGILState_GetThisThreadState, Py_GetVersion and Py_IsFinalizing, which need neither that lock nor a reference.
 * An interpreter in a library that was opened for its own use only (RTLD_LOCAL) is not seen, and of a thread that works
 * for several interpreters only the first one's frames.
 *
 * Threads: any. The first call looks symbols up, later ones read memory only: no locks, no allocation.
 */
#ifndef KP_PRELOAD_WHO_PYTHON_H
#define KP_PRELOAD_WHO_PYTHON_H

#include <stddef.h>
#include <stdint.h>

/* As many frames as a stack is worth keeping of. */
enum { KP_PYTHON_FRAMES = 64 };

/* One frame: what it executes, which identifies it while it lives, and the line of the call it is in (0: unknown). */
struct kp_python_frame {
    const void *code;
    uint32_t line;
};

/* The calling thread's frames into out[cap], innermost first. Returns their number: 0 when the thread runs no Python,
 * and when the interpreter is not one that can be read (kp_python_why_not) or is about to end. */
size_t kp_python_frames(struct kp_python_frame *out, size_t cap);

/* Function (the qualified name from Python 3.11 on) and file of a frame that kp_python_frames has just returned in this
 * thread; the caller frees both. "" for what cannot be read. UTF-8; what has no place in it becomes U+FFFD. Returns 0,
 * or -ENOMEM with both NULL. */
int kp_python_describe(const struct kp_python_frame *f, char **function, char **file);

/* Why the frames of the Python in this process cannot be read: a clause that completes a sentence, static. NULL when
 * they can, when there is no Python, and before the first kp_python_frames. */
const char *kp_python_why_not(void);

#endif
