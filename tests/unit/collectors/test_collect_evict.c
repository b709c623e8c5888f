/* Emptying the L2 through the kernel driver, which is played here: `open` and `ioctl` of this program come first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/replay/evict.h"
#include "collectors/replay/flush.h"
#include "tests/support/fake_support.h"

/* ---- the kernel driver: two GPUs, the second of which has the address that is asked for ---- */

enum { CLIENT = 0xc1d00001, OTHER_GPU = 0x100, GPU = 0x3b00, DEVICE = 5, SUBDEVICE = 0 };

static struct {
    int file;           /* -1: there is none */
    const char *fails;  /* the request that fails */
    int error;          /* errno; 0: the status of the request */
    uint32_t how;       /* of virtualization */
    char requests[512]; /* that came */
    uint32_t device, subdevice;
} k;

struct request { /* of a control, and the beginning of an allocation */
    uint32_t client, object, command, class;
    uint64_t params;
    uint32_t size, status;
};

static bool note(const char *what)
{
    size_t n = strlen(k.requests);
    snprintf(k.requests + n, sizeof(k.requests) - n, "%s%s", n ? " " : "", what);
    return k.fails && !strcmp(k.fails, what);
}

static void *params(const struct request *r, size_t size)
{
    assert_int_equal(r->size, size);
    return (void *)(uintptr_t)r->params;
}

static bool allocates(struct request *r)
{
    uint32_t parent = r->object, *p;
    switch (r->class) {
    case 0x41:
        r->command = CLIENT; /* the new object */
        return note("client");
    case 0x80:
        assert_int_equal(parent, CLIENT);
        p = params(r, 56);
        assert_int_equal(p[0], DEVICE);
        k.device = r->command;
        return note("device");
    case 0x2080:
        assert_int_equal(parent, k.device);
        p = params(r, 4);
        assert_int_equal(p[0], SUBDEVICE);
        k.subdevice = r->command;
        return note("subdevice");
    default:
        fail_msg("class %x", r->class);
        return true;
    }
}

static bool tells_address(const struct request *r)
{
    struct {
        uint32_t gpu, domain;
        uint16_t bus, slot;
    } *a = params(r, 12);
    a->domain = 0;
    a->bus = a->gpu == GPU ? 0x3b : 0x1a;
    a->slot = 0;
    return note("address");
}

static bool flushes(const struct request *r)
{
    const uint32_t *p = params(r, 4024);
    assert_int_equal(r->object, k.subdevice);
    assert_int_equal(p[1000], 0); /* addresses: all lines are meant */
    assert_true(p[1004] == 0x1d || p[1004] == 0x1c);
    return note(p[1004] == 0x1d ? "host" : "memory");
}

static bool controls(const struct request *r)
{
    uint32_t *p;
    assert_int_equal(r->client, CLIENT);
    switch (r->command) {
    case 0x201:
        p = params(r, 128);
        p[0] = OTHER_GPU;
        p[1] = GPU;
        p[2] = UINT32_MAX;
        return note("attached");
    case 0x21b:
        return tells_address(r);
    case 0x205:
        p = params(r, 32);
        assert_int_equal(p[0], GPU);
        p[2] = DEVICE;
        p[3] = SUBDEVICE;
        return note("identity");
    case 0x800289:
        assert_int_equal(r->object, k.device);
        p = params(r, 8);
        p[0] = k.how;
        return note("virtualization");
    case 0x2080130e:
        return flushes(r);
    default:
        fail_msg("command %x", r->command);
        return true;
    }
}

int ioctl(int fd, unsigned long what, ...)
{
    va_list list;
    va_start(list, what);
    struct request *r = va_arg(list, struct request *);
    va_end(list);
    if (k.file < 0 || fd != k.file)
        return (int)syscall(SYS_ioctl, fd, what, r);
    assert_int_equal(what, _IOC(_IOC_READ | _IOC_WRITE, 'F', what & 0xff, 32));
    bool fails = (what & 0xff) == 0x2b ? allocates(r) : controls(r);
    if (fails && k.error) {
        errno = k.error;
        return -1;
    }
    r->status = fails ? 0x1b : 0;
    return 0;
}

static int open_file(const char *path, int flags, mode_t mode)
{
    if (strcmp(path, "/dev/nvidiactl") != 0)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (k.fails && !strcmp(k.fails, "open")) {
        errno = ENOENT;
        return -1;
    }
    assert_true(flags & O_CLOEXEC);
    return k.file = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                                      \
        va_end(list);                                                                                                  \
        return open_file(path, flags, mode);                                                                           \
    }
OPEN(open)
#if !defined(open64)
OPEN(open64)
#endif

static const char bus_id[] = "0000:3B:00.0",
                  way[] = "client attached address address identity device subdevice virtualization host memory";

static int set_up(void **state)
{
    (void)state;
    memset(&k, 0, sizeof(k));
    k.file = -1;
    return 0;
}

