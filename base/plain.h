/* Writes numbers the same in every locale: the profiled program may have set one with another decimal point. */
#ifndef KP_BASE_PLAIN_H
#define KP_BASE_PLAIN_H

#include <locale.h>

/* Makes printf of the calling thread write numbers as in the C locale, until kp_plain_end. Returns the argument of
 * kp_plain_end. Without memory nothing changes. */
locale_t kp_plain_begin(void);
void kp_plain_end(locale_t before);

enum { KP_PLAIN_MAX = 32 };
/* Writes the shortest text that reads back as `value`, in plain digits up to 10^18: `65536`, `0.1`, `1e+300`, `nan`,
 * `inf`. Call it between the two functions above. */
void kp_plain_real(double value, char out[KP_PLAIN_MAX]);

#endif
