#include "collectors/replay/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "collectors/replay/by_device.h"
#include "collectors/replay/scan.h"

_Static_assert((int)KP_SLOT_BYTES == (int)KP_BLOCK_BYTES, "a slot holds a block");

/* Where the copy of a block is, if not in a slot. */
enum { NO_COPY = UINT32_MAX, ONE_VALUE = UINT32_MAX - 1, FEWEST_SLOTS = ONE_VALUE };

static const uint32_t uniform_bit = 1u << KP_FOUND_UNIFORM;

/* The tables of blocks, with equally many entries. */
struct tables {
    uint32_t n;
    struct kp_block *blocks;
    uint32_t *saved, *kept;   /* the slot of each block, ONE_VALUE, or NO_COPY: unknown; as it was saved */
    uint32_t *found;          /* what a scan found */
    struct kp_move *moves;    /* the resulting moves */
    uint32_t *nearer;         /* device slots for copies that are on the host */
    struct kp_vmem memory;    /* on the device: */
    CUdeviceptr device, list; /* the blocks, and what is found */
    struct kp_digests at_save, at_keep, now;
};

struct kp_shadow {
    const struct kp_driver *d;
    const struct kp_device *device;
    struct kp_threads threads;
    struct kp_scan *scan;
    struct kp_slots *slots;
    struct tables t;
    struct kp_part *parts; /* of the last save */
    size_t n_parts;
    bool keeps;
    struct kp_slot_room room; /* as of the last save */
    struct kp_shadow_work work;
    uint64_t counted; /* of `held`, in bytes */
};

static struct kp_by_device held; /* what all shadows use */

uint64_t kp_shadow_held_on(CUdevice device)
{
    return kp_by_device_sum(&held, device);
}

bool kp_shadow_available(const struct kp_driver *d)
{
    return kp_vmem_available(d) && d->cuMemcpyHtoD && d->cuStreamSynchronize && d->cuStreamCreate &&
           d->cuStreamDestroy && d->cuMemsetD32Async;
}

CUresult kp_shadow_open(const struct kp_driver *d, const struct kp_device *device, const struct kp_threads *threads,
                        struct kp_shadow **out)
{
    struct kp_shadow *s = calloc(1, sizeof(*s));
    *out = s;
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->d = d;
    s->device = device;
    s->threads = *threads;
    return CUDA_SUCCESS;
}

/* ---- tables ---- */

static void free_tables(struct kp_shadow *s, struct tables *t, bool context_alive)
{
    free(t->blocks);
    free(t->saved);
    free(t->kept);
    free(t->found);
    free(t->moves);
    free(t->nearer);
    if (context_alive)
        kp_vmem_free(s->d, &t->memory);
    memset(t, 0, sizeof(*t));
}

static uint64_t blocks_of(const struct kp_part *p)
{
    return (p->bytes + KP_BLOCK_BYTES - 1) / KP_BLOCK_BYTES;
}

/* Rounds up to whole units: the driver's allocations are at least that far apart. */
static uint32_t rounded(size_t bytes)
{
    return (uint32_t)((bytes + KP_UNIT_BYTES - 1) / KP_UNIT_BYTES * KP_UNIT_BYTES);
}

static void fill_blocks(struct tables *t, const struct kp_part *parts, size_t n)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; at < parts[i].bytes; at += KP_BLOCK_BYTES) {
            size_t left = parts[i].bytes - at;
            uint32_t bytes = left < KP_BLOCK_BYTES ? rounded(left) : KP_BLOCK_BYTES;
            t->saved[next] = t->kept[next] = NO_COPY;
            uint32_t exact = left < KP_BLOCK_BYTES ? (uint32_t)left : KP_BLOCK_BYTES;
            t->blocks[next++] = (struct kp_block){parts[i].at + at, bytes, parts[i].constant ? exact : 0};
        }
}

/* Hands out the tables' memory on the device, piece by piece. */
static CUdeviceptr piece(CUdeviceptr *next, uint64_t bytes)
{
    CUdeviceptr at = *next;
    *next += (bytes + KP_UNIT_BYTES - 1) / KP_UNIT_BYTES * KP_UNIT_BYTES;
    return at;
}

