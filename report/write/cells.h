/* Words and numbers for tables of several formats. Threads: pure functions. */
#ifndef KP_REPORT_WRITE_CELLS_H
#define KP_REPORT_WRITE_CELLS_H

#include "report/define/units.h"
#include "report/model/model.h"
#include "report/view/display.h"

/* Stands in a cell without a value; readers of tables know it. */
#define KP_NO_VALUE "n/a"

/* Returns the name of the program's file without its folder; valid as long as the session. */
const char *kp_write_process_name(const struct kp_session *s);
/* Returns the host that the process ran on; in the face ncu the one that ncu reports of its own machine. */
const char *kp_write_host(const struct kp_display *d, const struct kp_session *s);
/* Returns the value for a program, in its base unit; KP_NO_VALUE when missing. Points to `number`, or to the
 * metric's text. */
const char *kp_write_plain_value(const struct kp_metric *m, char number[KP_NUMBER_MAX]);
/* Adds decimals to a number that has none; there is room for them. */
void kp_write_decimals(char *number);
/* Writes a number for a reader, or, with `plain`, for a program. */
void kp_write_number_cell(double value, bool plain, char out[KP_NUMBER_MAX]);
void kp_count_cell(uint64_t value, bool plain, char out[KP_NUMBER_MAX]);

#endif
