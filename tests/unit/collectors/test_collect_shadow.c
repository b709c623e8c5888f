/* Saving by change, over the fake driver, whose device memory a test can read: what a save copies, what a restore
 * brings back, what both cost, and that no failure of a call costs more than the copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/replay/scan.h"
#include "collectors/replay/scan_code.h"
#include "collectors/replay/shadow.h"
#include "tests/support/fake_support.h"

enum { BLOCK = KP_BLOCK_BYTES, UNIT = KP_UNIT_BYTES, LAST = 1000, LAST_ROUNDED = 1008, PAGE = 4096 };
enum { CHUNK_BLOCKS = 1024 };

static const struct kp_slot_room room = {.device_left = 0, .host = 0};
static const struct kp_slot_room no_room = {.device_left = UINT64_MAX, .host = 0};

/* ---- the driver ---- */

static struct kp_driver next; /* what the functions here call */

/* What fake_support.h has no word for. */
#define MORE_FUNCTIONS(X)                                                                                              \
    X(cuMemcpyHtoD, "write", (CUdeviceptr to, const void *from, size_t n), (to, from, n))                              \
    X(cuMemcpyDtoH, "read", (void *to, CUdeviceptr from, size_t n), (to, from, n))                                     \
    X(cuMemcpyDtoHAsync, "read-later", (void *to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))           \
    X(cuMemsetD32Async, "zero", (CUdeviceptr p, unsigned v, size_t n, CUstream s), (p, v, n, s))                       \
    X(cuStreamSynchronize, "wait", (CUstream s), (s))                                                                  \
    X(cuMemHostGetDevicePointer, "pointer", (CUdeviceptr * p, void *memory, unsigned flags), (p, memory, flags))

#define DEFINE(name, word, parameters, arguments)                                                                      \
    static CUresult CUDAAPI log_##name parameters                                                                      \
    {                                                                                                                  \
        CUresult rc = (CUresult)kp_test_met(word);                                                                     \
        return rc ? rc : next.name arguments;                                                                          \
    }
MORE_FUNCTIONS(DEFINE)
#undef DEFINE

/* Modules and streams of ours. */
static int n_modules, n_streams;

static CUresult CUDAAPI load(CUmodule *m, const void *image)
{
    CUresult rc = next.cuModuleLoadData(m, image);
    n_modules += rc == CUDA_SUCCESS;
    return rc;
}

static CUresult CUDAAPI unload(CUmodule m)
{
    n_modules--;
    return next.cuModuleUnload(m);
}

static CUresult CUDAAPI make_stream(CUstream *stream, unsigned flags)
{
    CUresult rc = (CUresult)kp_test_met("stream");
    if (rc == CUDA_SUCCESS)
        rc = next.cuStreamCreate(stream, flags);
    n_streams += rc == CUDA_SUCCESS;
    return rc;
}

static CUresult CUDAAPI end_stream(CUstream stream)
{
    n_streams--;
    return next.cuStreamDestroy(stream);
}

/* Pinned memory, of which only the last piece is known. */
static struct {
    void *at;
    size_t bytes;
    int n;
} pinned;

/* The driver pins what is there already faster. */
static void assert_present(const char *at, size_t bytes)
{
    static unsigned char there[2 * CHUNK_BLOCKS * (BLOCK / PAGE)];
    assert_true(bytes / PAGE <= sizeof(there));
    assert_int_equal(mincore((void *)(uintptr_t)at, bytes, there), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        assert_true(there[i] & 1);
}

static CUresult CUDAAPI pin(void *at, size_t bytes, unsigned flags)
{
    assert_present(at, bytes);
    CUresult rc = (CUresult)kp_test_met("pin");
    if (rc == CUDA_SUCCESS)
        rc = next.cuMemHostRegister(at, bytes, flags);
    if (rc == CUDA_SUCCESS)
        pinned.n++;
    pinned.at = at;
    pinned.bytes = bytes;
    return rc;
}

static CUresult CUDAAPI unpin(void *at)
{
    pinned.n--;
    return next.cuMemHostUnregister(at);
}

static bool is_mapped(const void *at)
{
    unsigned char there;
    return !mincore((void *)(uintptr_t)at, PAGE, &there) || errno != ENOMEM;
}

/* What the device has left, as the driver tells it: so much when that was said, without what was taken since. */
static size_t told_left, left_then;

static void say_left(size_t bytes)
{
    size_t total;
    assert_int_equal(next.cuMemGetInfo(&left_then, &total), CUDA_SUCCESS);
    told_left = bytes;
}

static CUresult CUDAAPI tell_left(size_t *left, size_t *total)
{
    CUresult rc = next.cuMemGetInfo(left, total);
    size_t taken = left_then - *left;
    *left = taken < told_left ? told_left - taken : 0;
    return rc;
}

/* Where driver copies go. */
enum { MOST_COPIES = 64 };
static CUdeviceptr copied_to[MOST_COPIES];
static size_t n_copied_to, bytes_copied;

static CUresult CUDAAPI note_copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    copied_to[n_copied_to++ % MOST_COPIES] = to;
    bytes_copied += n;
    return next.cuMemcpyDtoDAsync(to, from, n, s);
}

/* A scan that finds nothing: the table that was not filled yet happens to have all digests. */
static bool finds_nothing;

