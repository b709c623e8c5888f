/*
 * Forced into libunwind's sources (gcc -include, see tools/libunwind.sh). The parts linked into libkprof.so then load
 * on an old glibc, and do nothing to the program that unwinding does not need:
 * - signals stay as they are: a launch from a signal handler that interrupts an unwinding is never unwound itself. A
 *   handler can therefore disturb nothing, and two system calls per frame are saved;
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
