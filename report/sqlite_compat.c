/*
 * What the statically linked SQLite calls outside itself and must not take from the system's libraries. The Makefile
 * renames `X` to `kp_sqlite_X` in a copy of SQLite's archive for each function `kp_sqlite_X` defined here, so this file
 * is the only list of them. The reasons are of three kinds:
 * - libm must not be pulled into a program that did not ask for it;
 * - several of these names have symbol versions that older systems lack (glibc 2.28 to 2.34);
 * - the dl functions are doors of libkprof itself, and threads and locks are not SQLite's business here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

/* No header can declare these: their only callers are in the renamed archive. */
#define SHIM(type, name, ...)                                                                                          \
    type kp_sqlite_##name(__VA_ARGS__);                                                                                \
    type kp_sqlite_##name(__VA_ARGS__)

/* SQL's math functions: not used in any statement of ours; SQLite turns the NaN into NULL. */
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

/* By their plain names, which tools/glibc_compat.h keeps loadable everywhere. */
SHIM(int, stat64, const char *path, struct stat *st)
{
    return stat(path, st);
}

SHIM(int, lstat64, const char *path, struct stat *st)
{
    return lstat(path, st);
}

SHIM(int, fstat64, int fd, struct stat *st)
{
    return fstat(fd, st);
}

/* Variadic in libc; every command takes one argument of a register's width, or none. */
SHIM(int, fcntl64, int fd, int command, void *argument)
{
    return fcntl(fd, command, argument);
}

/* Extensions are never loaded. */
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

/* The store's callers serialise every use of SQLite (store.h), so its own locks have nothing to keep apart. */
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
