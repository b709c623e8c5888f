/* The terminal that text goes to, if it is one. Threads: reads the environment of the process. */
#ifndef KP_BASE_TERMINAL_H
#define KP_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the columns of a line: by the variable COLUMNS, else of the terminal that `fd` is. Where `fd` is a pipe, as
 * to a pager, the terminal that the process was started from shows what comes out of it: that one is asked. 0 where
 * none says. */
size_t kp_terminal_width(int fd);
/* Whether `fd` is a terminal that shows colours, and NO_COLOR (no-color.org) does not forbid them. */
bool kp_terminal_has_colors(int fd);

#endif
