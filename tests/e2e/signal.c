/* LINK: -lgcc_s */
/*
 * A library to preload after libkprof.so: it raises SIGALRM in one call that libkprof.so makes on the main thread,
 * directly or by way of another library, of functions that have locks: the allocator's, the loader's, stdio's, those of
 * exit handlers and of threads. The program's own calls are left alone, those of the driver that kprof passes on, too.
 *
 *   SIGNAL_AT=N       in the N-th of these calls, from 1
 *   SIGNAL_STEP=N     before libkprof.so changes the main thread's mask, or looks which signals wait, for the N-th
 * time: a signal that comes between two of these steps acts at the second one, wherever it comes, so that these are all
 * points SIGNAL_LIST=FILE  writes, when the process ends: how many calls there were, in how many of them a handler of
 * SIGALRM would have run, how many steps, and for each place of the open calls, offsets in libkprof.so, the innermost
 * first SIGNAL_PASSES=... pairs of addresses (hexadecimal) in libkprof.so between which it calls what it passes on
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
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
#include <unistd.h>
#include <unwind.h>

enum { MOST_PASSES = 4096, MOST_PLACES = 256, DEPTH = 4, FRAMES = 64 };

struct area {
    uintptr_t begin, end;
};

/* The C library's own functions, under names that nobody interposes. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);
void *__libc_memalign(size_t align, size_t size);

int __cxa_atexit(void (*fn)(void *), void *arg, void *object);

static struct area program, own, passes[MOST_PASSES];
static size_t n_passes;
static unsigned long at, calls, open_calls, at_step, steps;
static pid_t owner;
static struct place {
    uintptr_t frames[DEPTH];
    unsigned long n;
} places[MOST_PLACES];
static size_t n_places;
static __thread bool inside __attribute__((tls_model("initial-exec")));

static bool within(struct area a, uintptr_t p)
{
    return p >= a.begin && p < a.end;
}

static int find_areas(struct dl_phdr_info *info, size_t size, void *data)
{
    struct area a = {UINTPTR_MAX, 0};
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            a.begin = begin < a.begin ? begin : a.begin;
            a.end = begin + info->dlpi_phdr[i].p_memsz > a.end ? begin + info->dlpi_phdr[i].p_memsz : a.end;
        }
    if (!program.end) /* the first one */
        program = a;
    else if (strstr(info->dlpi_name, "libkprof.so"))
        own = a;
    return own.end != 0;
}

/* Who makes a call: frames of libkprof.so, up to the program's. */
struct chain {
    uintptr_t frames[DEPTH];
    int n, looked_at;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *data)
{
    struct chain *c = data;
    uintptr_t pc = _Unwind_GetIP(context) - 1;
    if (within(program, pc) || ++c->looked_at > FRAMES || c->n == DEPTH)
        return _URC_END_OF_STACK;
    if (within(own, pc))
        c->frames[c->n++] = pc - own.begin;
    return _URC_NO_REASON;
}

static bool passes_on(uintptr_t offset)
{
    for (size_t i = 0; i < n_passes; i++)
        if (within(passes[i], offset))
            return true;
    return false;
}

static void note(const struct chain *c)
{
    size_t i = 0;
    open_calls++;
    while (i < n_places && memcmp(places[i].frames, c->frames, sizeof(c->frames)))
        i++;
    if (i == MOST_PLACES)
        return;
    memcpy(places[i].frames, c->frames, sizeof(c->frames));
    places[i].n++;
    n_places += i == n_places;
}

/* The system call; errno stays. */
static long raw(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
}

static void raise_here(void)
{
    raw(SYS_tgkill, owner, owner, SIGALRM, 0, 0, 0);
}

