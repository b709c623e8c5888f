#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/wrap.h"
#include "report/define/units.h"

static void numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {408112, "408,112"},
        {100, "100"},
        {0, "0"},
        {-0.0, "0"},
        {390552.8637, "390,552.86"},
        {0.000244, "0.00"},
        {29.9999, "30.00"},
        {1.00095, "1.00"},
        {0.125, "0.12"},
        {0.375, "0.38"},
        {12.5, "12.50"},
        {-0.01, "-0.01"},
        {-1234567.25, "-1,234,567.25"},
        {101.24, "101.24"},
        {999, "999"},
        {1000, "1,000"},
        {999.996, "1,000.00"},
        {16974905196967352.0, "16,974,905,196,967,352"},
        {1060931574810459.5, "1,060,931,574,810,459.50"},
        {NAN, "nan"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    (void)state;
    char text[KP_NUMBER_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kp_format_real(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
    kp_format_real(-1.7976931348623157e308, text);
    assert_int_equal(strlen(text), 1 + 309 + 102);
    kp_format_count(UINT64_MAX, text);
    assert_string_equal(text, "18,446,744,073,709,551,615");
    kp_format_count(0, text);
    assert_string_equal(text, "0");
}

static void ladders(void **state)
{
    static const struct {
        double value;
        const char *unit, *text;
    } cases[] = {
        {256, "byte", "256 byte"},
        {999, "byte", "999 byte"},
        {1000, "byte", "1 Kbyte"},
        {32768, "byte", "32.77 Kbyte"},
        {11796480, "byte", "11.80 Mbyte"},
        {2.95e12, "byte", "2.95 Tbyte"},
        {3e15, "byte", "3,000 Tbyte"},
        {0, "byte", "0 byte"},
        {-2500, "byte", "-2.50 Kbyte"},
        {0.25, "byte", "0.25 byte"},
        {1750000, "byte/s", "1.75 Mbyte/s"},
        {4.33e12, "byte/s", "4.33 Tbyte/s"},
        {0, "byte/s", "0 byte/s"},
        {580, "byte/block", "580 byte/block"},
        {1024, "byte/block", "1.02 Kbyte/block"},
        {205824, "byte/block", "205.82 Kbyte/block"},
        {2500000, "byte/block", "2,500 Kbyte/block"},
        {1500, "byte/cycle", "1.50 Kbyte/cycle"},
        {512, "ns", "512 ns"},
        {1500, "ns", "1.50 us"},
        {2541856, "ns", "2.54 ms"},
        {3.21e9, "ns", "3.21 s"},
        {3.6e12, "ns", "3,600 s"},
        {2050000, "hz", "2.05 Mhz"},
        {129070000000, "hz", "129.07 Ghz"},
        {1095860000000, "hz", "1,095.86 Ghz"},
        {1967054000, "cycle/s", "1.97 Ghz"},
        {13330, "sector/s", "13.33 sector/ms"},
        {211760000000, "sector/s", "211.76 sector/ns"},
        {2500000, "inst/s", "2.50 inst/us"},
        {66.8e12, "FLOP/s", "66.80 TFLOP/s"},
        {1.95e15, "op/s", "1.95 Pop/s"},
        {0, "sector/s", "0 sector/s"},
        {12345.678, "%", "12,345.68 %"},
        {12345, "cycle", "12,345 cycle"},
        {12345, "register/thread", "12,345 register/thread"},
        {12345, "byte/sector", "12,345 byte/sector"},
        {12345, "", "12,345"},
        {12345, "/s", "12,345 /s"},
    };
    (void)state;
    char text[KP_NUMBER_MAX + KP_UNIT_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kp_format_quantity(cases[i].value, cases[i].unit, false, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void base_units(void **state)
{
    (void)state;
    char text[KP_NUMBER_MAX + KP_UNIT_MAX], value[KP_NUMBER_MAX], unit[KP_UNIT_MAX];
    struct kp_metric m = {.name = "x", .unit = "byte", .kind = KP_VALUE_COUNT, .count = 1234567};
    kp_format_quantity(1234567.5, "byte", true, text);
    assert_string_equal(text, "1,234,567.50 byte");
    assert_string_equal(kp_format_metric(&m, true, value, unit), "1,234,567");
    assert_string_equal(unit, "byte");
    assert_string_equal(kp_format_scaled(&m, 1000, value), "1,234.57");
    assert_string_equal(kp_format_scaled(NULL, 1000, value), "(!) n/a");
}

static void instances(void **state)
{
    (void)state;
    struct kp_instance list[] = {{"a", 1000000}, {"b", 234567}, {"c", 0}};
    struct kp_metric m = {
        .name = "x", .unit = "byte", .kind = KP_VALUE_COUNT, .count = 1234567, .instances = list, .n_instances = 3};
    char *text = kp_format_instances(&m, false, false);
    assert_string_equal(text, "1.23 (1; 0.23; 0)"); /* all in Mbyte */
    free(text);
    text = kp_format_instances(&m, true, true);
    assert_string_equal(text, "1,234,567 (a: 1,000,000; b: 234,567; c: 0)");
    free(text);
    m.kind = KP_VALUE_TEXT;
    m.text = "several";
    m.n_instances = 1;
    text = kp_format_instances(&m, false, false);
    assert_string_equal(text, "several (1,000,000)");
    free(text);
}

static void cells(void **state)
{
    (void)state;
    char value[KP_NUMBER_MAX], unit[KP_UNIT_MAX];
    struct kp_metric m = {.name = "x", .unit = "byte", .kind = KP_VALUE_COUNT, .count = 1024};
    assert_string_equal(kp_format_metric(&m, false, value, unit), "1.02");
    assert_string_equal(unit, "Kbyte");
    m.unit = "inst";
    m.count = 9007199254740993; /* 2^53 + 1 is no double */
    assert_string_equal(kp_format_metric(&m, false, value, unit), "9,007,199,254,740,993");
    assert_string_equal(unit, "inst");
    m = (struct kp_metric){.name = "x", .unit = "", .kind = KP_VALUE_TEXT, .text = "PolicySpread"};
    assert_string_equal(kp_format_metric(&m, false, value, unit), "PolicySpread");
    assert_string_equal(unit, "");
    m = (struct kp_metric){.name = "x", .unit = "%", .kind = KP_VALUE_NA, .text = "why"};
    assert_string_equal(kp_format_metric(&m, false, value, unit), "(!) n/a");
    assert_string_equal(unit, "");
    strcpy(unit, "old");
    assert_string_equal(kp_format_metric(NULL, false, value, unit), "(!) n/a");
    assert_string_equal(unit, "");
}

/* A decimal comma must not get in, whichever locale of that kind the machine has. */
static void any_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    (void)state;
    char text[KP_NUMBER_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setlocale(LC_ALL, names[i]);
        kp_format_real(1234.5, text);
        assert_string_equal(text, "1,234.50");
    }
    setlocale(LC_ALL, "C");
}

static void assert_wrapped(const char *text, size_t width, const char *const *lines)
{
    struct kp_wrap w = {text, width};
    const char *line;
    size_t len;
    for (; kp_wrap_next(&w, &line, &len); lines++) {
        assert_non_null(*lines);
        assert_int_equal(len, strlen(*lines));
        assert_memory_equal(line, *lines, len);
    }
    assert_null(*lines);
}

static void wrapping(void **state)
{
    (void)state;
    assert_wrapped("", 10, (const char *[]){"", NULL});
    assert_wrapped("0123456789", 10, (const char *[]){"0123456789", NULL});
    assert_wrapped("aaaa bbbb cccc dddd", 10, (const char *[]){"aaaa bbbb", "cccc dddd", NULL});
    /* the blank at the break counts: the second line has room for 9 characters */
    assert_wrapped("aaaa bbbbb cccc ddddd", 10, (const char *[]){"aaaa", "bbbbb", "cccc", "ddddd", NULL});
    /* only the leading blank left: a hard cut has its room */
    assert_wrapped("aa 0123456789abcdef gg", 10, (const char *[]){"aa", "0123456789", "abcdef gg", NULL});
    assert_wrapped("aa 0123456789 gg", 10, (const char *[]){"aa", "0123456789", "gg", NULL});
    assert_wrapped("aa 012345678 gg", 10, (const char *[]){"aa", "012345678", "gg", NULL});
    assert_wrapped("0123456789abcdef", 10, (const char *[]){"0123456789", "abcdef", NULL});
    /* behind a mark that parts the word, unless half of the line stays empty */
    assert_wrapped("aa 0123456,89abcdef", 10, (const char *[]){"aa", "0123456,", "89abcdef", NULL});
    assert_wrapped("012345678_abcdef", 10, (const char *[]){"012345678_", "abcdef", NULL});
    assert_wrapped("01/34/6789abcdef", 10, (const char *[]){"01/34/", "6789abcdef", NULL});
    assert_wrapped("01/3456789abcdef", 10, (const char *[]){"01/3456789", "abcdef", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),    cmocka_unit_test(ladders),   cmocka_unit_test(cells),
        cmocka_unit_test(base_units), cmocka_unit_test(instances), cmocka_unit_test(any_locale),
        cmocka_unit_test(wrapping),
    };
    return cmocka_run_group_tests_name("report/units", tests, NULL, NULL);
}
