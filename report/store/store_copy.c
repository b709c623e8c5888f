/*
 * Reads a session whose program was killed during a commit: its journal must undo the rest. This happens on a private
 * copy, so that reading changes nothing, and needs no right to write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/temporary.h"
#include "base/text.h"
#include "report/store/store_body.h"

enum { BLOCK = 1 << 18 };

static int copy_open(int from, int to)
{
    char *block = malloc(BLOCK);
    ssize_t n = block ? 1 : 0;
    int rc = block ? 0 : -ENOMEM;
    while (!rc && (n = read(from, block, BLOCK)) > 0)
        for (ssize_t at = 0, done; !rc && at < n; at += done)
            if ((done = write(to, block + at, (size_t)(n - at))) < 0)
                rc = -errno;
    if (n < 0)
        rc = -errno;
    free(block);
    return rc;
}

/* Copies to a new file. */
static int copy_file(int from, const char *to)
{
    int fd = kp_descriptor_raise(open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    int rc = fd < 0 ? -errno : copy_open(from, fd);
    if (fd >= 0 && close(fd) && !rc)
        rc = -errno;
    return rc;
}

/* Returns true if the journal ends in the name of another one, which a transaction over several files writes. SQLite
 * would delete that file, whatever it is; kprof never writes such a name. */
static bool names_another(int journal)
{
    static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof magic];
    struct stat st;
    return !fstat(journal, &st) && st.st_size >= (off_t)sizeof end &&
           pread(journal, end, sizeof end, st.st_size - (off_t)sizeof end) == (ssize_t)sizeof end &&
           !memcmp(end, magic, sizeof end);
}

static int open_journal(const struct kp_store *s, const char *name, int *journal, char **err)
{
    struct stat file, st;
    *journal = kp_descriptor_raise(open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (*journal < 0)
        return kp_error(err,
                        "'%s' was being written when its program was killed, and its journal '%s' cannot be read: %s; "
                        "make it readable, or copy both files here together",
                        s->path, name, strerror(errno));
    if (stat(s->path, &file) || fstat(*journal, &st) || !S_ISREG(st.st_mode) || st.st_uid != file.st_uid ||
        names_another(*journal))
        return kp_error(err, "'%s' is not the journal that kprof wrote for '%s'; remove it", name, s->path);
    return 0;
}

static int copy_both(struct kp_store *s, const char *journal, char **err)
{
    char *other = NULL;
    int from = -1, file = kp_descriptor_raise(open(s->path, O_RDONLY | O_CLOEXEC));
    int rc = file < 0 ? -errno : open_journal(s, journal, &from, err);
    if (!rc && asprintf(&other, "%s-journal", s->copy) < 0) {
        other = NULL;
        rc = -ENOMEM;
    }
    rc = rc ? rc : copy_file(from, other);
    rc = rc ? rc : copy_file(file, s->copy);
    if (file >= 0)
        close(file);
    if (from >= 0)
        close(from);
    free(other);
    return rc;
}

int kp_store_copy(struct kp_store *s, char **err)
{
    char *journal = NULL;
    if (asprintf(&journal, "%s-journal", s->path) < 0)
        return -ENOMEM;
    s->copy_folder = kp_temporary_folder("kprof-read-");
    int rc = s->copy_folder ? 0 : -errno;
    if (!rc && asprintf(&s->copy, "%s/session", s->copy_folder) < 0) {
        s->copy = NULL;
        rc = -ENOMEM;
    }
    rc = rc ? rc : copy_both(s, journal, err);
    if (rc && !*err && rc != -ENOMEM)
        rc = kp_error(err,
                      "'%s' was being written when its program was killed; it is read from a copy in '%s', which "
                      "cannot be made: %s; set TMPDIR to another folder",
                      s->path, kp_temporary_base(), strerror(-rc));
    free(journal);
    return rc;
}

void kp_store_remove_copy(struct kp_store *s)
{
    if (s->copy_folder)
        kp_temporary_remove(s->copy_folder);
    free(s->copy);
    free(s->copy_folder);
    s->copy = s->copy_folder = NULL;
}
