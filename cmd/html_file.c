#include "cmd/html_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/console.h"

/* Opens a new file beside `path`; *name (malloc'ed) receives its name. NULL with errno. */
static FILE *open_beside(const char *path, char **name)
{
    FILE *to = NULL;
    if (asprintf(name, "%s.XXXXXX", path) < 0) {
        *name = NULL;
        errno = ENOMEM;
        return NULL;
    }
    int fd = mkstemp(*name);
    if (fd >= 0 && !(to = fdopen(fd, "w")))
        close(fd);
    return to;
}

/* Returns a negative errno. */
static int print_and_close(const struct kp_html *h, bool compare, FILE *to)
{
    mode_t hidden = umask(0);
    umask(hidden);
    int rc = kp_html_print(h, compare, to);
    if (!rc && fchmod(fileno(to), 0666 & ~hidden))
        rc = -errno;
    if (fclose(to) && !rc)
        rc = -errno;
    return rc;
}

/* Whether the path is something else than a file, such as /dev/stdout: then there is nothing to replace. */
static bool is_special(const char *path)
{
    struct stat s;
    return !stat(path, &s) && !S_ISREG(s.st_mode);
}

int kp_html_save(const struct kp_html *h, bool compare, const char *path)
{
    char *name = NULL;
    bool special = is_special(path);
    FILE *to = special ? fopen(path, "w") : open_beside(path, &name);
    int rc = !to ? -errno : special ? kp_html_print(h, compare, to) : print_and_close(h, compare, to);
    if (to && special && fclose(to) && !rc)
        rc = -errno;
    if (!rc && name && rename(name, path))
        rc = -errno;
    if (rc && name)
        unlink(name);
    free(name);
    return rc ? kp_console_error(KP_EXIT_FAILED, "cannot write %s: %s", path, strerror(-rc)) : EXIT_SUCCESS;
}
