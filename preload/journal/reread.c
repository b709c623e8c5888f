#include "preload/journal/reread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "preload/program/hostmem.h"
#include "preload/journal/issue.h"
#include "preload/journal/read_value.h"

enum {
    PIECE = 8 << 20,       /* bytes read at once */
    PINNED_FROM = 1 << 20, /* size of a piece that is worth pinned memory, bytes */
    HUGE_PAGE = 2 << 20    /* bytes */
};

/* The buffer. It stays: the driver is slow to make pinned memory. */
static struct {
    void *memory;
    bool pinned, wanted; /* it is pinned; it was used so much that it should be */
} buffer;

static void use(void *memory, bool pinned)
{
    if (!buffer.pinned)
        free(buffer.memory);
    buffer.memory = memory;
    buffer.pinned = pinned;
}

/* Returns the buffer; NULL if memory is short. */
static void *buffer_of(size_t bytes)
{
    buffer.wanted |= bytes >= PINNED_FROM;
    if (buffer.memory)
        return buffer.memory;
    use(malloc(PIECE), false);
    return buffer.memory;
}

void kp_again_prepare(const struct kp_driver *d)
{
    void *memory;
    if (!buffer.wanted || buffer.pinned)
        return;
    if (kp_hostmem_make(d, &memory, PIECE, KP_HOSTMEM_INTERNAL))
        use(memory, true);
    buffer.wanted = false;
}

CUresult kp_again_read(struct kp_journal *j, const struct kp_item *i, bool *same)
{
    const size_t bytes = i->op.result_bytes, piece = kp_value_piece(&i->op, PIECE);
    void *now = buffer_of(piece);
    CUresult rc = now ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    *same = true;
    for (size_t at = 0; rc == CUDA_SUCCESS && *same && at < bytes; at += piece) {
        size_t n = bytes - at < piece ? bytes - at : piece;
        rc = kp_value_read(&i->op, at, n, now);
        j->unsettled = true;
        if (rc == CUDA_SUCCESS)
            rc = kp_issue_settle(j);
        *same = rc != CUDA_SUCCESS || !memcmp(now, (const char *)i->read.seen + at, n);
    }
    return rc;
}

void *kp_again_room(size_t bytes)
{
    if (bytes < 2 * HUGE_PAGE)
        return malloc(bytes);
    size_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *room = aligned_alloc(HUGE_PAGE, rounded);
    if (room)
        madvise(room, rounded, MADV_HUGEPAGE); /* fewer faults; without it all goes on */
    return room;
}
