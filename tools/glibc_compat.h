/*
 * Forced into every source of ours (gcc -include): keeps libkprof.so loadable on systems with an older glibc than that
 * of the build machine. `make check-abi` shows names that are missing here.
 */
#ifndef KP_TOOLS_GLIBC_COMPAT_H
#define KP_TOOLS_GLIBC_COMPAT_H

/* The linker chooses the version of a symbol when it sees it. glibc gave names new versions when it moved libpthread
 * and libdl into libc.so.6 (2.32 to 2.34), so each is requested with the version it has always had. On a glibc from
 * before the move these names are outside libc.so.6. A call ends the process unless the program itself is linked with
 * libpthread or libdl; a driver loaded by dlopen does not help, because its libraries are local to it. So no code that
 * runs in every process may call them, and `make check-abi` lists those in use. dlsym and dlvsym are not here: libkprof
 * defines them, and a definition must not carry glibc's version. The assembler drops a row whose name the source does
 * not use. */
#define KP_GLIBC_SYMBOL(name, version) __asm__(".symver " #name "," #name "@GLIBC_" #version);
KP_GLIBC_SYMBOL(dladdr, 2.2.5)
KP_GLIBC_SYMBOL(dladdr1, 2.3.3)
KP_GLIBC_SYMBOL(dlclose, 2.2.5)
KP_GLIBC_SYMBOL(dlerror, 2.2.5)
KP_GLIBC_SYMBOL(dlinfo, 2.3.3)
KP_GLIBC_SYMBOL(dlopen, 2.2.5)
KP_GLIBC_SYMBOL(pthread_attr_getstack, 2.2.5)
KP_GLIBC_SYMBOL(pthread_create, 2.2.5)
KP_GLIBC_SYMBOL(pthread_detach, 2.2.5)
KP_GLIBC_SYMBOL(pthread_getspecific, 2.2.5)
KP_GLIBC_SYMBOL(pthread_join, 2.2.5)
KP_GLIBC_SYMBOL(pthread_key_create, 2.2.5)
KP_GLIBC_SYMBOL(pthread_key_delete, 2.2.5)
KP_GLIBC_SYMBOL(pthread_kill, 2.2.5)
KP_GLIBC_SYMBOL(pthread_mutex_trylock, 2.2.5)
KP_GLIBC_SYMBOL(pthread_mutexattr_destroy, 2.2.5)
KP_GLIBC_SYMBOL(pthread_mutexattr_init, 2.2.5)
KP_GLIBC_SYMBOL(pthread_mutexattr_settype, 2.2.5)
KP_GLIBC_SYMBOL(pthread_once, 2.2.5)
KP_GLIBC_SYMBOL(pthread_rwlock_rdlock, 2.2.5)
KP_GLIBC_SYMBOL(pthread_rwlock_unlock, 2.2.5)
KP_GLIBC_SYMBOL(pthread_rwlock_wrlock, 2.2.5)
KP_GLIBC_SYMBOL(pthread_setname_np, 2.12)
KP_GLIBC_SYMBOL(pthread_setspecific, 2.2.5)
KP_GLIBC_SYMBOL(pthread_sigmask, 2.2.5)
KP_GLIBC_SYMBOL(sem_destroy, 2.2.5)
KP_GLIBC_SYMBOL(sem_init, 2.2.5)
KP_GLIBC_SYMBOL(sem_post, 2.2.5)
KP_GLIBC_SYMBOL(sem_wait, 2.2.5)
#undef KP_GLIBC_SYMBOL

/* From 2.38 on, _GNU_SOURCE turns strtol, sscanf and their like into C23 variants that older libraries lack. */
#include <features.h>
#ifdef __GLIBC_USE_C2X_STRTOL
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#endif
#ifdef __GLIBC_USE_C23_STRTOL
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
#endif

/* The stat family became symbols of libc.so.6 only in 2.33, and the entry points from before are not in its static
 * archive. The kernel's struct stat is glibc's on x86-64, so the calls go straight to it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define stat(path, st)               ((int)syscall(SYS_newfstatat, AT_FDCWD, (path), (st), 0))
#define lstat(path, st)              ((int)syscall(SYS_newfstatat, AT_FDCWD, (path), (st), AT_SYMLINK_NOFOLLOW))
#define fstat(fd, st)                ((int)syscall(SYS_fstat, (fd), (st)))
#define fstatat(fd, path, st, flags) ((int)syscall(SYS_newfstatat, (fd), (path), (st), (flags)))

#endif
