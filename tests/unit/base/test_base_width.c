/* How many columns text takes: as the C library counts in a locale of UTF-8, which the code itself must not ask. */
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/text.h"
#include "base/width.h"
#include "base/wrap.h"

static size_t encode(uint32_t code, char out[5])
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(n == 1 ? code : lead[n] | code);
    out[n] = '\0';
    return n;
}

/* Nothing is counted too narrow, and the scripts that names come in are counted right. */
static void characters_take_what_the_c_library_says(void **state)
{
    static const struct {
        uint32_t first, last;
    } scripts[] = {{0x20, 0x7e},     {0xa1, 0xac},     {0x370, 0x377},    {0x400, 0x482},
                   {0x3041, 0x3096}, {0x30a1, 0x30fa}, {0x4e00, 0x9fa5},  {0xac00, 0xd7a3},
                   {0xff01, 0xff60}, {0x300, 0x36f},   {0x1f600, 0x1f64f}};
    char text[5];
    size_t bytes, checked = 0;
    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        for (uint32_t code = scripts[i].first; code <= scripts[i].last; code++) {
            size_t len = encode(code, text);
            if (wcwidth((wchar_t)code) >= 0 && kp_width_of_char(text, len, &bytes) != (size_t)wcwidth((wchar_t)code))
                fail_msg("U+%04X takes %zu columns", (unsigned)code, kp_width(text));
            checked++;
        }
    /* a newer one may know a newer Unicode than the table */
    uint32_t end = strverscmp(gnu_get_libc_version(), "2.41") > 0 ? 0 : 0x30000;
    for (uint32_t code = 0x20; code < end; code++) {
        bool shown;
        size_t len = encode(code, text);
        assert_true(kp_width_of_char(text, len, &bytes) <= bytes); /* a short text fits without a look */
        if (kp_text_shown_len(text, len, &shown) == len && shown &&
            wcwidth((wchar_t)code) > (int)kp_width_of_char(text, len, &bytes))
            fail_msg("U+%04X takes more than %zu columns", (unsigned)code, kp_width(text));
    }
    assert_true(checked > 30000);
    setlocale(LC_CTYPE, "C");
    assert_int_equal(kp_width("\xe6\xa0\xb8"), 2); /* in any locale */
}

/* Each byte at each place of a text: what is passed over is printable ASCII, and of such text all but the last few. */
static void plain_text_is_passed_over(void **state)
{
    char text[24];
    (void)state;
    for (int byte = 0; byte < 256; byte++)
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, at % 2 ? ' ' : '~', sizeof text);
            text[at] = (char)byte;
            size_t plain = kp_plain_len(text, sizeof text);
            bool printable = byte >= 0x20 && byte < 0x7f;
            assert_true(printable ? plain + 8 > sizeof text : plain <= at && plain + 8 > at);
        }
    assert_int_equal(kp_plain_len("a\x7f", 0), 0);
    assert_true(kp_plain_len("plain", 5) <= 5);
}

static void text_is_measured_and_cut_by_columns(void **state)
{
    static const char name[] = "a\xe6\xa0\xb8\xec\xbb\xa4"
                               "e\xcc\x81z"; /* two wide ones, and an accent of its own */
    (void)state;
    assert_int_equal(kp_width(""), 0);
    assert_int_equal(kp_width(name), 7);
    assert_int_equal(kp_width("\t\x01\xff"), 3); /* blanks */
    assert_int_equal(kp_width_fit(name, strlen(name), 0), 0);
    assert_int_equal(kp_width_fit(name, strlen(name), 2), 1); /* a wide one does not fit into one column */
    assert_int_equal(kp_width_fit(name, strlen(name), 3), 4);
    assert_int_equal(kp_width_fit(name, strlen(name), 6), 10); /* the accent stays with its letter */
    assert_int_equal(kp_width_fit(name, strlen(name), 99), strlen(name));
    char out[64];
    snprintf(out, sizeof out, "%-*s|", kp_width_printf(name, 9), name);
    assert_int_equal(kp_width(out), 10);
    snprintf(out, sizeof out, "%-*s|", kp_width_printf(name, 3), name);
    assert_int_equal(kp_width(out), 8);
}

/* What is drawn as an emoji takes two columns: by itself, or by the mark behind it. */
static void emoji_take_two_columns(void **state)
{
    static const char rocket[] = "\xf0\x9f\x9a\x80", heart[] = "\xe2\x9d\xa4", red[] = "\xe2\x9d\xa4\xef\xb8\x8f";
    static const char flag[] = "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa", key[] = "1\xef\xb8\x8f\xe2\x83\xa3";
    size_t bytes;
    (void)state;
    assert_int_equal(kp_width(rocket), 2);
    assert_int_equal(kp_width(heart), 1);
    assert_int_equal(kp_width(red), 2);
    assert_int_equal(kp_width("\xe2\x8c\x9a\xef\xb8\x8f"), 2); /* wide by itself */
    assert_int_equal(kp_width(flag), 2);
    assert_int_equal(kp_width(key), 2);
    assert_int_equal(kp_width_of_char(red, strlen(red), &bytes), 2);
    assert_int_equal(bytes, strlen(red));
    assert_int_equal(kp_width_of_char(red, 3, &bytes), 1); /* the mark is not looked for behind the end */
    assert_int_equal(kp_width_fit(red, strlen(red), 1), 0);
    assert_int_equal(kp_width_of("a\xf0\x9f\x9a\x80z", 5), 3);
}

static void lines_are_broken_by_columns(void **state)
{
    static const char *const wanted[] = {"\xe6\xa0\xb8\xe6\xa0\xb8", "\xe6\xa0\xb8", "ab", "cd"};
    struct kp_wrap w = {"\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8 ab cd", 5};
    const char *line;
    size_t len, n = 0;
    (void)state;
    for (; kp_wrap_next(&w, &line, &len); n++) {
        assert_true(n < sizeof wanted / sizeof *wanted);
        assert_int_equal(len, strlen(wanted[n]));
        assert_memory_equal(line, wanted[n], len);
    }
    assert_int_equal(n, 4);
    struct kp_wrap narrow = {"\xe6\xa0\xb8\xe6\xa0\xb8", 1}; /* comes to its end all the same */
    for (n = 0; kp_wrap_next(&narrow, &line, &len); n++)
        assert_int_equal(len, 3);
    assert_int_equal(n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_take_what_the_c_library_says),
        cmocka_unit_test(plain_text_is_passed_over),
        cmocka_unit_test(text_is_measured_and_cut_by_columns),
        cmocka_unit_test(emoji_take_two_columns),
        cmocka_unit_test(lines_are_broken_by_columns),
    };
    return cmocka_run_group_tests_name("base/width", tests, NULL, NULL);
}
