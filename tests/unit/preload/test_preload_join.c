/* What may join a window, and that the record of it does the same again after the program has overwritten all that the
 * call read. The driver is a few functions of this test; device memory is memory that they say is the device's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/journal/op_encode.h"
#include "preload/journal/read_value.h"

enum { MOST = 1 << 20 };

/* ---- the driver ---- */

/* A picture of which a part is copied. */
enum { X = 3, Y = 2, PITCH = 100, WIDTH = 40, HEIGHT = 200, OUT_PITCH = 64 };

static char device[1 << 17], pinned[4096], managed[4096], picture[(Y + HEIGHT) * PITCH];
static bool picture_is_pinned;
static unsigned managed_type = CU_MEMORYTYPE_DEVICE;

static const CUcontext here = (CUcontext)0x100, elsewhere = (CUcontext)0x200;
static const CUstream stream = (CUstream)0x1000, foreign_stream = (CUstream)0x2000;
static const uint64_t event = 0x3000;
static CUresult attribute_error;

static bool within(uint64_t address, const char *memory, size_t bytes)
{
    return address >= (uintptr_t)memory && address < (uintptr_t)memory + bytes;
}

static bool in_pinned(uint64_t address)
{
    return within(address, pinned, sizeof(pinned)) || (picture_is_pinned && within(address, picture, sizeof(picture)));
}

