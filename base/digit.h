/* What digits and letters of ASCII are, whatever the locale. Any thread. */
#ifndef KP_BASE_DIGIT_H
#define KP_BASE_DIGIT_H

#include <stdbool.h>

static inline bool kp_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool kp_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#endif
