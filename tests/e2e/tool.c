/* LINK: -ldl */
/* Somebody else's tool, to be preloaded beside the profiler: an allocator of its own, whose blocks no other may free,
 * and doors at the functions that the profiler stands at, too. What it saw goes to stderr. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In front of each block. */
struct head {
    uint64_t mark;
    void *block;
    size_t size;
    uint64_t pad;
};

static const uint64_t mark = 0x746f6f6c746f6f6cu;

void *__libc_malloc(size_t size);
void __libc_free(void *p);

static atomic_uint looked_up, exits, foreign;

static void *take(size_t align, size_t size)
{
    char *block;

    if (size > SIZE_MAX - align - sizeof(struct head) || !(block = __libc_malloc(size + align + sizeof(struct head)))) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t at = ((uintptr_t)block + sizeof(struct head) + align - 1) / align * align;
    ((struct head *)at)[-1] = (struct head){mark, block, size, 0};
    memset((void *)at, 0xa5, size);
    return (void *)at;
}

void *malloc(size_t size)
{
    return take(16, size);
}

void *calloc(size_t n, size_t size)
{
    void *p = size && n > SIZE_MAX / size ? NULL : take(16, n * size);

    return p ? memset(p, 0, n * size) : NULL;
}

void free(void *p)
{
    struct head *h = (struct head *)p - 1;

    if (!p)
        return;
    if (h->mark != mark) {
        foreign++;
        abort();
    }
    h->mark = 0;
    memset(p, 0x5a, h->size);
    __libc_free(h->block);
}

void *realloc(void *p, size_t size)
{
    void *to = take(16, size);
    size_t had = p ? ((struct head *)p)[-1].size : 0;

    if (to && p) {
        memcpy(to, p, had < size ? had : size);
        free(p);
    }
    return to;
}

void *memalign(size_t align, size_t size)
{
    return take(align < 16 ? 16 : align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = memalign(align, size);
    return *out ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *p)
{
    return p ? ((struct head *)p)[-1].size : 0;
}

typedef void *lookup(void *, const char *);

static lookup *next_dlsym(void)
{
    static lookup *next;

    if (!next)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!next)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return next;
}

#ifdef __clang__
#define BY_JUMP
#define JUMP_TO __attribute__((musttail)) return
#else
#define BY_JUMP __attribute__((optimize("O2")))
#define JUMP_TO return
#endif

/* Goes on by a jump, so that RTLD_NEXT means what comes after the caller. */
BY_JUMP void *dlsym(void *handle, const char *name)
{
    lookup *next = next_dlsym();

    looked_up++;
    JUMP_TO next(handle, name);
}

__attribute__((destructor)) static void tell(void)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "tool: %u exits, looked up: %s, not its own: %u\n", (unsigned int)exits,
                     looked_up ? "some" : "none", (unsigned int)foreign);

    if (write(2, line, (size_t)n) != n)
        foreign++;
}

void _exit(int code)
{
    void (*next)(int) __attribute__((noreturn));

    exits++;
    tell();
    *(void **)&next = next_dlsym()(RTLD_NEXT, "_exit");
    next(code);
}
