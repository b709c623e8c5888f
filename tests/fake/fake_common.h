/*
 * What the three look-alike libraries share: counting of calls, injected failures, the log and the loud end on misuse.
 * Each library has its own copy of this state, so none needs another to be loaded.
 *
 * Environment
 *   FAKE_FAIL=function:code[:nth][,...]  the nth call (from 1; without nth every call) of `function` does nothing and
 *                                        returns `code`; `nth+` means that call and all later ones
 *   FAKE_LOG=path                        lines are appended: launches as they happen, calls by function at exit
 */
#ifndef TESTS_FAKE_COMMON_H
#define TESTS_FAKE_COMMON_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_hooks.h"

struct fake_counter {
    const char *name;
    uint64_t calls;
    struct fake_counter *next;
};

static struct fake_counter *fake_counters;
static pthread_mutex_t fake_counter_lock = PTHREAD_MUTEX_INITIALIZER;

/* One write per line: several processes may share the file. */
__attribute__((format(printf, 1, 2))) static void fake_log(const char *format, ...)
{
    const char *path = getenv("FAKE_LOG");
    char line[1024];
    va_list args;
    int fd, length;

    if (!path || !*path)
        return;
    va_start(args, format);
    length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, line, length) != length)
        perror("fake: cannot write FAKE_LOG");
    close(fd);
}

/* Misuse that a real driver answers with corruption or a crash must end a test at once, whatever the caller checks. */
__attribute__((format(printf, 1, 2), noreturn)) static void fake_misuse(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fake_log("misuse pid=%d %s\n", (int)getpid(), text);
    dprintf(STDERR_FILENO, "FAKE MISUSE: %s\n", text);
    syscall(SYS_exit_group, FAKE_MISUSE_EXIT); /* _exit may be a profiler's wrapper */
    __builtin_unreachable();
}

/* Like realloc(), with signals held back: a handler that exits must not find the allocator's lock held by its
 * thread. */
__attribute__((unused)) static void *fake_realloc(void *old, size_t bytes)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    old = realloc(old, bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return old;
}

/* Returns true if FAKE_FAIL names this call of `name`; *code is then what to return. */
static bool fake_injected(const char *name, uint64_t call, int *code)
{
    const char *entry = getenv("FAKE_FAIL");
    size_t length = strlen(name);

    for (; entry && *entry; entry = strchr(entry, ',') ? strchr(entry, ',') + 1 : NULL) {
        char *end;
        uint64_t nth;

        if (strncmp(entry, name, length) || entry[length] != ':')
            continue;
        *code = (int)strtol(entry + length + 1, &end, 10);
        if (*end != ':')
            return true;
        nth = strtoull(end + 1, &end, 10);
        if (call == nth || (*end == '+' && call > nth))
            return true;
    }
    return false;
}

/* FAKE_SLOW=name:ms:call: that call lasts this long; call 0: each. It is misuse if the library is gone before. */
static atomic_int fake_under_way;

static void fake_slow(const char *name, uint64_t call)
{
    const char *entry = getenv("FAKE_SLOW");
    size_t length = strlen(name);
    char *end;

    if (!entry || strncmp(entry, name, length) || entry[length] != ':')
        return;
    long ms = strtol(entry + length + 1, &end, 10);
    if (*end != ':' || (strtoull(end + 1, NULL, 10) && call != strtoull(end + 1, NULL, 10)))
        return;
    fake_under_way++;
    while (ms-- > 0) /* it does something now and then */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    fake_under_way--;
}

/* Counts a call; returns true if it must fail with *code. */
static bool fake_count(struct fake_counter *counter, int *code)
{
    uint64_t call;

    pthread_mutex_lock(&fake_counter_lock);
    if (!counter->calls) {
        counter->next = fake_counters;
        fake_counters = counter;
    }
    call = ++counter->calls;
    pthread_mutex_unlock(&fake_counter_lock);
    fake_slow(counter->name, call);
    return fake_injected(counter->name, call, code);
}

/* The real ones take themselves down in exit handlers. */
static void fake_tear_down(void)
{
    if (fake_under_way)
        fake_misuse("torn down while a call is under way");
}

__attribute__((constructor)) static void fake_loaded(void)
{
    atexit(fake_tear_down);
}

__attribute__((destructor)) static void fake_log_calls(void)
{
    for (const struct fake_counter *c = fake_counters; c; c = c->next)
        fake_log("calls pid=%d %s %llu\n", (int)getpid(), c->name, (unsigned long long)c->calls);
}

/* FNV-1a, 64 bits. */
#define FAKE_HASH_START 0xcbf29ce484222325ull

static inline uint64_t fake_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    return hash;
}

#endif
