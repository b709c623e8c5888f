#include "base/mapped_pages.h"

#include <sys/mman.h>

uint8_t *kp_pages_take(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    madvise(pages, size, MADV_HUGEPAGE);
    return pages;
}

void kp_pages_give(uint8_t *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}
