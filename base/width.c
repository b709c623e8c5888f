#include "base/width.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

struct range {
    uint32_t first, last;
};

/* Facts: Unicode 16, EastAsianWidth.txt (W and F) and the general categories Mn and Me of frequent scripts. */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f3},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2630, 0x2637},   {0x2648, 0x2653},   {0x267f, 0x267f},
    {0x268a, 0x268f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},
    {0x26c4, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26fd},   {0x2705, 0x2705},
    {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274e},   {0x2753, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b55},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x1b2ff}, {0x1d300, 0x1d376}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a}, {0x1f200, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7ff},
    {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};
static const struct range none[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1160, 0x11ff}, {0x1ab0, 0x1ace},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20e2}, {0x20e4, 0x20f0}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

/* Follows a character that is then drawn as an emoji, two columns wide. */
static const char as_emoji[] = "\xef\xb8\x8f";

static bool is_in(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n && ranges[i].first <= code; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

size_t kp_width_of_char(const char *text, size_t len, size_t *bytes)
{
    bool shown;
    *bytes = kp_text_shown_len(text, len, &shown);
    if (!shown || *bytes == 1)
        return 1;
    uint32_t code = kp_utf8_code(text, *bytes);
    if (len - *bytes >= strlen(as_emoji) && !memcmp(text + *bytes, as_emoji, strlen(as_emoji))) {
        *bytes += strlen(as_emoji);
        return 2;
    }
    if (is_in(none, sizeof none / sizeof *none, code))
        return 0;
    return is_in(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

size_t kp_width_of(const char *text, size_t len)
{
    size_t columns = kp_plain_len(text, len), bytes;
    for (size_t at = columns; at < len; at += bytes)
        columns += kp_width_of_char(text + at, len - at, &bytes);
    return columns;
}

size_t kp_width(const char *text)
{
    return kp_width_of(text, strlen(text));
}

size_t kp_width_fit(const char *text, size_t len, size_t columns)
{
    size_t at = 0, bytes;
    if (len <= columns)
        return len; /* no character has more columns than bytes */
    while (at < len) {
        size_t wide_by = kp_width_of_char(text + at, len - at, &bytes);
        if (wide_by > columns)
            break;
        columns -= wide_by;
        at += bytes;
    }
    return at;
}

int kp_width_printf(const char *text, size_t columns)
{
    return (int)(columns + strlen(text) - kp_width(text));
}