static CUresult CUDAAPI launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
    CUresult rc = next.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
    if (rc == CUDA_SUCCESS && bx == KP_SCAN_THREADS && finds_nothing) {
        assert_int_equal(next.cuStreamSynchronize(s), CUDA_SUCCESS);
        **(uint32_t **)params[7] = 0;
    }
    return rc;
}

/* ---- threads ---- */

static bool threads_fail;
static int n_threads;

static bool start(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    if (threads_fail || pthread_create(thread, NULL, fn, arg))
        return false;
    n_threads++;
    return true;
}

static void join(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    n_threads--;
}

/* ---- the program and its shadow ---- */

static CUcontext ctx;
static struct kp_driver *d;
static struct kp_shadow *s;
static const struct kp_device device = {.device = 0, .sm_count = 132};

static struct fake_virtual live(void)
{
    return ((struct fake_virtual(*)(void))(uintptr_t)kp_test_fake("fake_cuda_virtual"))();
}

static void open_shadow(void)
{
    const struct kp_threads threads = {start, join};
    assert_int_equal(kp_shadow_open(d, &device, &threads, &s), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_held(s), 0);
}

static int set_up(void **state)
{
    (void)state;
    ctx = kp_test_context();
    d = kp_test_driver();
    next = *d;
#define TAKE_OVER(name, word, parameters, arguments) d->name = log_##name;
    MORE_FUNCTIONS(TAKE_OVER)
#undef TAKE_OVER
    d->cuModuleLoadData = load;
    d->cuModuleUnload = unload;
    d->cuStreamCreate = make_stream;
    d->cuStreamDestroy = end_stream;
    d->cuMemHostRegister = pin;
    d->cuMemHostUnregister = unpin;
    d->cuMemcpyDtoDAsync = note_copy;
    d->cuLaunchKernel = launch;
    finds_nothing = threads_fail = false;
    n_copied_to = 0;
    pinned.n = 0;
    open_shadow();
    return 0;
}

static void assert_nothing_held(void)
{
    struct fake_virtual v = live();
    assert_int_equal(kp_shadow_held_on(0), 0);
    assert_int_equal(kp_shadow_held_on(-1), 0);
    assert_int_equal(v.handles + v.physical + v.reservations + v.mappings, 0);
    assert_int_equal(pinned.n, 0);
    assert_int_equal(n_threads, 0);
    assert_int_equal(n_modules + n_streams, 0);
}

static int tear_down(void **state)
{
    (void)state;
    kp_shadow_close(s, true);
    s = NULL;
    assert_nothing_held();
    kp_test_context_end(ctx);
    return 0;
}

/* Memory of so many byte, and what it is to be. */
struct memory {
    unsigned char *at, *wanted;
    size_t bytes;
};

static CUdeviceptr address_of(const struct memory *m)
{
    return (CUdeviceptr)(uintptr_t)m->at;
}

static struct kp_part part_of(const struct memory *m)
{
    return (struct kp_part){.at = address_of(m), .bytes = m->bytes};
}

static uint64_t number = 1;

static void fill_mixed(unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i + sizeof(number) <= bytes; i += sizeof(number)) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        memcpy(at + i, &number, sizeof(number));
    }
}

/* All units alike, but not all byte. */
static void fill_alike(unsigned char *at, size_t bytes, unsigned char first)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(first + i % UNIT);
}

static struct memory allocate(size_t bytes)
{
    struct memory m = {.wanted = malloc(bytes), .bytes = bytes};
    CUdeviceptr at;
    assert_int_equal(next.cuMemAlloc(&at, bytes), CUDA_SUCCESS);
    m.at = (unsigned char *)(uintptr_t)at;
    fill_mixed(m.at, bytes);
    return m;
}

static void release(struct memory *m)
{
    assert_int_equal(next.cuMemFree(address_of(m)), CUDA_SUCCESS);
    free(m->wanted);
}

static void want_this(const struct memory *m)
{
    memcpy(m->wanted, m->at, m->bytes);
}

static void assert_wanted(const struct memory *m)
{
    assert_memory_equal(m->at, m->wanted, m->bytes);
}

static unsigned char *block(const struct memory *m, size_t i)
{
    return m->at + i * BLOCK;
}

static void assert_work(size_t blocks, size_t changed, uint64_t copied)
{
    struct kp_shadow_work w = kp_shadow_last(s);
    assert_int_equal(w.blocks, blocks);
    assert_int_equal(w.changed, changed);
    assert_int_equal(w.copied, copied);
}

static void save(const struct kp_part *parts, size_t n)
{
    assert_int_equal(kp_shadow_save(s, parts, n, &room), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_held_on(0), kp_shadow_held(s));
    assert_int_equal(kp_shadow_held_on(-1), kp_shadow_held(s));
}

static void save_one(const struct memory *m)
{
    struct kp_part p = part_of(m);
    save(&p, 1);
}

static void give_all(void)
{
    kp_shadow_give(s, 1, 0); /* as the host has no room */
}

static void restore(void)
{
    assert_int_equal(kp_shadow_restore(s), CUDA_SUCCESS);
}

/* ---- saving and restoring ---- */

/* Blocks 0 and 1 of one value each, 2 to 6 mixed, and 1000 byte of a seventh. */
enum { BLOCKS = 8 };

