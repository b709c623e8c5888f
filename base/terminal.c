#include "base/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digit.h"

static size_t columns_of_environment(void)
{
    const char *text = getenv("COLUMNS");
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    return text && kp_is_digit(*text) && !*end && n <= 0xffff ? n : 0;
}

static size_t columns_of_controlling_terminal(void)
{
    struct winsize size = {0};
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    bool known = fd >= 0 && !ioctl(fd, TIOCGWINSZ, &size);
    if (fd >= 0)
        close(fd);
    return known ? size.ws_col : 0;
}

size_t kp_terminal_width(int fd)
{
    struct winsize size = {0};
    struct stat s;
    size_t columns = columns_of_environment();
    if (columns || fd < 0)
        return columns;
    if (!ioctl(fd, TIOCGWINSZ, &size))
        return size.ws_col;
    return !fstat(fd, &s) && S_ISFIFO(s.st_mode) ? columns_of_controlling_terminal() : 0;
}

bool kp_terminal_has_colors(int fd)
{
    const char *forbidden = getenv("NO_COLOR"), *kind = getenv("TERM");
    return !(forbidden && *forbidden) && kind && strcmp(kind, "dumb") != 0 && fd >= 0 && isatty(fd);
}
