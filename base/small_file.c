#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { MOST = 1 << 20 };

/* A file being read. */
struct reading {
    const char *path, *what;
    int fd;
};

static int cannot_read(const struct reading *r, const char *why, char **err)
{
    return kp_error(err, "cannot read %s in %s: %s", r->what, r->path, why);
}

static int open_file(struct reading *r, char **err)
{
    struct stat st;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (r->fd < 0 || fstat(r->fd, &st))
        return cannot_read(r, strerror(errno), err);
    return S_ISFIFO(st.st_mode) ? cannot_read(r, "a pipe cannot be read by every process", err) : 0;
}

static int read_text(const struct reading *r, char *text, size_t *len, char **err)
{
    ssize_t n;
    *len = 0;
    while ((n = read(r->fd, text + *len, MOST + 1 - *len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_read(r, strerror(errno), err);
        *len += (size_t)n;
        if (*len > MOST)
            return cannot_read(r, "it is longer than 1 MiB", err);
    }
    text[*len] = '\0';
    return 0;
}

int kp_small_file_read(const char *path, const char *what, char **text, size_t *len, char **err)
{
    struct reading r = {path, what, -1};
    *text = malloc(MOST + 1);
    int rc = *text ? open_file(&r, err) : -ENOMEM;
    if (!rc)
        rc = read_text(&r, *text, len, err);
    if (r.fd >= 0)
        close(r.fd);
    if (rc) {
        free(*text);
        *text = NULL;
    }
    return rc;
}