static struct memory allocate_kinds(void)
{
    struct memory m = allocate((BLOCKS - 1) * BLOCK + LAST);
    memset(block(&m, 0), 0, BLOCK);
    fill_alike(block(&m, 1), BLOCK, 3);
    return m;
}

static void the_first_save_copies_what_is_not_of_one_value(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    save_one(&m);
    assert_work(BLOCKS, BLOCKS, (BLOCKS - 3) * BLOCK + LAST_ROUNDED);
    release(&m);
}

static void the_next_save_copies_what_has_changed(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    save_one(&m);
    save_one(&m);
    assert_work(BLOCKS, 0, 0);
    uint64_t held = kp_shadow_held(s);
    block(&m, 0)[BLOCK - 1] = 1;             /* of one value no longer */
    block(&m, 2)[BLOCK / 2]++;               /* mixed as before */
    fill_alike(block(&m, 3), BLOCK, 7);      /* of one value now */
    fill_alike(block(&m, 1), BLOCK, 9);      /* of another value */
    block(&m, BLOCKS - 1)[LAST - 1] ^= 0xff; /* the last byte of all */
    save_one(&m);
    assert_work(BLOCKS, 5, 2 * BLOCK + LAST_ROUNDED);
    want_this(&m);
    memset(m.at, 0x77, m.bytes);
    restore();
    assert_wanted(&m);
    assert_int_equal(kp_shadow_held(s), held);
    release(&m);
}

static void a_restore_brings_back_what_differs(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    save_one(&m);
    want_this(&m);
    restore();
    assert_work(BLOCKS, 0, 0);
    for (int round = 0; round < 2; round++) {
        fill_mixed(block(&m, 0), BLOCK);
        fill_alike(block(&m, 1), BLOCK, 99);
        block(&m, 2)[0]++;
        memset(block(&m, 4), 0, BLOCK);
        block(&m, BLOCKS - 1)[LAST - 1]++;
        restore();
        assert_wanted(&m);
        assert_work(BLOCKS, 5, 4 * BLOCK + LAST_ROUNDED);
    }
    restore();
    assert_work(BLOCKS, 0, 0);
    release(&m);
}

/* What lies behind a part is another's. */
static void what_is_no_part_stays(void **state)
{
    (void)state;
    struct memory m = allocate(4 * BLOCK);
    struct kp_part p = {.at = address_of(&m) + BLOCK, .bytes = BLOCK + LAST};
    save(&p, 1);
    assert_work(2, 2, BLOCK + LAST_ROUNDED);
    want_this(&m);
    fill_mixed(m.at, m.bytes);
    memcpy(m.wanted, m.at, BLOCK);
    memcpy(m.wanted + 2 * BLOCK + LAST_ROUNDED, block(&m, 2) + LAST_ROUNDED, 2 * BLOCK - LAST_ROUNDED);
    restore();
    assert_wanted(&m);
    release(&m);
}

/* The table of the first save is filled with nothing: a digest may be there by chance. */
static void a_block_that_was_never_saved_is_copied(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    finds_nothing = true;
    save_one(&m);
    assert_int_equal(kp_shadow_last(s).copied, (BLOCKS - 1) * BLOCK + LAST_ROUNDED);
    finds_nothing = false;
    want_this(&m);
    memset(m.at, 0x77, m.bytes);
    restore();
    assert_wanted(&m);
    release(&m);
}

static void nothing_can_be_saved(void **state)
{
    (void)state;
    save(&(struct kp_part){.at = 0}, 0);
    assert_work(0, 0, 0);
    restore();
    assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_put_back(s), CUDA_SUCCESS);
}

/* ---- the state that the program left ---- */

static void what_is_kept_is_put_back(void **state)
{
    (void)state;
    struct memory m = allocate_kinds(), before = {.at = m.at, .wanted = malloc(m.bytes), .bytes = m.bytes};
    save_one(&m);
    want_this(&before);
    for (int round = 0; round < 3; round++) {
        fill_mixed(block(&m, 0), BLOCK); /* by the program */
        fill_alike(block(&m, 1), BLOCK, 50);
        fill_alike(block(&m, 2), BLOCK, 60);
        block(&m, 3)[1]++;
        block(&m, BLOCKS - 1)[LAST - 1]++;
        want_this(&m);
        assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
        assert_work(BLOCKS, 5, 2 * BLOCK + LAST_ROUNDED);
        for (int again = 0; again < 2; again++) {
            restore();
            assert_wanted(&before);
            fill_mixed(block(&m, 3), 2 * BLOCK); /* by a repetition: block 4 by this one alone, */
            memset(block(&m, 5), 1, BLOCK);
            block(&m, 1)[5] = 0; /* which leaves others as they were saved */
            assert_int_equal(kp_shadow_put_back(s), CUDA_SUCCESS);
            assert_wanted(&m);
        }
        assert_int_equal(kp_shadow_put_back(s), CUDA_SUCCESS);
        assert_work(BLOCKS, 0, 0);
        restore();
        assert_wanted(&before);
        kp_shadow_forget_kept(s);
    }
    free(before.wanted);
    release(&m);
}

