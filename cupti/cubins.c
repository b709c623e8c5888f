/* CUPTI's callback carries no user pointer, so the kept images are a static. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "base/work.h"
#include "cupti/internal.h"
#include "cupti/source.h"

struct cubin {
    uint32_t crc;
    size_t size;
    struct cubin *next;
    unsigned char image[];
};

enum { BUCKETS = 256 };

static struct {
    const struct kp_cupti *c;
    size_t most, kept; /* bytes */
    bool (*always)(const void *image, size_t size);
    struct cubin *buckets[BUCKETS];
    struct cubin **list; /* in loading order */
    size_t n;
} cubins;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_CUBINS];

static struct cubin *find(uint32_t crc)
{
    struct cubin *k = cubins.buckets[crc % BUCKETS];
    while (k && k->crc != crc)
        k = k->next;
    return k;
}

static void keep_image(uint32_t crc, const void *image, size_t size, bool always)
{
    kp_lock_take(lock, KP_FOREVER);
    bool fits = cubins.most > cubins.kept && size <= cubins.most - cubins.kept;
    if (!find(crc) && (fits || always) && KP_ROOM(cubins.list, cubins.n)) {
        struct cubin *k = malloc(sizeof(*k) + size);
        if (k) {
            k->crc = crc;
            k->size = size;
            memcpy(k->image, image, size);
            k->next = cubins.buckets[crc % BUCKETS];
            cubins.buckets[crc % BUCKETS] = k;
            cubins.kept += size;
            cubins.list[cubins.n++] = k;
        }
    }
    kp_lock_give(lock);
}

/* CUPTI calls this in the thread that loads the module. CUPTI's records name the module by the value returned in
 * *crc. */
static void CUPTIAPI on_module(const void *image, size_t size, uint64_t *crc)
{
    CUpti_GetCubinCrcParams get = {.size = CUpti_GetCubinCrcParamsSize, .cubinSize = size, .cubin = image};
    kp_work_begin();
    bool always = cubins.always && cubins.always(image, size);
    bool needed = image && (cubins.most || always); /* computing it means reading the whole image */
    if (needed && KP_CALL(cubins.c, cuptiGetCubinCrc, &get) == CUPTI_SUCCESS) {
        *crc = get.cubinCrc;
        keep_image((uint32_t)get.cubinCrc, image, size, always);
    }
    kp_work_end();
}

int kp_cubins_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size))
{
    if (!c->cuptiRegisterComputeCrcCallback || !c->cuptiGetCubinCrc)
        return -ENOSYS;
    cubins.c = c;
    cubins.most = most;
    cubins.always = always;
    return KP_CALL(c, cuptiRegisterComputeCrcCallback, on_module);
}

int kp_cubins_keep_on(const struct kp_cupti *c)
{
    return cubins.c ? KP_CALL(c, cuptiRegisterComputeCrcCallback, on_module) : 0;
}

const void *kp_cubins_at(size_t i, size_t *size)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct cubin *k = i < cubins.n ? cubins.list[i] : NULL;
    kp_lock_give(lock);
    *size = k ? k->size : 0;
    return k ? k->image : NULL;
}

const void *kp_cubins_find(uint32_t crc, size_t *size)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct cubin *k = find(crc);
    kp_lock_give(lock);
    *size = k ? k->size : 0;
    return k ? k->image : NULL;
}