static CUresult pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr p)
{
    bool is_managed = within(p, managed, sizeof(managed)), is_pinned = in_pinned(p);
    if (attribute_error)
        return attribute_error;
    if (!is_managed && !is_pinned && !within(p, device, sizeof(device)))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(bool *)out = is_managed;
    else
        *(unsigned *)out = is_pinned ? CU_MEMORYTYPE_HOST : is_managed ? managed_type : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult current_context(CUcontext *out)
{
    *out = here;
    return CUDA_SUCCESS;
}

static CUresult context_of_stream(CUstream s, CUcontext *out)
{
    *out = s == foreign_stream ? elsewhere : here;
    return CUDA_SUCCESS;
}

static struct kp_driver driver = {
    .cuPointerGetAttribute = pointer_attribute,
    .cuCtxGetCurrent = current_context,
    .cuStreamGetCtx = context_of_stream,
};

/* What only the window's owner knows to be host memory. */
static char *const known = device + sizeof(device) - 4096;

static bool reaches_host(uint64_t address)
{
    return within(address, known, 4096) || in_pinned(address) || within(address, managed, sizeof(managed));
}

/* Stands before the C library's. The kernel's reads no mapping of a device, which pinned memory may be, and seldom all
 * at once. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to, const struct iovec *from,
                         unsigned long n_from, unsigned long flags)
{
    struct iovec part = to[0];
    part.iov_len = part.iov_len > 1001 ? 1001 : part.iov_len;
    assert_int_equal(n_to, 1);
    if (in_pinned((uintptr_t)from->iov_base)) {
        errno = EFAULT;
        return -1;
    }
    return syscall(SYS_process_vm_readv, pid, &part, 1, from, n_from, flags);
}

/* ---- calls ---- */

static struct kp_op op;

static enum kp_join judge(const char *symbol, void *real, size_t most, const uint64_t args[KP_OP_ARGS])
{
    memset(&op, 0x55, sizeof(op));
    return kp_join_record(&driver, symbol, real, args, reaches_host, most, &op);
}

#define ARGS(...)  ((const uint64_t[KP_OP_ARGS]){__VA_ARGS__})
#define P(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A call that joins, and keeps nothing but its arguments. */
#define assert_joins(symbol, ...)                                                                                      \
    do {                                                                                                               \
        assert_int_equal(judge(symbol, NULL, MOST, ARGS(__VA_ARGS__)), KP_JOIN_YES);                                   \
        assert_memory_equal(op.args, ARGS(__VA_ARGS__), sizeof(op.args));                                              \
        assert_null(op.copy);                                                                                          \
        assert_int_equal(op.copied, 0);                                                                                \
    } while (0)

#define assert_closes(symbol, ...) assert_closes_at(MOST, symbol, __VA_ARGS__)
#define assert_closes_at(most, symbol, ...)                                                                            \
    do {                                                                                                               \
        assert_int_equal(judge(symbol, NULL, most, ARGS(__VA_ARGS__)), KP_JOIN_CLOSE);                                 \
        assert_null(op.copy);                                                                                          \
    } while (0)

/* ---- memsets ---- */

static void test_memset(void **state)
{
    static const char *const plain[] = {"cuMemsetD8", "cuMemsetD16_v2", "cuMemsetD32_v2_ptds", NULL};
    static const char *const async[] = {"cuMemsetD8Async", "cuMemsetD16Async_ptsz", "cuMemsetD32Async", NULL};
    static const char *const async_2d[] = {"cuMemsetD2D8Async", "cuMemsetD2D16Async", "cuMemsetD2D32Async_ptsz", NULL};
    (void)state;
    for (const char *const *s = plain; *s; s++) {
        assert_joins(*s, P(device), 7, 100);
        assert_joins(*s, P(device), 7, 0);
        assert_closes(*s, P(pinned), 7, 100);
        assert_closes(*s, P(managed), 7, 100);
        assert_closes(*s, 0, 7, 100);
    }
    for (const char *const *s = async; *s; s++) {
        assert_joins(*s, P(device), 7, 100, P(stream));
        assert_joins(*s, P(device), 7, 100, 0);
        assert_closes(*s, P(pinned), 7, 100, P(stream));
        assert_closes(*s, P(device), 7, 100, P(foreign_stream));
    }
    for (const char *const *s = async_2d; *s; s++) {
        assert_joins(*s, P(device), 512, 7, 100, 3, P(stream));
        assert_closes(*s, P(pinned), 512, 7, 100, 3, P(stream));
        assert_closes(*s, P(device), 512, 7, 100, 3, P(foreign_stream));
    }
    assert_joins("cuMemsetD2D8_v2", P(device), 512, 7, 100, 3);
    assert_closes("cuMemsetD2D8_v2", P(managed), 512, 7, 100, 3);
}

/* The default streams are of the current context, and no handles to ask about. */
static void test_default_streams(void **state)
{
    (void)state;
    driver.cuStreamGetCtx = NULL;
    assert_joins("cuMemsetD8Async", P(device), 7, 100, 0);
    assert_joins("cuMemsetD8Async", P(device), 7, 100, P(CU_STREAM_LEGACY));
    assert_joins("cuMemsetD8Async", P(device), 7, 100, P(CU_STREAM_PER_THREAD));
    driver.cuStreamGetCtx = context_of_stream;
}

static CUresult set_bytes(CUdeviceptr to, unsigned char value, size_t n, CUstream on)
{
    assert_ptr_equal(on, stream);
    memset((void *)to, value, n);
    return CUDA_ERROR_NOT_READY;
}

/* Registers may hold anything beyond a narrow argument. */
static void test_issue_again(void **state)
{
    (void)state;
    memset(device, 0, sizeof(device));
    assert_int_equal(judge("cuMemsetD8Async", (void *)(uintptr_t)set_bytes, MOST,
                           ARGS(P(device), 0xabcdef0123456789, 100, P(stream))),
                     KP_JOIN_YES);
    assert_ptr_equal(op.real, (void *)(uintptr_t)set_bytes);
    assert_int_equal(kp_op_issue(&op), CUDA_ERROR_NOT_READY);
    assert_int_equal((unsigned char)device[99], 0x89);
    assert_int_equal(device[100], 0);
    kp_op_free(&op);
}

static uint64_t seen[KP_OP_ARGS];

static CUresult see(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    memcpy(seen, ARGS(a, b, c, d, e, f), sizeof(seen));
    return CUDA_SUCCESS;
}

static void test_all_arguments_are_issued(void **state)
{
    (void)state;
    assert_int_equal(
        judge("cuMemsetD2D32Async", (void *)(uintptr_t)see, MOST, ARGS(P(device), 512, 3, 100, 5, P(stream))),
        KP_JOIN_YES);
    assert_int_equal(kp_op_issue(&op), CUDA_SUCCESS);
    assert_memory_equal(seen, ARGS(P(device), 512, 3, 100, 5, P(stream)), sizeof(seen));
}

/* ---- copies ---- */

static CUresult copy(CUdeviceptr to, const void *from, size_t n)
{
    memcpy((void *)to, from, n);
    return CUDA_SUCCESS;
}

/* Records a copy from `from`, overwrites that, issues the record again, and looks at what arrives. */
static void check_copy(const char *symbol, char *from)
{
    enum { N = 3000 };
    for (int i = 0; i < N; i++)
        from[i] = (char)(i % 251);
    memset(device, 0, sizeof(device));
    const uint64_t args[KP_OP_ARGS] = {P(device), P(from), N, P(stream), 5, 6};
    assert_int_equal(judge(symbol, (void *)(uintptr_t)copy, N, args), KP_JOIN_YES);
    assert_int_equal(op.copied, N);
    assert_ptr_equal(op.copy, (void *)(uintptr_t)op.args[1]);
    assert_int_equal(op.args[0], args[0]);
    assert_memory_equal(op.args + 2, args + 2, 4 * sizeof(*args));
    memset(from, 0x77, N);
    assert_int_equal(kp_op_issue(&op), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        assert_int_equal(device[i], (char)(i % 251));
    assert_int_equal(device[N], 0);
    kp_op_free(&op);
    assert_null(op.copy);
    kp_op_free(&op);
    /* one byte more than may be kept */
    assert_closes_at(N - 1, symbol, P(device), P(from), N, P(stream));
}

static void test_copy_from_host(void **state)
{
    static const char *const plain[] = {"cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2_ptsz",
                                        "cuMemcpy_ptds",   "cuMemcpyAsync",     NULL};
    char pageable[4096];
    (void)state;
    for (const char *const *s = plain; *s; s++) {
        check_copy(*s, pageable);
        check_copy(*s, pinned);
        assert_closes(*s, P(pinned), P(pageable), 10, P(stream));
        assert_closes(*s, P(managed), P(pageable), 10, P(stream));
        assert_closes(*s, P(device), P(managed), 10, P(stream));
        managed_type = CU_MEMORYTYPE_HOST;
        assert_closes(*s, P(device), P(managed), 10, P(stream));
        managed_type = CU_MEMORYTYPE_DEVICE;
        assert_closes(*s, P(device), 0, 10, P(stream));
        assert_closes(*s, 0, P(pageable), 10, P(stream));
        assert_joins(*s, P(device), P(pageable), 0, P(stream)); /* there is nothing to keep */
    }
    assert_closes("cuMemcpyHtoDAsync_v2", P(device), P(pageable), 10, P(foreign_stream));
    assert_closes("cuMemcpyAsync", P(device), P(pageable), 10, P(foreign_stream));
    /* what comes from the device does not hold still */
    assert_closes("cuMemcpyHtoD_v2", P(device), P(device), 10);
}

static void test_copy_on_the_device(void **state)
{
    static const char *const all[] = {"cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2_ptsz", "cuMemcpy", "cuMemcpyAsync",
                                      NULL};
    (void)state;
    for (const char *const *s = all; *s; s++) {
        assert_joins(*s, P(device), P(device + 512), 100, P(stream));
        assert_closes(*s, P(managed), P(device), 100, P(stream));
        assert_closes(*s, P(device), P(managed), 100, P(stream));
        assert_closes(*s, P(device), P(known), 100, P(stream));
        assert_closes(*s, P(known), P(device), 100, P(stream));
    }
    assert_closes("cuMemcpyDtoD_v2", P(device), P(pinned), 100);
    assert_closes("cuMemcpyDtoDAsync_v2", P(pinned), P(device), 100, P(stream));
    assert_closes("cuMemcpyDtoDAsync_v2", P(device), P(device + 512), 100, P(foreign_stream));
}

/* Where a copy between any two addresses goes to is what the driver says of the address. */
static void test_copy_anywhere(void **state)
{
    char pageable[16];
    (void)state;
    attribute_error = CUDA_ERROR_INVALID_CONTEXT;
    assert_closes("cuMemcpy", P(device), P(device + 512), 10);
    assert_closes("cuMemcpyHtoD_v2", P(device), P(pageable), 10);
    attribute_error = CUDA_SUCCESS;
}

/* A result is told from all else, with what it takes to read it again; where it is pinned memory, and the call need not
 * wait, it comes later. */
static void test_results(void **state)
{
    static const struct {
        const char *symbol;
        bool async;
    } all[] = {{"cuMemcpyDtoH_v2", false},
               {"cuMemcpyDtoH_v2_ptds", false},
               {"cuMemcpyDtoHAsync_v2", true},
               {"cuMemcpyDtoHAsync_v2_ptsz", true},
               {"cuMemcpy", false},
               {"cuMemcpyAsync", true}};
    char pageable[16];
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        const char *s = all[i].symbol;
        assert_joins(s, P(pageable), P(device), 10, P(stream));
        assert_true(op.result == 1 && op.result_bytes == 10 && !op.later && op.waits);
        assert_joins(s, P(pinned), P(device), 12, P(stream));
        assert_true(op.result == 1 && op.result_bytes == 12 && op.later == all[i].async && op.waits == !all[i].async);
        assert_closes(s, P(managed), P(device), 10, P(stream)); /* the host sees it without this call, too */
        assert_closes(s, P(pageable), P(managed), 10, P(stream));
        assert_closes(s, P(pageable), P(known), 10, P(stream));
        assert_closes(s, P(pageable), P(device), 0, P(stream));
    }
    assert_closes("cuMemcpyDtoHAsync_v2", P(pageable), P(device), 10, P(foreign_stream));
    assert_joins("cuMemcpyDtoD_v2", P(device), P(device + 512), 10);
    assert_int_equal(op.result, 0);
    assert_int_equal(judge("cuMemcpyHtoD_v2", NULL, MOST, ARGS(P(device), P(pageable), 8)), KP_JOIN_YES);
    assert_true(!op.result && !op.from_pinned);
    kp_op_free(&op);
    assert_int_equal(judge("cuMemcpyHtoDAsync_v2", NULL, MOST, ARGS(P(device), P(pinned), 8, P(stream))), KP_JOIN_YES);
    assert_true(!op.result && op.from_pinned);
    kp_op_free(&op);
}

/* Two pages, of which the second cannot be read. */
static char *half_readable(size_t *page)
{
    *page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mprotect(p + *page, *page, PROT_NONE), 0);
    return p;
}

