/* Numbers that look the same in every locale: the profiled program may have set one with another decimal point. */
#ifndef KP_REPORT_PLAIN_H
#define KP_REPORT_PLAIN_H

#include <locale.h>

/* From here to kp_plain_end, printf of the calling thread writes numbers as in the C locale. Returns what to end it
 * with. Where there is no memory for it, nothing changes. */
locale_t kp_plain_begin(void);
void kp_plain_end(locale_t before);

#endif