static void assert_closed(void)
{
    assert_true(k.file < 0 || fcntl(k.file, F_GETFD) == -1);
}

/* ---- by itself ---- */

static void empties(void **state)
{
    (void)state;
    struct kp_evict *e;
    assert_int_equal(kp_evict_open(bus_id, &e), 0);
    assert_string_equal(k.requests, way);
    k.requests[0] = 0;
    assert_int_equal(kp_evict_run(e), 0);
    assert_string_equal(k.requests, "host memory");
    kp_evict_close(e);
    assert_closed();
    kp_evict_close(NULL);
}

static void each_request_can_fail(void **state)
{
    static const char *const requests[] = {"client",    "attached",       "identity", "device",
                                           "subdevice", "virtualization", "host",     "memory"};
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
        for (int error = 0; error <= EPERM; error += EPERM) {
            struct kp_evict *e = (void *)&k;
            set_up(NULL);
            k.fails = requests[i];
            k.error = error;
            assert_int_equal(kp_evict_open(bus_id, &e), error ? -EPERM : -EIO);
            assert_null(e);
            assert_closed();
        }
}

static void some_gpus_are_not_there(void **state)
{
    struct kp_evict *e;
    (void)state;
    assert_int_equal(kp_evict_open("0000:3C:00.0", &e), -ENODEV);
    assert_closed();
    assert_int_equal(kp_evict_open("0001:3B:00.0", &e), -ENODEV);
    assert_int_equal(kp_evict_open("", &e), -ENODEV);
    k.how = 2; /* shared with other machines: the driver does nothing, and says it did */
    assert_int_equal(kp_evict_open(bus_id, &e), -ENOTSUP);
    assert_closed();
    k.how = 1; /* the machine has it for itself */
    assert_int_equal(kp_evict_open(bus_id, &e), 0);
    kp_evict_close(e);
    k.fails = "open";
    assert_int_equal(kp_evict_open(bus_id, &e), -ENOENT);
    assert_null(e);
}

/* ---- as the flush uses it ---- */

static struct kp_flush *open_flush(void)
{
    struct kp_device device = {.sm_count = 132, .l2_size = 9 << 20};
    struct kp_flush *flush;
    memcpy(device.pci_bus_id, bus_id, sizeof(bus_id));
    assert_int_equal(kp_flush_open(kp_test_driver(), &device, &flush), CUDA_SUCCESS);
    assert_string_equal(k.requests, ""); /* not before it is needed */
    kp_test_forget_calls();
    return flush;
}

static void ranges_find_an_empty_cache(void **state)
{
    (void)state;
    CUcontext ctx = kp_test_context();
    struct kp_flush *flush = open_flush();
    assert_int_equal(kp_flush_run(flush, NULL, KP_FLUSH_EMPTY), CUDA_SUCCESS);
    assert_string_equal(k.requests + strlen(way), " host memory");
    kp_test_calls("alloc copy sync load", "sync load"); /* in this order, and without memory */
    k.requests[0] = 0;
    assert_int_equal(kp_flush_run(flush, NULL, KP_FLUSH_EMPTY), CUDA_SUCCESS);
    assert_string_equal(k.requests, "host memory");
    kp_test_forget_calls();
    assert_int_equal(kp_flush_run(flush, NULL, KP_FLUSH_FILL), CUDA_SUCCESS); /* a launch does not ask */
    assert_string_equal(k.requests, "host memory");
    assert_int_equal(kp_test_count("copy"), 1);
    /* What fails is not tried again. */
    k.fails = "memory";
    kp_test_forget_calls();
    for (int i = 0; i < 2; i++)
        assert_int_equal(kp_flush_run(flush, NULL, KP_FLUSH_EMPTY), CUDA_SUCCESS);
    assert_string_equal(k.requests, "host memory host memory");
    assert_int_equal(kp_test_count("copy"), 2);
    assert_closed();
    kp_flush_close(flush, true);
    kp_test_context_end(ctx);
}

static void without_the_kernel_driver_caches_are_filled(void **state)
{
    (void)state;
    CUcontext ctx = kp_test_context();
    struct kp_flush *flush = open_flush();
    k.fails = "open";
    for (int i = 0; i < 2; i++)
        assert_int_equal(kp_flush_run(flush, NULL, KP_FLUSH_EMPTY), CUDA_SUCCESS);
    assert_int_equal(kp_test_count("copy"), 2);
    kp_flush_close(flush, true);
    kp_test_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(empties, set_up),
        cmocka_unit_test_setup(each_request_can_fail, set_up),
        cmocka_unit_test_setup(some_gpus_are_not_there, set_up),
        cmocka_unit_test_setup(ranges_find_an_empty_cache, set_up),
        cmocka_unit_test_setup(without_the_kernel_driver_caches_are_filled, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