/* A wrong call is the driver's to refuse, and not ours to crash in. */
static void test_unreadable_source(void **state)
{
    size_t page;
    char *p = half_readable(&page);
    (void)state;
    assert_closes("cuMemcpyHtoD_v2", P(device), P(p + page - 8), 16);
    assert_closes("cuMemcpyHtoD_v2", P(device), 16, 16);
    assert_int_equal(judge("cuMemcpyHtoD_v2", NULL, MOST, ARGS(P(device), P(p + page - 8), 8)), KP_JOIN_YES);
    kp_op_free(&op);
    munmap(p, 2 * page);
}

/* ---- copies of rectangles ---- */

static void paint(void)
{
    for (size_t i = 0; i < sizeof(picture); i++)
        picture[i] = (char)(i * 7 % 253);
    memset(device, 0, sizeof(device));
}

static CUDA_MEMCPY2D rectangle(CUmemorytype from, CUmemorytype to)
{
    CUDA_MEMCPY2D m = {.srcMemoryType = from,
                       .srcXInBytes = X,
                       .srcY = Y,
                       .srcPitch = PITCH,
                       .dstMemoryType = to,
                       .dstXInBytes = 1,
                       .dstY = 1,
                       .dstPitch = OUT_PITCH,
                       .dstDevice = P(device),
                       .WidthInBytes = WIDTH,
                       .Height = HEIGHT};
    if (from == CU_MEMORYTYPE_HOST)
        m.srcHost = picture;
    else
        m.srcDevice = P(picture);
    return m;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *m, CUstream on)
{
    bool host = m->srcMemoryType == CU_MEMORYTYPE_HOST, to_host = m->dstMemoryType == CU_MEMORYTYPE_HOST;
    const char *from = host ? (const char *)m->srcHost : (const char *)(uintptr_t)m->srcDevice;
    char *to = to_host ? m->dstHost : (char *)(uintptr_t)m->dstDevice;
    assert_ptr_equal(on, stream);
    for (size_t row = 0; row < m->Height; row++)
        memcpy(to + (m->dstY + row) * m->dstPitch + m->dstXInBytes,
               from + (m->srcY + row) * m->srcPitch + m->srcXInBytes, m->WidthInBytes);
    return CUDA_SUCCESS;
}