static CUresult make_on_device(struct kp_shadow *s, struct tables *t)
{
    enum { TABLES = 3, EACH = sizeof(struct kp_block) + TABLES * (KP_DIGEST_BYTES + KP_UNIT_BYTES) + sizeof(uint32_t) };
    const uint64_t n = t->n;
    CUresult rc = kp_vmem_make(s->d, s->device->device, n * EACH + KP_UNIT_BYTES, &t->memory);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct kp_digests *const all[TABLES] = {&t->at_save, &t->at_keep, &t->now};
    CUdeviceptr next = t->memory.at;
    t->device = piece(&next, n * sizeof(struct kp_block));
    for (size_t i = 0; i < TABLES; i++)
        *all[i] = (struct kp_digests){piece(&next, n * KP_DIGEST_BYTES), piece(&next, n * KP_UNIT_BYTES)};
    t->list = piece(&next, n * sizeof(uint32_t));
    return s->d->cuMemcpyHtoD(t->device, t->blocks, n * sizeof(*t->blocks));
}

static CUresult make_tables(struct kp_shadow *s, const struct kp_part *parts, size_t n_parts, struct tables *t)
{
    uint64_t n = 0;
    memset(t, 0, sizeof(*t));
    for (size_t i = 0; i < n_parts; i++)
        n += blocks_of(&parts[i]);
    if (n >= uniform_bit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    t->n = (uint32_t)n;
    t->blocks = malloc((n + 1) * sizeof(*t->blocks));
    t->saved = malloc((n + 1) * sizeof(*t->saved));
    t->kept = malloc((n + 1) * sizeof(*t->kept));
    t->found = malloc((n + 1) * sizeof(*t->found));
    t->moves = malloc((n + 1) * sizeof(*t->moves));
    t->nearer = malloc((n + 1) * sizeof(*t->nearer));
    if (!t->blocks || !t->saved || !t->kept || !t->found || !t->moves || !t->nearer)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fill_blocks(t, parts, n_parts);
    return make_on_device(s, t);
}

/* Copies part of a table of digests from an old place to a new one. */
static CUresult carry_digests(const struct kp_shadow *s, const struct tables *from, uint32_t i, struct tables *to,
                              uint32_t k, uint32_t n)
{
    CUresult rc = s->d->cuMemcpyDtoDAsync(to->at_save.digests + (CUdeviceptr)k * KP_DIGEST_BYTES,
                                          from->at_save.digests + (CUdeviceptr)i * KP_DIGEST_BYTES,
                                          (size_t)n * KP_DIGEST_BYTES, CU_STREAM_LEGACY);
    if (rc != CUDA_SUCCESS)
        return rc;
    return s->d->cuMemcpyDtoDAsync(to->at_save.units + (CUdeviceptr)k * KP_UNIT_BYTES,
                                   from->at_save.units + (CUdeviceptr)i * KP_UNIT_BYTES, (size_t)n * KP_UNIT_BYTES,
                                   CU_STREAM_LEGACY);
}

static bool is_same_block(const struct tables *a, uint32_t i, const struct tables *b, uint32_t k)
{
    return !memcmp(&a->blocks[i], &b->blocks[k], sizeof(*a->blocks));
}

/* Keeps what is known about blocks in both tables, which are sorted by address. Frees the slots of other blocks. */
static CUresult carry_over(struct kp_shadow *s, struct tables *from, struct tables *to)
{
    CUresult rc = CUDA_SUCCESS;
    uint32_t i = 0, k = 0;
    while (rc == CUDA_SUCCESS && i < from->n && k < to->n) {
        uint32_t n = 0;
        while (i + n < from->n && k + n < to->n && is_same_block(from, i + n, to, k + n)) {
            to->saved[k + n] = from->saved[i + n];
            from->saved[i + n] = NO_COPY;
            n++;
        }
        if (n)
            rc = carry_digests(s, from, i, to, k, n);
        else if (from->blocks[i].at <= to->blocks[k].at)
            i++;
        else
            k++;
        i += n;
        k += n;
    }
    for (i = 0; i < from->n; i++)
        if (from->saved[i] < FEWEST_SLOTS)
            kp_slots_give(s->slots, from->saved[i]);
    return rc == CUDA_SUCCESS ? s->d->cuCtxSynchronize() : rc;
}

static bool has_parts(const struct kp_shadow *s, const struct kp_part *parts, size_t n)
{
    return s->parts && s->n_parts == n && !memcmp(s->parts, parts, n * sizeof(*parts));
}

/* Builds the tables for the parts. */
static CUresult set_parts(struct kp_shadow *s, const struct kp_part *parts, size_t n)
{
    struct tables t;
    if (has_parts(s, parts, n))
        return CUDA_SUCCESS;
    struct kp_part *copy = malloc((n + 1) * sizeof(*copy));
    CUresult rc = copy ? make_tables(s, parts, n, &t) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!copy)
        return rc;
    if (rc == CUDA_SUCCESS)
        rc = carry_over(s, &s->t, &t);
    free_tables(s, rc == CUDA_SUCCESS ? &s->t : &t, true);
    if (rc != CUDA_SUCCESS) {
        free(copy);
        return rc;
    }
    s->t = t;
    if (n)
        memcpy(copy, parts, n * sizeof(*copy));
    free(s->parts);
    s->parts = copy;
    s->n_parts = n;
    return rc;
}