/* Places of copies are given back: with one piece of room nothing more is taken, however often. */
static void what_is_kept_is_forgotten(void **state)
{
    enum { MANY = 300 };
    (void)state;
    struct memory m = allocate(MANY * BLOCK);
    save_one(&m);
    uint64_t held = kp_shadow_held(s);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < MANY; i++)
            block(&m, i)[0]++;
        assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
        assert_work(MANY, MANY, (uint64_t)MANY * BLOCK);
        if (round == 1)
            kp_shadow_forget_kept(s); /* else the next one does so */
        if (round == 2)
            save_one(&m);
    }
    assert_int_equal(kp_shadow_held(s), held);
    release(&m);
}

/* The same where a save with other parts forgets. */
static void a_save_forgets_what_was_kept(void **state)
{
    enum { MANY = 300 };
    (void)state;
    struct memory m = allocate((MANY + 1) * BLOCK);
    struct kp_part p = part_of(&m);
    save(&p, 1);
    uint64_t held = kp_shadow_held(s);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < MANY; i++)
            block(&m, i)[0]++;
        assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
        p.bytes = (MANY + round % 2) * (size_t)BLOCK;
        save(&p, 1);
    }
    assert_int_equal(kp_shadow_held(s), held);
    release(&m);
}

/* Half of the blocks in turn have one value, and need no place then. */
static void places_of_blocks_of_one_value_are_used_again(void **state)
{
    enum { MANY = 600 };
    (void)state;
    struct memory m = allocate(2 * MANY * BLOCK);
    memset(block(&m, MANY), 0, MANY * BLOCK);
    save_one(&m);
    uint64_t held = kp_shadow_held(s);
    memset(block(&m, 0), 1, MANY * BLOCK);
    fill_mixed(block(&m, MANY), MANY * BLOCK);
    save_one(&m);
    assert_work(2 * MANY, 2 * MANY, (uint64_t)MANY * BLOCK);
    assert_int_equal(kp_shadow_held(s), held);
    release(&m);
}

/* ---- parts ---- */

static void parts_come_and_go(void **state)
{
    (void)state;
    struct memory all = allocate(9 * BLOCK);
    const CUdeviceptr at = address_of(&all);
    struct kp_part a = {.at = at, .bytes = 2 * BLOCK}, b = {.at = at + 3 * BLOCK, .bytes = BLOCK + LAST},
                   c = {.at = at + 6 * BLOCK, .bytes = 2 * BLOCK};
    memset(block(&all, 6), 0, BLOCK);
    save((const struct kp_part[]){a, c}, 2);
    assert_work(4, 4, 3 * BLOCK);
    save((const struct kp_part[]){a, b, c}, 3); /* between the others */
    assert_work(6, 2, BLOCK + LAST_ROUNDED);
    block(&all, 7)[0]++;
    save((const struct kp_part[]){b, c}, 2); /* the first one goes */
    assert_work(4, 1, BLOCK);
    want_this(&all);
    fill_mixed(all.at, all.bytes);
    memcpy(all.wanted, all.at, 3 * BLOCK);
    memcpy(all.wanted + 4 * BLOCK + LAST_ROUNDED, block(&all, 4) + LAST_ROUNDED, 2 * BLOCK - LAST_ROUNDED);
    memcpy(all.wanted + 8 * BLOCK, block(&all, 8), BLOCK);
    restore();
    assert_wanted(&all);
    save((const struct kp_part[]){a, b}, 2); /* the last one goes */
    assert_work(4, 2, 2 * BLOCK);
    save(&c, 1); /* none stays */
    assert_work(2, 2, BLOCK);
    release(&all);
}

static void parts_grow_and_shrink(void **state)
{
    (void)state;
    struct memory all = allocate(6 * BLOCK);
    struct kp_part p = {.at = address_of(&all), .bytes = 2 * BLOCK};
    save(&p, 1);
    p.bytes = 3 * BLOCK + LAST;
    save(&p, 1);
    assert_work(4, 2, BLOCK + LAST_ROUNDED);
    p.bytes = 4 * BLOCK; /* the last block is another one now */
    save(&p, 1);
    assert_work(4, 1, BLOCK);
    want_this(&all);
    memset(all.at, 5, 4 * BLOCK);
    restore();
    assert_wanted(&all);
    p.bytes = BLOCK;
    save(&p, 1);
    assert_work(1, 0, 0);
    memset(block(&all, 1), 6, BLOCK); /* no longer looked at */
    want_this(&all);
    restore();
    assert_wanted(&all);
    release(&all);
}

static void moved_memory_is_new(void **state)
{
    (void)state;
    struct memory m = allocate(3 * BLOCK);
    save_one(&m);
    struct memory moved = allocate(3 * BLOCK);
    memcpy(moved.at, m.at, m.bytes);
    release(&m);
    save_one(&moved);
    assert_work(3, 3, 3 * BLOCK);
    want_this(&moved);
    fill_mixed(moved.at, moved.bytes);
    restore();
    assert_wanted(&moved);
    release(&moved);
}

/* Two parts in turn take the places of one: 2 times 600 blocks are more than a piece of room has. */
static void places_of_parts_that_went_are_used_again(void **state)
{
    enum { MANY = 600 };
    (void)state;
    struct memory all = allocate(2 * MANY * BLOCK);
    struct kp_part p = {.at = address_of(&all), .bytes = MANY * BLOCK};
    save(&p, 1);
    uint64_t held = kp_shadow_held(s);
    for (int round = 0; round < 3; round++) {
        p.at = address_of(&all) + (round % 2 ? 0 : MANY * BLOCK);
        save(&p, 1);
        assert_work(MANY, MANY, (uint64_t)MANY * BLOCK);
        assert_int_equal(kp_shadow_held(s), held);
    }
    release(&all);
}