static enum kp_join judge_2d(const CUDA_MEMCPY2D *m, size_t most)
{
    return judge("cuMemcpy2DAsync_v2", (void *)(uintptr_t)copy_2d, most, ARGS(P(m), P(stream)));
}

/* Records the copy, spoils all that it refers to, issues it again. The picture arrives as it was. */
static void check_rectangle(CUDA_MEMCPY2D m)
{
    static char was[sizeof(picture)];
    const size_t x = m.srcXInBytes, y = m.srcY, width = m.WidthInBytes, pitch = m.srcPitch;
    const size_t kept = sizeof(m) + width * HEIGHT;
    paint();
    memcpy(was, picture, sizeof(was));
    assert_int_equal(judge_2d(&m, kept - 1), KP_JOIN_CLOSE);
    assert_null(op.copy);
    assert_int_equal(judge_2d(&m, kept), KP_JOIN_YES);
    assert_int_equal(op.copied, kept);
    memset(picture, 0x11, sizeof(picture));
    memset(&m, 0x11, sizeof(m));
    assert_int_equal(kp_op_issue(&op), CUDA_SUCCESS);
    for (size_t row = 0; row < HEIGHT; row++) {
        assert_memory_equal(device + (1 + row) * OUT_PITCH + 1, was + (y + row) * pitch + x, width);
        assert_int_equal(device[(1 + row) * OUT_PITCH], 0);
        assert_int_equal(device[(1 + row) * OUT_PITCH + 1 + width], 0);
    }
    kp_op_free(&op);
}

