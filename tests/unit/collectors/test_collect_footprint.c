/* Whether what a replay saves fits: host memory as files of a root of our own tell it, device memory as a driver of our
 * own does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collectors/replay/footprint.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

/* ---- the host ---- */

enum file { MEMINFO, V2_LIMIT, V2_USED, V1_LIMIT, V1_USED, FILES };

static const char *const paths[FILES] = {
    "/proc/meminfo",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
};

static char root[PATH_MAX / 2];

static int make_root(void **state)
{
    static const char *const folders[] = {"/proc", "/sys", "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/memory"};
    (void)state;
    snprintf(root, sizeof(root), "%s", kp_test_folder());
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        if (mkdir(path, 0700))
            return -1;
    }
    return 0;
}

static int remove_root(void **state)
{
    char command[PATH_MAX];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

/* A file that is not given is not there. */
static uint64_t host_of(const char *const text[FILES])
{
    for (size_t i = 0; i < FILES; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s%s", root, paths[i]);
        remove(path);
        if (text[i])
            kp_test_write(path, text[i]);
    }
    return kp_footprint_host(root);
}

static const char meminfo[] = "MemTotal:       65536000 kB\n"
                              "MemFree:          100000 kB\n"
                              "MemAvailable:    8000000 kB\n"
                              "Buffers:               7 kB\n"
                              "SwapTotal:             0 kB\n";

static void test_no_limit(void **state)
{
    (void)state;
    assert_int_equal(host_of((const char *const[FILES]){[MEMINFO] = meminfo}), KIB(8000000));
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "max\n", "4096\n"}), KIB(8000000));
    assert_int_equal(host_of((const char *const[FILES]){[MEMINFO] = meminfo, [V2_USED] = "99999999999\n"}),
                     KIB(8000000)); /* the root group has a use, and no limit */
    /* what version 1 says where there is none */
    assert_int_equal(host_of((const char *const[FILES]){meminfo, NULL, NULL, "9223372036854771712\n", "123456\n"}),
                     KIB(8000000));
}

static void test_limit_of_the_group(void **state)
{
    (void)state;
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "1073741824\n", "73741824\n"}), 1000000000);
    assert_int_equal(host_of((const char *const[FILES]){meminfo, NULL, NULL, "2000000000\n", "500000000\n"}),
                     1500000000);
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "99999999999999\n", "4096\n"}), KIB(8000000));
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "1000\n", "1000\n"}), 0);
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "1000\n", "2000\n"}), 0); /* the limit was lowered */
    /* a version 1 tree beside a version 2 one: the lower counts */
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "5000\n", "1000\n", "9000\n", "6000\n"}), 3000);
    assert_int_equal(host_of((const char *const[FILES]){meminfo, "5000\n", "4000\n", "9000\n", "6000\n"}), 1000);
}

/* A system that tells nothing has nothing to offer. */
static void test_nothing_known(void **state)
{
    (void)state;
    assert_int_equal(host_of((const char *const[FILES]){NULL}), 0);
    assert_int_equal(host_of((const char *const[FILES]){"MemTotal: 1 kB\n"}), 0);
    assert_int_equal(host_of((const char *const[FILES]){"MemAvailable: lots\n"}), 0);
}

static void test_this_system(void **state)
{
    (void)state;
    assert_true(kp_footprint_host("") > MIB(1));
}

/* ---- the device ---- */

static struct {
    CUresult result;
    size_t available, total;
} device;

static CUresult CUDAAPI mem_get_info(size_t *available, size_t *total)
{
    *available = device.available;
    *total = device.total;
    return device.result;
}

static const struct kp_driver driver = {.cuMemGetInfo = mem_get_info};

static const uint64_t margin = MIB(256), most_margin = MIB(4096);

static bool fits(uint64_t used, uint64_t available, struct kp_why *why)
{
    device.total = used + available;
    device.available = available;
    *why = kp_why_of(KP_REASON_NOT_SAVED, NULL);
    return kp_footprint_fits(&driver, 0, why);
}

static void test_fits_into_the_device(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    device.result = CUDA_SUCCESS;
    assert_true(fits(0, 0, &why));
    assert_null(kp_why_text(&why));
    assert_true(fits(4096, UINT64_C(1) << 50, &why));
    assert_null(kp_why_text(&why));
    assert_true(fits(UINT64_C(1) << 50, (UINT64_C(1) << 50) + most_margin, &why)); /* more than any host has */
    assert_null(kp_why_text(&why));
}

static void test_fits_into_the_host(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    device.result = CUDA_SUCCESS;
    assert_true(fits(MIB(1) / 2, margin, &why)); /* nothing of the margin is taken */
    assert_null(kp_why_text(&why));
    assert_true(
        fits((UINT64_C(1) << 50) + 4096, (UINT64_C(1) << 50) + most_margin, &why)); /* what is too much for it */
    assert_null(kp_why_text(&why));
}