/* ---- memory of modules ---- */

static void the_driver_copies_back_what_is_constant(void **state)
{
    (void)state;
    struct memory m = allocate(5 * BLOCK);
    memset(block(&m, 1), 0, BLOCK);
    struct kp_part parts[] = {{.at = address_of(&m), .bytes = BLOCK},
                              {.at = address_of(&m) + BLOCK, .bytes = 2 * BLOCK - 12, .constant = true},
                              {.at = address_of(&m) + 3 * BLOCK, .bytes = BLOCK}};
    save(parts, 3);
    assert_work(4, 4, 4 * BLOCK); /* one of one value has a copy, too: the driver makes no value a block */
    want_this(&m);
    for (size_t i = 0; i < 4; i++)
        fill_mixed(block(&m, i), BLOCK);
    memcpy(m.wanted + 3 * BLOCK - 12, block(&m, 3) - 12, 12);
    n_copied_to = bytes_copied = 0;
    kp_test_forget_calls();
    restore();
    assert_wanted(&m);
    assert_int_equal(bytes_copied,
                     2 * BLOCK - 12); /* a variable's own byte: what follows may be none of the program's */
    assert_work(4, 4, 2 * BLOCK);     /* by our kernel */
    assert_int_equal(n_copied_to, 2);
    assert_true(copied_to[0] + copied_to[1] == 2 * address_of(&m) + 3 * BLOCK);
    assert_int_equal(kp_test_count("sync"), 1); /* the copies are done */
    /* As the program left it, of one value or not. */
    memset(block(&m, 2), 7, BLOCK);
    fill_mixed(block(&m, 1), BLOCK);
    want_this(&m);
    assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
    assert_work(4, 2, 2 * BLOCK);
    restore();
    n_copied_to = 0;
    assert_int_equal(kp_shadow_put_back(s), CUDA_SUCCESS);
    assert_wanted(&m);
    assert_int_equal(n_copied_to, 2);
    /* The same memory as another kind of part is another block. */
    parts[1].constant = false;
    save(parts, 3);
    assert_int_equal(kp_shadow_last(s).copied, BLOCK);
    release(&m);
}

/* ---- room ---- */

/* What is left after a failure: nothing but the kernels. The next save copies everything. */
static void assert_empty(const struct memory *m)
{
    assert_int_equal(kp_shadow_held_on(0), kp_shadow_held(s));
    save_one(m);
    assert_work(BLOCKS, BLOCKS, kp_shadow_last(s).copied);
    want_this(m);
    memset(m->at, 0x11, m->bytes);
    restore();
    assert_wanted(m);
}

static void without_room_the_shadow_is_empty(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    struct kp_part p = part_of(&m);
    assert_int_equal(kp_shadow_save(s, &p, 1, &no_room), CUDA_ERROR_OUT_OF_MEMORY);
    uint64_t kernels = kp_shadow_held(s);
    assert_int_equal(kp_shadow_held_on(0), kernels);
    assert_int_equal(live().mappings, 1);
    assert_int_equal(kp_shadow_save(s, &p, 1, &no_room), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_shadow_held(s), kernels);
    assert_empty(&m);
    release(&m);
    /* With copies that there are. */
    struct memory larger = allocate((CHUNK_BLOCKS + 1) * BLOCK);
    p = (struct kp_part){.at = address_of(&larger), .bytes = CHUNK_BLOCKS * BLOCK};
    save(&p, 1);
    p.bytes += BLOCK;
    assert_int_equal(kp_shadow_save(s, &p, 1, &no_room), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_shadow_held(s), kernels);
    assert_int_equal(live().mappings, 1);
    release(&larger);
}

static void without_room_nothing_more_is_kept(void **state)
{
    (void)state;
    struct memory m = allocate(CHUNK_BLOCKS * BLOCK), before = {.at = m.at, .wanted = malloc(m.bytes), m.bytes};
    save_one(&m);
    want_this(&before);
    block(&m, 7)[0]++;
    assert_int_equal(kp_shadow_keep(s, &no_room), CUDA_ERROR_OUT_OF_MEMORY);
    restore(); /* what was saved is there */
    assert_memory_equal(before.at, before.wanted, before.bytes);
    free(before.wanted);
    release(&m);
}