static void test_rectangle_from_host(void **state)
{
    (void)state;
    check_rectangle(rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE));
    check_rectangle(rectangle(CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED));
    /* whole rows */
    CUDA_MEMCPY2D m = rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
    m.srcXInBytes = 0;
    m.srcPitch = WIDTH;
    check_rectangle(m);
    picture_is_pinned = true;
    check_rectangle(rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE));
    check_rectangle(rectangle(CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED));
    check_rectangle(m);
    picture_is_pinned = false;
}

/* What is kept of the others is the descriptor. */
static void check_kept(CUDA_MEMCPY2D m)
{
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_YES);
    assert_int_equal(op.copied, sizeof(m));
    assert_ptr_equal((void *)(uintptr_t)op.args[0], op.copy);
    assert_int_equal(op.args[1], P(stream));
    assert_memory_equal(op.copy, &m, sizeof(m));
    kp_op_free(&op);
}

static void test_rectangle_on_the_device(void **state)
{
    static const CUmemorytype types[] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
    CUDA_MEMCPY2D m;
    (void)state;
    for (int i = 0; i < 2; i++) {
        m = rectangle(types[i], CU_MEMORYTYPE_DEVICE);
        m.srcDevice = P(device);
        check_kept(m);
        m.srcDevice = P(managed);
        assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
        m.srcDevice = P(device);
        m.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        m.dstDevice = 0;
        check_kept(m);
    }
    m = rectangle(CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_DEVICE);
    m.srcDevice = 0;
    check_kept(m);
    assert_int_equal(judge_2d(&m, sizeof(m) - 1), KP_JOIN_CLOSE);
    /* nothing is read */
    m = rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
    m.Height = 0;
    check_kept(m);
}