static void test_fits_nowhere(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    device.result = CUDA_SUCCESS;
    assert_false(fits(UINT64_C(1) << 50, MIB(300), &why));
    assert_non_null(kp_why_text(&why));
    assert_non_null(strstr(kp_why_text(&why), "1125899.9 GB"));
    assert_non_null(strstr(kp_why_text(&why), "0.3 GB left"));
    assert_non_null(strstr(kp_why_text(&why), "quick"));
    kp_why_free(&why);
    assert_false(
        fits(UINT64_C(1) << 50, MIB(1), &why)); /* less than the margin is no room, and not a great deal of it */
    kp_why_free(&why);
}

/* Between all of the host's memory and what may be taken of it. */
static void test_part_of_the_host(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    uint64_t host = kp_footprint_host("");
    (void)state;
    device.result = CUDA_SUCCESS;
    assert_true(fits(host / 2, 0, &why)); /* what is there changes while this runs, but not that much */
    assert_false(fits(host / 20 * 19, 0, &why));
    kp_why_free(&why);
}

/* Nothing of what the device holds counts for the time. */
static void test_takes_too_long(void **state)
{
    static const uint64_t second = 1000000000;
    struct kp_why why = {KP_REASON_NONE, NULL};
    uint64_t on_host = kp_footprint_host("") / 4;
    double seconds = (double)on_host * 0.6e-9;
    (void)state;
    device.result = CUDA_SUCCESS;
    device.total = (UINT64_C(2) << 40) + most_margin + on_host;
    device.available = (UINT64_C(1) << 40) + most_margin;
    assert_true(kp_footprint_fits(&driver, 0, &why));
    assert_true(kp_footprint_fits(&driver, (uint64_t)(seconds * 1.01 * (double)second), &why));
    assert_null(kp_why_text(&why));
    assert_false(kp_footprint_fits(&driver, (uint64_t)(seconds * 0.99 * (double)second), &why));
    assert_non_null(strstr(kp_why_text(&why), "saving the "));
    assert_non_null(strstr(kp_why_text(&why), "KPROF_SAVE_TIME"));
    assert_null(strchr(kp_why_text(&why), '\n'));
    kp_why_free(&why);
}

/* The save will tell what is wrong. */
static void test_driver_does_not_tell(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    device.result = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_true(fits(UINT64_C(1) << 50, 0, &why));
    assert_null(kp_why_text(&why));
}

static size_t taken;

static CUresult CUDAAPI granularity(size_t *unit, const CUmemAllocationProp *what, CUmemAllocationGranularity_flags how)
{
    (void)how;
    *unit = what->location.id == 3 ? MIB(2) : 0;
    return device.result;
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *what,
                               unsigned long long flags)
{
    assert_int_equal(what->type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(what->location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(flags, 0);
    *out = 7;
    taken = size;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI release(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    return CUDA_SUCCESS;
}

static size_t reserved(const struct kp_driver *d, uint64_t used, uint64_t available)
{
    CUmemGenericAllocationHandle handle;
    device.total = used + available;
    device.available = available;
    taken = 0;
    bool got = kp_footprint_reserve(d, 3, &handle);
    assert_int_equal(got, taken != 0);
    return taken;
}

/* Only where the copy would take all: then what has to stay free, in whole units. */
static void test_reserve(void **state)
{
    struct kp_driver d = {.cuMemGetInfo = mem_get_info,
                          .cuMemGetAllocationGranularity = granularity,
                          .cuMemCreate = create,
                          .cuMemRelease = release};
    (void)state;
    device.result = CUDA_SUCCESS;
    assert_int_equal(reserved(&d, MIB(40000), MIB(100000)), 0);
    assert_int_equal(reserved(&d, MIB(100000), MIB(40000)), MIB(140000) / 64 / MIB(2) * MIB(2));
    assert_int_equal(reserved(&d, MIB(600), MIB(300)), MIB(256));
    assert_int_equal(reserved(&d, MIB(300), MIB(300)), MIB(256)); /* the copy would fit, and leave nothing */
    assert_int_equal(reserved(&d, MIB(44), MIB(300)), 0);
    assert_int_equal(reserved(&d, MIB(600), MIB(200)), 0); /* there is not so much */
    d.cuMemCreate = NULL;
    assert_int_equal(reserved(&d, MIB(100000), MIB(40000)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_limit_of_the_group),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_this_system),
        cmocka_unit_test(test_fits_into_the_device),
        cmocka_unit_test(test_fits_into_the_host),
        cmocka_unit_test(test_fits_nowhere),
        cmocka_unit_test(test_part_of_the_host),
        cmocka_unit_test(test_takes_too_long),
        cmocka_unit_test(test_driver_does_not_tell),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