static void copies_go_to_the_host_where_the_device_is_full(void **state)
{
    (void)state;
    struct memory m = allocate((CHUNK_BLOCKS + 40) * BLOCK);
    struct kp_part p = part_of(&m);
    const size_t chunk = (size_t)CHUNK_BLOCKS * BLOCK;
    const struct kp_slot_room both = {.device_left = 1000, .host = chunk}, too_little = {1000, chunk - 1};
    d->cuMemGetInfo = tell_left;
    want_this(&m);
    say_left(1000 + chunk / 10 * 19); /* one piece goes there */
    assert_int_equal(kp_shadow_save(s, &p, 1, &too_little), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_shadow_save(s, &p, 1, &both), CUDA_SUCCESS);
    assert_int_equal(pinned.n, 1);
    assert_int_equal(pinned.bytes, chunk);
    uint64_t held = kp_shadow_held(s);
    memset(m.at, 0x22, m.bytes);
    restore();
    assert_wanted(&m);
    give_all();
    assert_int_equal(pinned.n, 0);
    assert_false(is_mapped(pinned.at));
    say_left(1000 + chunk - 1); /* none does */
    assert_int_equal(kp_shadow_save(s, &p, 1, &both), CUDA_ERROR_OUT_OF_MEMORY);
    const struct kp_slot_room host = {.device_left = 1000, .host = 2 * chunk};
    threads_fail = true;
    assert_int_equal(kp_shadow_save(s, &p, 1, &host), CUDA_SUCCESS);
    assert_true(kp_shadow_held(s) == held - chunk);
    assert_int_equal(pinned.bytes, 2 * chunk);
    memset(m.at, 0x22, m.bytes);
    restore();
    assert_wanted(&m);
    release(&m);
}

static void without_pinned_memory_there_is_no_room_on_the_host(void **state)
{
    (void)state;
    static const char *const calls[] = {"pin", "pointer"};
    struct memory m = allocate_kinds();
    struct kp_part p = part_of(&m);
    const struct kp_slot_room host = {.device_left = UINT64_MAX, .host = UINT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        kp_test_fail(calls[i], 0, CUDA_ERROR_NOT_PERMITTED);
        assert_int_equal(kp_shadow_save(s, &p, 1, &host), CUDA_ERROR_OUT_OF_MEMORY);
        kp_test_fail(calls[i], 0, 0);
        assert_int_equal(pinned.n, 0);
        assert_false(is_mapped(pinned.at));
    }
    assert_empty(&m);
    d->cuMemHostRegister = NULL; /* of an older driver */
    give_all();
    assert_int_equal(kp_shadow_save(s, &p, 1, &host), CUDA_ERROR_OUT_OF_MEMORY);
    release(&m);
}

/* The first save leaves a third of the room that there is to blocks that change later; others take all. */
static void blocks_that_change_later_have_room_on_the_device(void **state)
{
    (void)state;
    const size_t chunk = (size_t)CHUNK_BLOCKS * BLOCK;
    struct memory m = allocate((CHUNK_BLOCKS + 40) * BLOCK);
    struct kp_part p = part_of(&m);
    const struct kp_slot_room some = {.device_left = 1000, .host = 4 * chunk};
    d->cuMemGetInfo = tell_left;
    say_left(1000 + 2 * chunk); /* two thirds are one piece */
    assert_int_equal(kp_shadow_save(s, &p, 1, &some), CUDA_SUCCESS);
    assert_int_equal(pinned.bytes, chunk);
    uint64_t held = kp_shadow_held(s);
    for (size_t i = 0; i < 100; i++)
        block(&m, CHUNK_BLOCKS - 50 + i % 90)[i]++;
    say_left(1000 + chunk);
    assert_int_equal(kp_shadow_save(s, &p, 1, &some), CUDA_SUCCESS);
    assert_work(CHUNK_BLOCKS + 40, 90, (uint64_t)90 * BLOCK);
    assert_int_equal(kp_shadow_held(s), held + chunk); /* those of them that were on the host have left it */
    want_this(&m);
    say_left(0);
    for (int round = 0; round < 2; round++) {
        memset(m.at, 0x33, m.bytes);
        restore();
        assert_wanted(&m);
        block(&m, CHUNK_BLOCKS + 39)[0]++;
        assert_int_equal(kp_shadow_save(s, &p, 1, &some), CUDA_SUCCESS); /* needs no more */
        want_this(&m);
    }
    assert_int_equal(kp_shadow_held(s), held + chunk);
    assert_int_equal(pinned.n, 1);
    release(&m);
}

/* Where that third is missing at the end, it is taken. */
static void a_save_takes_all_room_that_it_needs(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    struct kp_part p = part_of(&m);
    d->cuMemGetInfo = tell_left;
    say_left(1000 + CHUNK_BLOCKS * (size_t)BLOCK / 10 * 11);
    assert_int_equal(kp_shadow_save(s, &p, 1, &(struct kp_slot_room){.device_left = 1000}), CUDA_SUCCESS);
    release(&m);
}

/* ---- giving room back ---- */

