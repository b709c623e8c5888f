/*
 * Replaces functions that the statically linked SQLite must not use from the system's libraries. For each function
 * `kp_sqlite_X` defined here, the Makefile renames `X` to `kp_sqlite_X` in a copy of SQLite's archive. So this file is
 * the only list of them. There are four reasons:
 * - a program that does not use libm must not get it;
 * - several of these names have symbol versions that older systems lack (glibc 2.28 to 2.34);
 * - SQLite's descriptors must not use the program's numbers, or be mistaken for the program's;
 * - the dl functions are doors of libkprof itself, and SQLite needs no threads or locks here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/descriptor.h"

/* No header declares these: their only callers are in the renamed archive. */
#define SHIM(type, name, ...)                                                                                          \
    type kp_sqlite_##name(__VA_ARGS__);                                                                                \
    type kp_sqlite_##name(__VA_ARGS__)

/* SQL's math functions, which our statements do not use; SQLite turns the NaN into NULL. */
#define MATH1(name)                                                                                                    \
    SHIM(double, name, double x)                                                                                       \
    {                                                                                                                  \
        (void)x;                                                                                                       \
        return __builtin_nan("");                                                                                      \
    }
#define MATH2(name)                                                                                                    \
    SHIM(double, name, double x, double y)                                                                             \
    {                                                                                                                  \
        (void)x;                                                                                                       \
        (void)y;                                                                                                       \
        return __builtin_nan("");                                                                                      \
    }

MATH1(acos)
MATH1(acosh)
MATH1(asin)
MATH1(asinh)
MATH1(atan)
MATH1(atanh)
MATH1(ceil)
MATH1(cos)
MATH1(cosh)
MATH1(exp)
MATH1(floor)
MATH1(log)
MATH1(log10)
MATH1(log2)
MATH1(sin)
MATH1(sinh)
MATH1(sqrt)
MATH1(tan)
MATH1(tanh)
MATH1(trunc)
MATH2(atan2)
MATH2(fmod)
MATH2(pow)

/* Calls them by their plain names, which tools/glibc_compat.h keeps loadable everywhere. */
SHIM(int, stat64, const char *path, struct stat *st)
{
    return stat(path, st);
}

SHIM(int, lstat64, const char *path, struct stat *st)
{
    return lstat(path, st);
}

/* ---- files ---- */

/* A file that SQLite has open. The program may close the descriptor and open another file under its number. So each
 * use checks the descriptor, and opens the file again if needed. SQLite keeps using the first number. */
static struct file {
    int number, fd; /* number 0: a free entry */
    int access;
    struct kp_descriptor_file file;
    char *path;
} files[64]; /* further files use their numbers unchecked */

static struct file *find(int number)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (files[i].number == number)
            return &files[i];
    return NULL;
}

/* Returns the descriptor for a number; -1: the file is no longer available. */
static int use(int number)
{
    struct file *f = find(number);
    if (!f)
        return number;
    if (kp_descriptor_is(f->fd, &f->file))
        return f->fd;
    return f->fd = kp_descriptor_open_again(f->path, f->access, &f->file);
}

/* Opens a file. The system may hand out the number of an entry again. */
static int open_new(const char *path, int flags, mode_t mode)
{
    int fd = kp_descriptor_raise(open(path, flags, mode));
    if (fd < 0 || !find(fd))
        return fd;
    int other = open_new(path, flags & ~O_EXCL, mode);
    close(fd);
    return other;
}

/* Variadic in libc; SQLite always gives the mode. */
SHIM(int, open64, const char *path, int flags, mode_t mode)
{
    int fd = open_new(path, flags, mode);
    struct file *f = fd < 0 ? NULL : find(0);
    if (f && (f->path = strdup(path))) {
        f->number = f->fd = fd;
        f->access = flags & O_ACCMODE;
        f->file = kp_descriptor_file(fd);
    }
    return fd;
}

SHIM(int, close, int fd)
{
    struct file *f = find(fd);
    if (!f)
        return close(fd);
    int rc = kp_descriptor_is(f->fd, &f->file) ? close(f->fd) : 0;
    free(f->path);
    *f = (struct file){.number = 0};
    return rc;
}

SHIM(ssize_t, read, int fd, void *to, size_t n)
{
    return read(use(fd), to, n);
}

SHIM(ssize_t, pread64, int fd, void *to, size_t n, off_t at)
{
    return pread(use(fd), to, n, at);
}

SHIM(ssize_t, write, int fd, const void *from, size_t n)
{
    return write(use(fd), from, n);
}

SHIM(ssize_t, pwrite64, int fd, const void *from, size_t n, off_t at)
{
    return pwrite(use(fd), from, n, at);
}

SHIM(int, ftruncate64, int fd, off_t size)
{
    return ftruncate(use(fd), size);
}

/* SQLite gives a journal the mode and owner of its file, even one that it only inspects. Our journals have them
 * already, and others must stay as they are. */
SHIM(int, fchmod, int fd, mode_t mode)
{
    (void)fd;
    (void)mode;
    return 0;
}

SHIM(int, fchown, int fd, uid_t user, gid_t group)
{
    (void)fd;
    (void)user;
    (void)group;
    return 0;
}

SHIM(int, fdatasync, int fd)
{
    return fdatasync(use(fd));
}

SHIM(int, fstat64, int fd, struct stat *st)
{
    return fstat(use(fd), st);
}

/* Variadic in libc; every command has one argument of a register's width, or none. */
SHIM(int, fcntl64, int fd, int command, void *argument)
{
    return fcntl(use(fd), command, argument);
}

/* Refuses: extensions are never loaded. */
SHIM(void *, dlopen, const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NULL;
}

SHIM(void *, dlsym, void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

SHIM(int, dlclose, void *handle)
{
    (void)handle;
    return -1;
}

SHIM(const char *, dlerror, void)
{
    return "extensions are not supported";
}

/* SQLite sorts in the calling thread when it gets no worker. */
SHIM(int, pthread_create, void *thread, const void *attr, void *(*start)(void *), void *arg)
{
    (void)thread;
    (void)attr;
    (void)start;
    (void)arg;
    return EAGAIN;
}

SHIM(int, pthread_join, unsigned long thread, void **value)
{
    (void)thread;
    (void)value;
    return ESRCH;
}

/* The store's callers serialise every use of SQLite (store.h), so its locks are not needed. */
#define LOCK1(name)                                                                                                    \
    SHIM(int, name, void *object)                                                                                      \
    {                                                                                                                  \
        (void)object;                                                                                                  \
        return 0;                                                                                                      \
    }

LOCK1(pthread_mutex_destroy)
LOCK1(pthread_mutex_lock)
LOCK1(pthread_mutex_trylock)
LOCK1(pthread_mutex_unlock)
LOCK1(pthread_mutexattr_destroy)
LOCK1(pthread_mutexattr_init)

SHIM(int, pthread_mutex_init, void *mutex, const void *attr)
{
    (void)mutex;
    (void)attr;
    return 0;
}

SHIM(int, pthread_mutexattr_settype, void *attr, int type)
{
    (void)attr;
    (void)type;
    return 0;
}