/* Returns rows of the device that go to the host. */
static CUDA_MEMCPY2D rectangle_to_host(void *to, size_t pitch)
{
    CUDA_MEMCPY2D m = rectangle(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST);
    m.srcDevice = P(device);
    m.dstDevice = 0;
    m.dstHost = to;
    m.dstPitch = pitch;
    return m;
}

/* Rows that go to the host are a result, which is kept without gaps, and read again in pieces of whole rows. */
static void test_rectangle_to_host(void **state)
{
    static char host[(HEIGHT + 1) * OUT_PITCH];
    char value[WIDTH * HEIGHT], now[WIDTH * HEIGHT];
    CUDA_MEMCPY2D m = rectangle_to_host(host, OUT_PITCH);
    (void)state;
    for (size_t i = 0; i < sizeof(device); i++)
        device[i] = (char)(i * 5 % 251);
    assert_int_equal(copy_2d(&m, stream), CUDA_SUCCESS);
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_YES);
    assert_true(op.rows && op.result == 1 && op.result_bytes == WIDTH * HEIGHT && !op.later && op.waits);
    memset(&m, 0x11, sizeof(m)); /* the caller's */
    kp_value_take(&op, value);
    for (size_t row = 0; row < HEIGHT; row++)
        assert_memory_equal(value + row * WIDTH, device + (Y + row) * PITCH + X, WIDTH);
    memset(host, 0, sizeof(host));
    assert_int_equal(kp_value_piece(&op, 2 * WIDTH + 1), 2 * WIDTH);
    assert_int_equal(kp_value_piece(&op, 1 << 20), WIDTH * HEIGHT);
    assert_int_equal(kp_value_read(&op, 0, 2 * WIDTH, now), CUDA_SUCCESS);
    assert_int_equal(kp_value_read(&op, 2 * WIDTH, (HEIGHT - 2) * WIDTH, now + 2 * WIDTH), CUDA_SUCCESS);
    assert_memory_equal(now, value, sizeof(value));
    assert_int_equal(host[OUT_PITCH + 1], 0); /* the program's memory is left alone */
    memset(now, 0, sizeof(now));
    assert_int_equal(kp_value_aside(NULL, &op, P(now)), CUDA_SUCCESS);
    assert_memory_equal(now, value, sizeof(value));
    kp_op_free(&op);
    m = rectangle_to_host(pinned, OUT_PITCH);
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_YES);
    assert_true(op.rows && op.later && !op.waits);
    kp_op_free(&op);
    m = rectangle_to_host(host, 0);
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
    m = rectangle_to_host(host, OUT_PITCH);
    m.dstHost = managed;
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
    m = rectangle_to_host(host, OUT_PITCH);
    m.srcDevice = P(known);
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
    m = rectangle_to_host(host, OUT_PITCH);
    m.Height = 0;
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
}

