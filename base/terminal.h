/* The terminal that text goes to, if it is one. Threads: reads the environment of the process. */
#ifndef KP_BASE_TERMINAL_H
#define KP_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the columns of a line: the variable COLUMNS, else the width of the terminal that `fd` is. 0 if it is none. */
size_t kp_terminal_width(int fd);
/* Returns true if `fd` is a terminal that shows colours, and NO_COLOR (no-color.org) does not forbid them. */
bool kp_terminal_has_colors(int fd);

#endif
