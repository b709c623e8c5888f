/* LINK: -lgcc_s */
/*
 * A library to preload after libkprof.so: it makes one call fail that libkprof.so makes, directly or through the C
 * library, and never one of the program's or of another library's.
 *
 *   FAULT_KIND=memory   what takes memory gets none
 *   FAULT_KIND=disk     what makes a regular file or writes to one finds the disk full
 *   FAULT_LIST=FILE     writes the points that were reached into it, one a line, when the process ends
 *   FAULT_POINT=HEX     the point that fails; none fails without it
 *   FAULT_SKIP=N        how often the point still works before (0)
 *   FAULT_STAY=1        from there on every call of the kind fails, as on a disk that stays full
 *
 * A point of `memory` is a chain of calls within libkprof.so, as a hash. A point of `disk` is the number of the call:
 * what is full there is full wherever it is written from.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum {
    MOST_POINTS = 1 << 16,
    DEPTH = 6,       /* calls of libkprof.so that tell a point from another */
    FRAMES = 24,     /* that are looked at for one of libkprof.so, from the C library on */
    FULL_CODE = 120, /* of a process whose list cannot be written */
};

struct area {
    uintptr_t begin, end;
};

/* The C library's own functions, under names that nobody interposes. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

static struct area own, through[2]; /* libkprof.so; the C library and its loader */
static enum { NONE, MEMORY, DISK } kind;
static const char *list_path;
static bool stay;
static uint64_t wanted;
static atomic_uint skip, disk_calls;
static atomic_bool failing;
static pid_t owner;
static _Atomic uint64_t points[MOST_POINTS]; /* open addressing; 0 = free */
static atomic_uint counts[MOST_POINTS];
static __thread bool inside __attribute__((tls_model("initial-exec")));

static bool within(struct area a, uintptr_t p)
{
    return p >= a.begin && p < a.end;
}

static int find_area(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *base = strrchr(info->dlpi_name, '/');
    struct area a = {UINTPTR_MAX, 0};

    (void)size, (void)data;
    base = base ? base + 1 : info->dlpi_name;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            a.begin = at < a.begin ? at : a.begin;
            a.end = at + info->dlpi_phdr[i].p_memsz > a.end ? at + info->dlpi_phdr[i].p_memsz : a.end;
        }
    if (!strcmp(base, "libkprof.so"))
        own = a;
    else if (!strncmp(base, "libc.so", 7))
        through[0] = a;
    else if (!strncmp(base, "ld-linux", 8))
        through[1] = a;
    return 0;
}

struct walk {
    uint64_t hash;
    int frames, mine;
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *data)
{
    struct walk *w = data;
    uintptr_t at = _Unwind_GetIP(context);

    if (w->frames++ > FRAMES)
        return _URC_END_OF_STACK;
    if (within(own, at)) {
        w->hash = (w->hash ^ (at - own.begin)) * 0x100000001b3u;
        return ++w->mine == DEPTH ? _URC_END_OF_STACK : _URC_NO_REASON;
    }
    /* The first frames are this library's; once out of libkprof.so the chain ends. */
    if (w->mine || (w->frames > 3 && !within(through[0], at) && !within(through[1], at)))
        return _URC_END_OF_STACK;
    return _URC_NO_REASON;
}

static void note_point(uint64_t point)
{
    for (unsigned int i = point % MOST_POINTS, n = 0; n < MOST_POINTS; i = (i + 1) % MOST_POINTS, n++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&points[i], &none, point) || none == point) {
            counts[i]++;
            return;
        }
    }
}

/* Whether this call, which `point` names, is to fail. */
static bool fails(uint64_t point)
{
    if (list_path)
        note_point(point);
    if (failing && stay)
        return true;
    if (point != wanted || failing)
        return false;
    if (skip) {
        skip--;
        return false;
    }
    failing = true;
    return true;
}

static bool memory_fails(const void *caller)
{
    struct walk w = {.hash = 0xcbf29ce484222325u};
    uintptr_t at = (uintptr_t)caller;
    bool out = false;

    if (kind != MEMORY || inside || getpid() != owner)
        return false;
    if (!within(own, at) && !within(through[0], at) && !within(through[1], at))
        return false;
    inside = true;
    _Unwind_Backtrace(one_frame, &w);
    if (w.mine)
        out = fails(w.hash);
    inside = false;
    return out;
}

static bool disk_fails(const void *caller)
{
    bool out;

    if (kind != DISK || inside || getpid() != owner || !within(own, (uintptr_t)caller))
        return false;
    inside = true;
    out = fails(++disk_calls);
    inside = false;
    return out;
}

static bool regular(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

#define CALLER       __builtin_return_address(0)
#define NO_MEMORY(x) (memory_fails(CALLER) ? (errno = ENOMEM, NULL) : (x))

void *malloc(size_t size)
{
    return NO_MEMORY(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return NO_MEMORY(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
    return NO_MEMORY(__libc_realloc(p, size));
}

void *aligned_alloc(size_t align, size_t size)
{
    return NO_MEMORY(__libc_memalign(align, size));
}

static void *map(const void *caller, void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    if (memory_fails(caller)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    return map(CALLER, at, size, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int prot, int flags, int fd, off64_t offset)
{
    return map(CALLER, at, size, prot, flags, fd, offset);
}

#define NO_SPACE(x) (disk_fails(CALLER) ? (errno = ENOSPC, -1) : (x))

ssize_t write(int fd, const void *data, size_t size)
{
    return regular(fd) ? NO_SPACE(syscall(SYS_write, fd, data, size)) : syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return NO_SPACE(syscall(SYS_pwrite64, fd, data, size, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return NO_SPACE(syscall(SYS_pwrite64, fd, data, size, offset));
}

/* Making a file shorter needs no room. */
int ftruncate(int fd, off_t size)
{
    struct stat st;

    return !fstat(fd, &st) && size > st.st_size ? NO_SPACE((int)syscall(SYS_ftruncate, fd, size))
                                                : (int)syscall(SYS_ftruncate, fd, size);
}

static int open_by(const void *caller, const char *path, int flags, mode_t mode)
{
    if (flags & O_CREAT && access(path, F_OK) && disk_fails(caller)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_by(CALLER, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_by(CALLER, path, flags, mode);
}

static uint64_t number(const char *name, int base)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, base) : 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *what = getenv("FAULT_KIND");

    dl_iterate_phdr(find_area, NULL);
    owner = getpid();
    list_path = getenv("FAULT_LIST");
    wanted = number("FAULT_POINT", 16);
    skip = (unsigned int)number("FAULT_SKIP", 10);
    stay = number("FAULT_STAY", 10);
    /* The first walk reads tables of the objects, which takes memory. */
    inside = true;
    _Unwind_Backtrace(one_frame, &(struct walk){0});
    inside = false;
    if (!what || !own.end || !through[0].end || !through[1].end)
        return;
    kind = !strcmp(what, "memory") ? MEMORY : !strcmp(what, "disk") ? DISK : NONE;
}

/* After libkprof.so's own end, as it is loaded later. */
__attribute__((destructor)) static void tell(void)
{
    bool any = false;
    FILE *f;

    for (int i = 0; i < MOST_POINTS; i++)
        any |= points[i] != 0;
    if (!list_path || !any || getpid() != owner)
        return;
    kind = NONE;
    f = fopen(list_path, "w");
    for (int i = 0; f && i < MOST_POINTS; i++)
        if (points[i])
            fprintf(f, "%llx %u\n", (unsigned long long)points[i], (unsigned int)counts[i]);
    if (!f || fclose(f))
        _exit(FULL_CODE);
}