static void test_rectangle_that_closes(void **state)
{
    const CUDA_MEMCPY2D good = rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
    CUDA_MEMCPY2D m;
    (void)state;
#define assert_closes_with(...)                                                                                        \
    do {                                                                                                               \
        m = good;                                                                                                      \
        __VA_ARGS__;                                                                                                   \
        assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);                                                           \
        assert_null(op.copy);                                                                                          \
    } while (0)
    assert_closes_with(m.dstMemoryType = CU_MEMORYTYPE_HOST);
    assert_closes_with(m.dstMemoryType = 0);
    assert_closes_with(m.srcMemoryType = 0);
    assert_closes_with(m.dstDevice = P(managed));
    assert_closes_with(m.dstMemoryType = CU_MEMORYTYPE_UNIFIED, m.dstDevice = P(picture));
    assert_closes_with(m.dstMemoryType = CU_MEMORYTYPE_UNIFIED, m.dstDevice = P(managed));
    assert_closes_with(m.srcHost = managed);
    assert_closes_with(m.srcHost = device);
    assert_closes_with(m.srcPitch = X + WIDTH - 1);
    assert_closes_with(m.srcXInBytes = SIZE_MAX - 5);
    assert_closes_with(m.WidthInBytes = m.srcPitch = (size_t)1 << 33, m.Height = (size_t)1 << 31, m.srcXInBytes = 0);
    assert_closes("cuMemcpy2DAsync_v2", 0, P(stream));
    assert_int_equal(judge("cuMemcpy2DAsync_v2", NULL, MOST, ARGS(P(&good), P(foreign_stream))), KP_JOIN_CLOSE);
    assert_int_equal(judge("cuMemcpy2DUnaligned_v2_ptds", NULL, MOST, ARGS(P(&good), P(foreign_stream))), KP_JOIN_YES);
    kp_op_free(&op);
}

/* The window of rows begins in readable memory and ends in what is not. */
static void test_unreadable_rows(void **state)
{
    CUDA_MEMCPY2D m = rectangle(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
    size_t page;
    char *p = half_readable(&page);
    (void)state;
    m.srcHost = p;
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_CLOSE);
    assert_null(op.copy);
    m.Height = page / PITCH - Y - 1;
    assert_int_equal(judge_2d(&m, MOST), KP_JOIN_YES);
    kp_op_free(&op);
    munmap(p, 2 * page);
}

/* ---- events ---- */

static void test_events(void **state)
{
    const uint64_t garbage = (uint64_t)1 << 32; /* above a flag's 32 bit */
    (void)state;
    assert_joins("cuEventRecord", event, P(stream));
    assert_joins("cuEventRecord_ptsz", event, 0);
    assert_joins("cuEventRecordWithFlags", event, P(stream), garbage | CU_EVENT_RECORD_DEFAULT);
    assert_joins("cuStreamWaitEvent", P(stream), event, garbage | CU_EVENT_WAIT_DEFAULT);
    assert_closes("cuEventRecordWithFlags_ptsz", event, P(stream), CU_EVENT_RECORD_EXTERNAL);
    assert_closes("cuStreamWaitEvent_ptsz", P(stream), event, CU_EVENT_WAIT_EXTERNAL);
    assert_closes("cuEventRecord", 0, P(stream));
    assert_closes("cuStreamWaitEvent", P(stream), 0, 0);
    assert_closes("cuEventRecord", event, P(foreign_stream));
    assert_closes("cuEventRecordWithFlags", event, P(foreign_stream), 0);
    assert_closes("cuStreamWaitEvent", P(foreign_stream), event, 0);
}