/* libkprof.so looks at signals by system calls alone. */
long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    bool changes = number == SYS_rt_sigprocmask && a[1] && a[0] >= SIG_BLOCK && a[0] <= SIG_SETMASK;
    if ((changes || number == SYS_rt_sigpending) && within(own, (uintptr_t)__builtin_return_address(0)) &&
        owner == raw(SYS_gettid, 0, 0, 0, 0, 0, 0) && owner == raw(SYS_getpid, 0, 0, 0, 0, 0, 0) && ++steps == at_step)
        raise_here();
    long result = raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

static bool is_open(void)
{
    uint64_t mask = 0;
    raw(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask), 0, 0);
    return !(mask >> (SIGALRM - 1) & 1);
}

/* A call of such a function. */
static void reach(void)
{
    struct chain c = {.n = 0};
    int error = errno;
    if (inside || at_step || !own.end || owner != getpid() || owner != raw(SYS_gettid, 0, 0, 0, 0, 0, 0))
        return;
    inside = true;
    _Unwind_Backtrace(look, &c);
    bool counts = c.n && !passes_on(c.frames[0]);
    calls += counts;
    if (counts && is_open())
        note(&c);
    inside = false;
    if (counts && calls == at)
        raise_here();
    errno = error;
}

#define NEXT(result, name, parameters, arguments)                                                                      \
    result name parameters                                                                                             \
    {                                                                                                                  \
        static result(*next) parameters;                                                                               \
        if (!next) {                                                                                                   \
            void *found = dlsym(RTLD_NEXT, #name);                                                                     \
            memcpy(&next, &found, sizeof(found));                                                                      \
        }                                                                                                              \
        reach();                                                                                                       \
        return next arguments;                                                                                         \
    }

void *malloc(size_t size)
{
    reach();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    reach();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    reach();
    return __libc_realloc(p, size);
}

void free(void *p)
{
    if (p)
        reach();
    __libc_free(p);
}

void *aligned_alloc(size_t align, size_t size)
{
    reach();
    return __libc_memalign(align, size);
}

NEXT(void *, dlopen, (const char *name, int flags), (name, flags))
NEXT(int, dlclose, (void *library), (library))
NEXT(int, dl_iterate_phdr, (int (*fn)(struct dl_phdr_info *info, size_t size, void *data), void *data), (fn, data))
NEXT(int, __cxa_atexit, (void (*fn)(void *), void *arg, void *object), (fn, arg, object))
NEXT(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg),
     (thread, attributes, fn, arg))
NEXT(int, pthread_join, (pthread_t thread, void **result), (thread, result))
NEXT(FILE *, fopen, (const char *name, const char *mode), (name, mode))
NEXT(int, fclose, (FILE * f), (f))

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SIGNAL_PASSES"), *number = getenv("SIGNAL_AT"), *step = getenv("SIGNAL_STEP");
    char *end;
    inside = true;
    at = number ? strtoul(number, NULL, 10) : 0;
    at_step = step ? strtoul(step, NULL, 10) : 0;
    for (; text && *text && n_passes < MOST_PASSES; n_passes++, text = end) {
        passes[n_passes].begin = strtoul(text, &end, 16);
        passes[n_passes].end = strtoul(end, &end, 16);
        end += strspn(end, " ");
    }
    owner = getpid();
    dl_iterate_phdr(find_areas, NULL);
    inside = false;
}

/* Written as the process goes, without a lock of the C library. */
__attribute__((destructor)) static void tell(void)
{
    const char *list = getenv("SIGNAL_LIST");
    char line[256];
    inside = true;
    int fd = list && owner == getpid() ? open(list, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof(line), "calls %lu open %lu steps %lu\n", calls, open_calls, steps);
    bool written = write(fd, line, (size_t)n) == n;
    for (size_t i = 0; written && i < n_places; i++) {
        const uintptr_t *f = places[i].frames;
        n = snprintf(line, sizeof(line), "%lu: %lx %lx %lx %lx\n", places[i].n, f[0], f[1], f[2], f[3]);
        written = write(fd, line, (size_t)n) == n;
    }
    close(fd);
}
