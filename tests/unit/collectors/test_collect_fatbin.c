/* The PTX of images that a driver takes: text, and the fat binaries that nvcc writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/code/fatbin.h"
#include "tests/support/report_support.h"

enum { MOST = 1 << 16 };

static size_t read_image(const char *name, char *out)
{
    FILE *f = fopen(kp_test_source(name), "re");
    assert_non_null(f);
    size_t size = fread(out, 1, MOST, f);
    fclose(f);
    return size;
}

static void check_form(const void *image, enum kp_ptx_form form, const void *bytes, size_t size)
{
    struct kp_ptx ptx;
    assert_int_equal(kp_ptx_copy(image, &ptx), 0);
    assert_int_equal(ptx.form, form);
    assert_int_equal(ptx.size, size);
    if (size)
        assert_memory_equal(ptx.bytes, bytes, size);
    kp_ptx_free(&ptx);
    assert_null(ptx.bytes);
}

static void test_texts(void **state)
{
    static const char text[] = "//\n.version 8.0\n.target sm_90\n";
    (void)state;
    check_form(text, KP_PTX_TEXT, text, sizeof(text));
    check_form("\n.version 8.0", KP_PTX_TEXT, "\n.version 8.0", sizeof("\n.version 8.0"));
    check_form(NULL, KP_PTX_NONE, NULL, 0);
    check_form("", KP_PTX_NONE, NULL, 0);
    check_form("ab", KP_PTX_NONE, NULL, 0);
    check_form("\177ELF and more", KP_PTX_NONE, NULL, 0);
    check_form("\1\2\3\4\5\6\7\10", KP_PTX_NONE, NULL, 0);
}

/* What is kept of a fat binary with code for a GPU, too, is what nvcc writes where PTX alone is asked for. */
static void test_fat_binaries(void **state)
{
    static char both[MOST], ptx[MOST];
    const struct {
        uint32_t magic, version;
        const void *container;
        void *more;
    } wrapper = {0x466243b1, 1, both, NULL}, empty = {0x466243b1, 1, NULL, NULL}, other = {0x466243b1, 1, "none", NULL};
    size_t size = read_image("tests/data/objects-ptx.fatbin", ptx);
    (void)state;
    read_image("tests/data/objects.fatbin", both);
    check_form(both, KP_PTX_FATBIN, ptx, size);
    check_form(ptx, KP_PTX_FATBIN, ptx, size);
    check_form(&wrapper, KP_PTX_FATBIN, ptx, size);
    check_form(&empty, KP_PTX_NONE, NULL, 0);
    check_form(&other, KP_PTX_NONE, NULL, 0);
}

/* Sizes that do not fit end the walk. */
static void test_damaged(void **state)
{
    static char image[MOST], damaged[MOST];
    size_t size = read_image("tests/data/objects.fatbin", image);
    (void)state;
    for (size_t at = 6; at < 0x20; at++)
        for (int value = 0; value < 0x100; value += 0x55) {
            struct kp_ptx ptx;
            if (at >= 8 && at < 16)
                continue; /* the whole size, which is believed */
            memcpy(damaged, image, size);
            damaged[at] = (char)value;
            assert_int_equal(kp_ptx_copy(damaged, &ptx), 0);
            assert_true(ptx.size < size);
            kp_ptx_free(&ptx);
        }
}

static void test_files(void **state)
{
    static const char text[] = ".version 8.0";
    char path[] = "/tmp/kp-ptx-XXXXXX";
    struct kp_ptx ptx;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(kp_ptx_copy_file(path, &ptx), 0);
    assert_int_equal(ptx.form, KP_PTX_TEXT);
    assert_string_equal(ptx.bytes, text);
    kp_ptx_free(&ptx);
    unlink(path);
    assert_int_equal(kp_ptx_copy_file(path, &ptx), -ENOENT);
    assert_int_equal(ptx.form, KP_PTX_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_fat_binaries),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
