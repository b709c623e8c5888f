/*
 * Reads the Python stack of the calling thread from CPython's own structures (python.def: their layout by version).
 * Python waits for the call that makes a launch, so the frames of this thread stay unchanged until the launch returns,
 * whether or not the thread holds the interpreter's lock.
 *
 * Calls only PyGILState_GetThisThreadState, Py_GetVersion and Py_IsFinalizing, which need neither that lock nor a
 * reference. Does not see an interpreter in a library opened with RTLD_LOCAL; if a thread works for several
 * interpreters, it sees only the first one's frames.
 *
 * Threads: any. The first call looks symbols up, later ones read memory only: no locks, no allocation.
 */
#ifndef KP_PRELOAD_WHO_PYTHON_H
#define KP_PRELOAD_WHO_PYTHON_H

#include <stddef.h>
#include <stdint.h>

/* The most frames worth keeping of a stack. */
enum { KP_PYTHON_FRAMES = 64 };

/* One frame: its code, which identifies it while it lives, and the line of its current call (0: unknown). */
struct kp_python_frame {
    const void *code;
    uint32_t line;
};

/* Writes the calling thread's frames to out[cap], innermost first. Returns their number: 0 if the thread runs no
 * Python, or if the interpreter is unreadable (kp_python_why_not) or about to end. */
size_t kp_python_frames(struct kp_python_frame *out, size_t cap);

/* Returns function (the qualified name from Python 3.11 on) and file of a frame just returned by kp_python_frames in
 * this thread. The caller frees both. "" if unreadable. UTF-8; characters without UTF-8 form become U+FFFD. Returns 0,
 * or -ENOMEM with both NULL. */
int kp_python_describe(const struct kp_python_frame *f, char **function, char **file);

/* Returns why this process's Python frames cannot be read: a clause that completes a sentence, static. NULL if they can
 * be read, without Python, and before the first kp_python_frames. */
const char *kp_python_why_not(void);

#endif
