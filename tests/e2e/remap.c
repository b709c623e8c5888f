/* mremap as Linux 5.7 to 5.12 have it: of a view of a file none is left behind, which is found out only when the place
 * that the caller has named is given up. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

void *mremap(void *old, size_t size, size_t wanted, int flags, ...)
{
    void *place = NULL;
    va_list list;

    va_start(list, flags);
    if (flags & MREMAP_FIXED)
        place = va_arg(list, void *);
    va_end(list);
    if (!(flags & MREMAP_DONTUNMAP))
        return (void *)syscall(SYS_mremap, old, size, wanted, flags, place);
    if (place)
        munmap(place, wanted);
    errno = EINVAL;
    return MAP_FAILED;
}