/* One piece of two goes to the host, with what is saved and kept, and its places that are free. */
static void copies_move_to_the_host(void **state)
{
    (void)state;
    const size_t chunk = (size_t)CHUNK_BLOCKS * BLOCK;
    struct memory m = allocate((CHUNK_BLOCKS + 40) * BLOCK), before = {m.at, malloc(m.bytes), m.bytes};
    save_one(&m);
    uint64_t held = kp_shadow_held(s);
    want_this(&before);
    memset(block(&m, 3), 0, BLOCK);
    fill_mixed(block(&m, CHUNK_BLOCKS + 3), BLOCK);
    want_this(&m);
    assert_int_equal(kp_shadow_keep(s, &room), CUDA_SUCCESS);
    kp_shadow_give(s, chunk - 1, chunk);
    assert_int_equal(kp_shadow_held(s), held - chunk);
    assert_int_equal(kp_shadow_held_on(0), held - chunk);
    assert_int_equal(pinned.n, 1);
    restore();
    assert_memory_equal(before.at, before.wanted, before.bytes);
    assert_int_equal(kp_shadow_put_back(s), CUDA_SUCCESS);
    assert_wanted(&m);
    save_one(&m); /* nothing is copied anew but what has changed */
    assert_work(CHUNK_BLOCKS + 40, 2, BLOCK);
    /* The other piece, and then there is none. */
    kp_shadow_give(s, chunk, chunk);
    assert_int_equal(pinned.n, 2);
    uint64_t without = kp_shadow_held(s);
    memset(m.at, 1, m.bytes);
    restore();
    assert_wanted(&m);
    assert_int_equal(kp_shadow_held(s), without + 2 * chunk); /* what comes back in each pass is near again */
    memset(m.at, 2, m.bytes);
    restore();
    assert_wanted(&m);
    kp_shadow_give(s, UINT64_MAX, UINT64_MAX);
    assert_int_equal(live().mappings, 0);
    assert_int_equal(pinned.n, 0);
    save_one(&m);
    assert_work(CHUNK_BLOCKS + 40, CHUNK_BLOCKS + 40, (uint64_t)(CHUNK_BLOCKS + 39) * BLOCK);
    free(before.wanted);
    release(&m);
}

static void copies_that_cannot_move_are_given_up(void **state)
{
    (void)state;
    static const char *const calls[] = {"stream", "read-later", "wait", "pin", "pointer"};
    struct memory m = allocate_kinds();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        save_one(&m);
        kp_test_fail(calls[i], 1, CUDA_ERROR_NOT_PERMITTED);
        kp_shadow_give(s, 1, UINT64_MAX);
        assert_int_equal(kp_test_count(calls[i]) > 0, true);
        kp_test_fail(calls[i], 1, 0);
        assert_int_equal(live().mappings, 0);
        assert_int_equal(pinned.n, 0);
        assert_empty(&m);
    }
    d->cuMemcpyDtoHAsync = NULL;
    kp_shadow_give(s, 1, UINT64_MAX);
    assert_int_equal(live().mappings, 0);
    release(&m);
}

/* ---- failures ---- */

/* All that a window does, with parts that change. Returns the first failure. */
static CUresult whole_window(const struct memory *m)
{
    const struct kp_part all = part_of(m), fewer = {.at = all.at, .bytes = 5 * BLOCK},
                         parts[] = {fewer, {.at = all.at + 5 * BLOCK, .bytes = BLOCK, .constant = true}};
    CUresult rc = kp_shadow_save(s, &all, 1, &room);
    if (rc == CUDA_SUCCESS)
        rc = kp_shadow_save(s, parts, 2, &room);
    fill_mixed(block(m, 0), BLOCK);
    fill_mixed(block(m, 3), 3 * BLOCK);
    if (rc == CUDA_SUCCESS)
        rc = kp_shadow_keep(s, &room);
    if (rc == CUDA_SUCCESS)
        rc = kp_shadow_restore(s);
    if (rc == CUDA_SUCCESS)
        rc = kp_shadow_put_back(s);
    return rc;
}

/* What makes memory first: a piece of room that cannot be had is tried for again. */
enum { MAKES_MEMORY = 5 };
static const char *const can_fail[] = {"granularity", "create",   "reserve", "map",  "access",
                                       "load",        "function", "write",   "read", "zero",
                                       "stream",      "wait",     "kernel",  "copy", "sync"};

/* Whether the nth of such calls was met, and the window failed by it. */
static bool fails(size_t which, unsigned nth)
{
    const char *word = can_fail[which];
    struct memory m = allocate_kinds();
    kp_test_forget_calls();
    kp_test_fail(word, nth, CUDA_ERROR_NOT_PERMITTED);
    CUresult rc = whole_window(&m);
    bool met = kp_test_count(word) >= nth;
    kp_test_fail(word, nth, 0);
    if (rc == CUDA_SUCCESS ? met && which >= MAKES_MEMORY : !met)
        fail_msg("%s %u: %d", word, nth, rc);
    kp_shadow_forget_kept(s);
    save_one(&m);
    want_this(&m);
    fill_mixed(m.at, m.bytes);
    restore();
    assert_wanted(&m);
    release(&m);
    return met;
}

static void each_call_can_fail(void **state)
{
    for (size_t i = 0; i < sizeof(can_fail) / sizeof(*can_fail); i++) {
        unsigned nth = 1;
        while (fails(i, nth)) {
            tear_down(state);
            set_up(state);
            nth++;
        }
        if (nth == 1)
            fail_msg("%s is never called", can_fail[i]);
        tear_down(state);
        set_up(state);
    }
}