/* A host function is only noted; copies from the host's memory say so, as it may be written there. */
static void test_host_functions(void **state)
{
    (void)state;
    assert_joins("cuLaunchHostFunc", P(stream), 0x5000, 0x6000);
    assert_true(op.calls_host && op.stream == stream && !op.waits && !op.from_host);
    assert_joins("cuLaunchHostFunc_ptsz", 0, 0x5000, 0);
    assert_true(op.calls_host && op.stream == CU_STREAM_PER_THREAD);
    assert_joins("cuStreamAddCallback", P(stream), 0x5000, 0x6000, 0);
    assert_true(op.calls_host);
    assert_closes("cuStreamAddCallback", P(stream), 0x5000, 0x6000, 1);
    assert_closes("cuLaunchHostFunc", P(foreign_stream), 0x5000, 0x6000);
    assert_int_equal(judge("cuMemcpyHtoDAsync_v2", NULL, MOST, ARGS(P(device), P(pinned), 8, P(stream))), KP_JOIN_YES);
    assert_true(op.from_host && !op.calls_host);
    kp_op_free(&op);
    assert_int_equal(judge("cuMemcpyHtoD_v2", NULL, MOST, ARGS(P(device), P(picture), 8)), KP_JOIN_YES);
    assert_true(op.from_host && !op.from_pinned);
    kp_op_free(&op);
    assert_joins("cuMemcpy", P(device), P(device) + 64, 8);
    assert_false(op.from_host);
}

/* What a repetition has to know: the stream, which argument is an event, and whether the call waited. */
static void test_facts(void **state)
{
    static const struct {
        const char *symbol;
        uint64_t args[KP_OP_ARGS];
        CUstream on;
        unsigned event;
        bool waits;
    } rows[] = {
        {"cuEventRecord", {0x3000, 0x1000}, (CUstream)0x1000, 1, false},
        {"cuEventRecord_ptsz", {0x3000, 0}, CU_STREAM_PER_THREAD, 1, false},
        {"cuStreamWaitEvent", {0x1000, 0x3000, 0}, (CUstream)0x1000, 2, false},
        {"cuMemsetD8Async", {0, 7, 100, 0x1000}, (CUstream)0x1000, 0, false},
        {"cuMemsetD8Async_ptsz", {0, 7, 100, 0}, CU_STREAM_PER_THREAD, 0, false},
        {"cuMemsetD8Async", {0, 7, 100, 1}, NULL, 0, false}, /* CU_STREAM_LEGACY */
        {"cuMemsetD8_v2", {0, 7, 100}, NULL, 0, true},
        {"cuMemsetD8_v2_ptds", {0, 7, 100}, CU_STREAM_PER_THREAD, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t args[KP_OP_ARGS];
        memcpy(args, rows[i].args, sizeof(args));
        args[0] = args[0] ? args[0] : P(device);
        assert_int_equal(judge(rows[i].symbol, NULL, MOST, args), KP_JOIN_YES);
        if (op.stream != rows[i].on || op.event != rows[i].event || op.waits != rows[i].waits)
            fail_msg("%s: stream %p, event %u, waits %d", rows[i].symbol, (void *)op.stream, op.event, op.waits);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_true(kp_join_known("cuMemcpy") && kp_join_known("cuMemcpy_ptds") && kp_join_known("cuMemcpy2D_v2_ptds"));
    assert_false(kp_join_known("cuMemcp") || kp_join_known("cuMemcpyAtoH") || kp_join_known("") ||
                 kp_join_known("cuMemcpy2DUnalignedAsync"));
    assert_closes("cuMemcpyAtoH_v2", P(device), P(device + 512), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memset),
        cmocka_unit_test(test_default_streams),
        cmocka_unit_test(test_issue_again),
        cmocka_unit_test(test_all_arguments_are_issued),
        cmocka_unit_test(test_copy_from_host),
        cmocka_unit_test(test_copy_on_the_device),
        cmocka_unit_test(test_copy_anywhere),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_unreadable_source),
        cmocka_unit_test(test_rectangle_from_host),
        cmocka_unit_test(test_rectangle_on_the_device),
        cmocka_unit_test(test_rectangle_to_host),
        cmocka_unit_test(test_rectangle_that_closes),
        cmocka_unit_test(test_unreadable_rows),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_host_functions),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