/* ---- saving ---- */

static CUresult make_ready(struct kp_shadow *s)
{
    if (!s->slots && !(s->slots = kp_slots_open(s->d, s->device->device, &s->threads)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return s->scan ? CUDA_SUCCESS : kp_scan_open(s->d, s->device->device, s->device->sm_count, &s->scan);
}

static CUresult scan(struct kp_shadow *s, const struct kp_digests *before, const struct kp_digests *now,
                     uint32_t *n_found)
{
    struct tables *t = &s->t;
    CUresult rc = kp_scan_run(s->scan, t->device, t->n, before, now, t->list, t->found, n_found);
    s->work = (struct kp_shadow_work){.blocks = t->n, .changed = rc == CUDA_SUCCESS ? *n_found : 0};
    return rc;
}

static CUresult move(struct kp_shadow *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->work.copied += s->t.moves[i].bytes;
    return kp_scan_move(s->scan, s->t.moves, n);
}

/* The block of an entry found by a scan. */
static uint32_t number_of(uint32_t found)
{
    return found & ~uniform_bit;
}

/* Returns true if a found block needs no copy. Blocks that the driver copies back always have one. */
static bool is_uniform(const struct tables *t, uint32_t found)
{
    return found & uniform_bit && !t->blocks[number_of(found)].constant;
}

/* A block that was never saved may happen to have the digest of the empty table. */
static uint32_t add_unsaved(struct tables *t, uint32_t n_found)
{
    uint32_t n = n_found;
    for (uint32_t i = 0; i < n_found; i++)
        if (t->saved[number_of(t->found[i])] == NO_COPY)
            t->saved[number_of(t->found[i])] = ONE_VALUE;
    for (uint32_t b = 0; b < t->n; b++)
        if (t->saved[b] == NO_COPY) {
            t->saved[b] = ONE_VALUE;
            t->found[n++] = b; /* not known to be uniform: it is copied */
        }
    return n;
}

/* Returns the room for copies of what a scan has found. If that is most of all blocks, leaves part of the device to
 * later changes, which recur, and are restored, more often. */
static struct kp_slot_room room_for(const struct kp_shadow *s, uint32_t n_found, const struct kp_slot_room *room)
{
    enum { PART = 3 };
    size_t left = 0, total = 0;
    struct kp_slot_room r = *room;
    if (n_found > s->t.n / 2 && s->d->cuMemGetInfo(&left, &total) == CUDA_SUCCESS && left > r.device_left)
        r.device_left += (left - r.device_left) / PART;
    return r;
}

/* Returns true if a copy is on the host. */
static bool is_far(const struct kp_shadow *s, uint32_t place)
{
    return place < FEWEST_SLOTS && !kp_slots_is_on_device(s->slots, place);
}

/* Moves blocks that change again from the host to the device, while it has room. */
static void draw_near(struct kp_shadow *s, uint32_t *places, uint32_t n_found, const struct kp_slot_room *room)
{
    const struct tables *t = &s->t;
    size_t far = 0;
    for (uint32_t i = 0; i < n_found; i++) {
        uint32_t place = places[number_of(t->found[i])];
        far += is_far(s, place);
    }
    size_t near = far ? kp_slots_reserve_device(s->slots, far, room) : 0;
    for (uint32_t i = 0; i < n_found && near; i++) {
        uint32_t *place = &places[number_of(t->found[i])];
        if (!is_far(s, *place))
            continue;
        kp_slots_give(s->slots, *place);
        *place = kp_slots_take(s->slots);
        near--;
    }
}

/* Copies the blocks that a scan has found into slots: their own in `places`, or new ones. */
static CUresult copy_found(struct kp_shadow *s, uint32_t *places, uint32_t n_found, const struct kp_slot_room *room)
{
    struct tables *t = &s->t;
    size_t wanted = 0, n = 0;
    for (uint32_t i = 0; i < n_found; i++) {
        uint32_t *place = &places[number_of(t->found[i])];
        bool uniform = is_uniform(t, t->found[i]);
        if (uniform && *place < FEWEST_SLOTS)
            kp_slots_give(s->slots, *place);
        wanted += !uniform && *place >= FEWEST_SLOTS;
        if (uniform)
            *place = ONE_VALUE;
    }
    struct kp_slot_room here = room_for(s, n_found, room);
    if (!kp_slots_reserve(s->slots, wanted, &here) &&
        (here.device_left == room->device_left || !kp_slots_reserve(s->slots, wanted, room)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    draw_near(s, places, n_found, room);
    for (uint32_t i = 0; i < n_found; i++) {
        uint32_t b = number_of(t->found[i]);
        if (is_uniform(t, t->found[i]))
            continue;
        if (places[b] >= FEWEST_SLOTS)
            places[b] = kp_slots_take(s->slots);
        t->moves[n++] = (struct kp_move){
            .to = kp_slots_at(s->slots, places[b]), .from = t->blocks[b].at, .bytes = t->blocks[b].bytes};
    }
    return move(s, n);
}

static CUresult save(struct kp_shadow *s, const struct kp_part *parts, size_t n, const struct kp_slot_room *room)
{
    struct tables *t = &s->t;
    uint32_t n_found;
    CUresult rc = make_ready(s);
    if (rc == CUDA_SUCCESS)
        rc = set_parts(s, parts, n);
    if (rc == CUDA_SUCCESS)
        rc = scan(s, &t->at_save, &t->now, &n_found);
    if (rc == CUDA_SUCCESS)
        rc = copy_found(s, t->saved, add_unsaved(t, n_found), room);
    struct kp_digests old = t->at_save;
    t->at_save = t->now;
    t->now = old;
    return rc;
}

/* Updates the memory that the shadow uses now. */
static void count(struct kp_shadow *s)
{
    kp_by_device_note(&held, s->device->device, &s->counted, kp_shadow_held(s));
}

/* Frees all but the kernels. */
static void give(struct kp_shadow *s, bool context_alive)
{
    free_tables(s, &s->t, context_alive);
    kp_slots_close(s->slots, context_alive);
    s->slots = NULL;
    free(s->parts);
    s->parts = NULL;
    s->n_parts = 0;
    s->keeps = false;
    count(s);
}

CUresult kp_shadow_save(struct kp_shadow *s, const struct kp_part *parts, size_t n, const struct kp_slot_room *room)
{
    kp_shadow_forget_kept(s);
    s->room = *room;
    CUresult rc = save(s, parts, n, room);
    if (rc != CUDA_SUCCESS)
        give(s, true);
    count(s);
    return rc;
}

/* ---- restoring ---- */

/* Returns where the copy of a block is: as kept, if that differs from what was saved. */
static uint32_t *place_of(struct kp_shadow *s, uint32_t b, bool kept)
{
    struct tables *t = &s->t;
    return kept && t->kept[b] != NO_COPY ? &t->kept[b] : &t->saved[b];
}

/* Returns the move that restores a block. */
static struct kp_move way_back(struct kp_shadow *s, uint32_t b, bool kept)
{
    const struct tables *t = &s->t;
    const uint32_t *place = place_of(s, b, kept);
    const struct kp_digests *state = place == &t->saved[b] ? &t->at_save : &t->at_keep;
    bool repeats = *place == ONE_VALUE;
    uint64_t from = repeats ? state->units + (CUdeviceptr)b * KP_UNIT_BYTES : kp_slots_at(s->slots, *place);
    return (struct kp_move){t->blocks[b].at, from, t->blocks[b].bytes, repeats};
}

/* Moves copies from the host to the device, while it has room, because each pass needs them again. */
static CUresult bring_near(struct kp_shadow *s, uint32_t n_found, bool kept)
{
    struct tables *t = &s->t;
    size_t far = 0, n = 0;
    for (uint32_t i = 0; i < n_found; i++)
        far += is_far(s, *place_of(s, number_of(t->found[i]), kept));
    size_t near = far ? kp_slots_reserve_device(s->slots, far, &s->room) : 0;
    for (uint32_t i = 0; i < n_found && n < near; i++) {
        uint32_t old = *place_of(s, number_of(t->found[i]), kept);
        if (!is_far(s, old))
            continue;
        t->nearer[n] = kp_slots_take(s->slots);
        t->moves[n] =
            (struct kp_move){kp_slots_at(s->slots, t->nearer[n]), kp_slots_at(s->slots, old), KP_SLOT_BYTES, 0};
        n++;
    }
    CUresult rc = n ? kp_scan_move(s->scan, t->moves, n) : CUDA_SUCCESS;
    for (size_t i = 0, k = 0; k < n; i++) {
        uint32_t *place = place_of(s, number_of(t->found[i]), kept), old = *place;
        if (!is_far(s, old))
            continue;
        *place = rc == CUDA_SUCCESS ? t->nearer[k] : old;
        kp_slots_give(s->slots, rc == CUDA_SUCCESS ? old : t->nearer[k]);
        k++;
    }
    return rc;
}

/* Restores what differs from a state. */
static CUresult bring_back(struct kp_shadow *s, const struct kp_digests *state, bool kept)
{
    struct tables *t = &s->t;
    uint32_t n_found = 0;
    size_t n = 0;
    CUresult rc = scan(s, state, &t->now, &n_found);
    if (rc == CUDA_SUCCESS)
        rc = bring_near(s, n_found, kept);
    for (uint32_t i = 0; rc == CUDA_SUCCESS && i < n_found; i++) {
        uint32_t b = number_of(t->found[i]);
        struct kp_move m = way_back(s, b, kept);
        if (!t->blocks[b].constant)
            t->moves[n++] = m;
        else
            rc = s->d->cuMemcpyDtoDAsync(m.to, m.from, t->blocks[b].constant, CU_STREAM_LEGACY);
    }
    if (rc == CUDA_SUCCESS)
        rc = move(s, n);
    return rc == CUDA_SUCCESS && n < n_found ? s->d->cuCtxSynchronize() : rc;
}

CUresult kp_shadow_restore(struct kp_shadow *s)
{
    return bring_back(s, &s->t.at_save, false);
}

CUresult kp_shadow_keep(struct kp_shadow *s, const struct kp_slot_room *room)
{
    struct tables *t = &s->t;
    uint32_t n = 0;
    kp_shadow_forget_kept(s);
    s->keeps = true;
    CUresult rc = scan(s, &t->at_save, &t->at_keep, &n);
    if (rc == CUDA_SUCCESS)
        rc = copy_found(s, t->kept, n, room);
    if (rc != CUDA_SUCCESS)
        kp_shadow_forget_kept(s);
    count(s);
    return rc;
}

CUresult kp_shadow_put_back(struct kp_shadow *s)
{
    return bring_back(s, &s->t.at_keep, true);
}

void kp_shadow_forget_kept(struct kp_shadow *s)
{
    struct tables *t = &s->t;
    for (uint32_t b = 0; s->keeps && b < t->n; b++) {
        if (t->kept[b] < FEWEST_SLOTS)
            kp_slots_give(s->slots, t->kept[b]);
        t->kept[b] = NO_COPY;
    }
    s->keeps = false;
}

struct kp_shadow_work kp_shadow_last(const struct kp_shadow *s)
{
    return s->work;
}

uint64_t kp_shadow_held(const struct kp_shadow *s)
{
    if (!s)
        return 0;
    return (s->slots ? kp_slots_on_device(s->slots) : 0) + kp_scan_held(s->scan) + s->t.memory.bytes;
}

void kp_shadow_give(struct kp_shadow *s, uint64_t bytes, uint64_t host)
{
    if (!s->slots || !kp_slots_leave_device(s->slots, bytes, host)) {
        give(s, true);
        kp_scan_close(s->scan, true); /* the program may need every byte */
        s->scan = NULL;
    }
    count(s);
}

void kp_shadow_close(struct kp_shadow *s, bool context_alive)
{
    if (!s)
        return;
    give(s, context_alive);
    kp_scan_close(s->scan, context_alive);
    s->scan = NULL;
    count(s);
    free(s);
}