/* The copies there are go at a failure of a save: the memory that is saved is what it was. */
static void a_failed_save_leaves_nothing(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    struct kp_part p = part_of(&m);
    save_one(&m);
    kp_test_fail("kernel", 1, CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(kp_shadow_save(s, &p, 1, &room), CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(live().mappings, 1);
    assert_empty(&m);
    release(&m);
}

/* ---- the end ---- */

static void all_is_given_back(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    save_one(&m);
    assert_true(kp_shadow_held(s) > CHUNK_BLOCKS * (uint64_t)BLOCK);
    give_all();
    assert_int_equal(kp_shadow_held(s), 0);
    assert_int_equal(kp_shadow_held_on(0), 0);
    assert_int_equal(live().mappings, 0);
    give_all();
    assert_empty(&m);
    release(&m);
}

static void two_shadows_count_together(void **state)
{
    (void)state;
    struct kp_shadow *first = s;
    struct memory m = allocate_kinds();
    CUcontext other_ctx;
    save_one(&m);
    uint64_t held = kp_shadow_held(first);
    const struct kp_device other = {.device = 1, .sm_count = 132};
    const struct kp_threads threads = {start, join};
    setenv("FAKE_DEVICES", "2", 1);
    CUresult (*create)(CUcontext *, unsigned, CUdevice) =
        (CUresult(*)(CUcontext *, unsigned, CUdevice))(uintptr_t)kp_test_fake("cuCtxCreate_v2");
    assert_int_equal(create(&other_ctx, 0, 1), CUDA_SUCCESS);
    struct memory there = allocate_kinds();
    struct kp_part p = part_of(&there);
    assert_int_equal(kp_shadow_open(d, &other, &threads, &s), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_save(s, &p, 1, &room), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_held_on(0), held);
    assert_int_equal(kp_shadow_held_on(1), held);
    assert_int_equal(kp_shadow_held_on(-1), 2 * held);
    assert_int_equal(kp_shadow_held_on(1000), 0);
    kp_shadow_close(s, true);
    assert_int_equal(kp_shadow_held_on(1), 0);
    release(&there);
    kp_test_context_end(other_ctx);
    assert_int_equal(next.cuCtxPushCurrent(ctx), CUDA_SUCCESS);
    unsetenv("FAKE_DEVICES");
    s = first;
    release(&m);
}

/* Its memory went with the context; what is left is the host's. */
static void the_context_ends_first(void **state)
{
    (void)state;
    struct memory m = allocate_kinds();
    struct kp_part p = part_of(&m);
    const struct kp_slot_room host = {.device_left = UINT64_MAX, .host = UINT64_MAX};
    assert_int_equal(kp_shadow_save(s, &p, 1, &host), CUDA_SUCCESS);
    assert_int_equal(kp_shadow_keep(s, &host), CUDA_SUCCESS);
    kp_test_forget_calls();
    kp_shadow_close(s, false);
    kp_test_calls(NULL, "");
    assert_false(is_mapped(pinned.at));
    assert_int_equal(kp_shadow_held_on(0), 0);
    kp_shadow_close(NULL, true);
    free(m.wanted);
    kp_test_context_end(ctx);
}

static void some_drivers_lack_what_is_needed(void **state)
{
    (void)state;
    assert_true(kp_shadow_available(d));
#define WITHOUT(name)                                                                                                  \
    do {                                                                                                               \
        struct kp_driver without = *d;                                                                                 \
        without.name = NULL;                                                                                           \
        assert_false(kp_shadow_available(&without));                                                                   \
    } while (0)
    WITHOUT(cuMemCreate);
    WITHOUT(cuMemAddressReserve);
    WITHOUT(cuMemMap);
    WITHOUT(cuMemSetAccess);
    WITHOUT(cuMemUnmap);
    WITHOUT(cuMemRelease);
    WITHOUT(cuMemAddressFree);
    WITHOUT(cuMemGetAllocationGranularity);
    WITHOUT(cuMemcpyHtoD);
    WITHOUT(cuStreamSynchronize);
    WITHOUT(cuStreamCreate);
    WITHOUT(cuStreamDestroy);
    WITHOUT(cuMemsetD32Async);
#undef WITHOUT
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_save_copies_what_is_not_of_one_value),
        TEST(the_next_save_copies_what_has_changed),
        TEST(a_restore_brings_back_what_differs),
        TEST(what_is_no_part_stays),
        TEST(a_block_that_was_never_saved_is_copied),
        TEST(nothing_can_be_saved),
        TEST(what_is_kept_is_put_back),
        TEST(what_is_kept_is_forgotten),
        TEST(a_save_forgets_what_was_kept),
        TEST(places_of_blocks_of_one_value_are_used_again),
        TEST(parts_come_and_go),
        TEST(parts_grow_and_shrink),
        TEST(moved_memory_is_new),
        TEST(places_of_parts_that_went_are_used_again),
        TEST(the_driver_copies_back_what_is_constant),
        TEST(without_room_the_shadow_is_empty),
        TEST(without_room_nothing_more_is_kept),
        TEST(copies_go_to_the_host_where_the_device_is_full),
        TEST(blocks_that_change_later_have_room_on_the_device),
        TEST(a_save_takes_all_room_that_it_needs),
        TEST(copies_move_to_the_host),
        TEST(copies_that_cannot_move_are_given_up),
        TEST(without_pinned_memory_there_is_no_room_on_the_host),
        TEST(each_call_can_fail),
        TEST(a_failed_save_leaves_nothing),
        TEST(all_is_given_back),
        TEST(two_shadows_count_together),
        TEST(some_drivers_lack_what_is_needed),
        cmocka_unit_test_setup(the_context_ends_first, set_up), /* the last one: the fake driver keeps what it leaves */
    };
#undef TEST
    return cmocka_run_group_tests_name("collectors/shadow", tests, NULL, NULL);
}
