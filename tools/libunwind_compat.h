/*
 * Forced into libunwind's sources (gcc -include, see tools/libunwind.sh). What of it is linked into libkprof.so loads
 * on an old glibc. It does nothing to the program that the unwinding here does not need: - signals stay as they are: a
 * launch from a signal handler that interrupts an unwinding is never unwound itself. So
 *   there is nothing that a handler could disturb, and two system calls a frame are saved;
 * - no pipe is opened: it is for checking addresses, which preload/who/unwind.c does in its own way.
 */
#ifndef KP_TOOLS_LIBUNWIND_COMPAT_H
#define KP_TOOLS_LIBUNWIND_COMPAT_H
#ifndef __ASSEMBLER__

#include "glibc_compat.h"
#include <signal.h>

#define sigprocmask(how, set, old) ((void)(set), (void)(old), 0)
#define pipe2(fds, flags)          ((void)(fds), (void)(flags), -1)

#endif
#endif
