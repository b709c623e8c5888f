#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/digit.h"

static size_t columns_of_environment(void)
{
    const char *text = getenv("COLUMNS");
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    return text && kp_is_digit(*text) && !*end && n <= 0xffff ? n : 0;
}

size_t kp_terminal_width(int fd)
{
    struct winsize size = {0};
    size_t columns = columns_of_environment();
    return columns || fd < 0 || ioctl(fd, TIOCGWINSZ, &size) ? columns : size.ws_col;
}

bool kp_terminal_has_colors(int fd)
{
    const char *forbidden = getenv("NO_COLOR"), *kind = getenv("TERM");
    return !(forbidden && *forbidden) && kind && strcmp(kind, "dumb") != 0 && fd >= 0 && isatty(fd);
}
