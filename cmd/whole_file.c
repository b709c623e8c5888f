#include "cmd/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "report/store/store.h"

enum { LINKS_MAX = 40 }; /* the kernel's spelling */

/* Returns the path of a name in the folder of another path, malloc'ed; NULL without memory. */
static char *in_folder_of(const char *path, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    return kp_asprintf("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
}

bool kp_target_lacks_folder(const char *path)
{
    struct stat st;
    char *folder = in_folder_of(path, ".");
    bool lacks = folder && stat(folder, &st) && errno == ENOENT;
    free(folder);
    return lacks;
}

/* Returns the number of the descriptor that a path such as /dev/fd/1 names. -1: it names none of this process. */
static int own_descriptor(const char *path)
{
    const char *name = kp_base_name(path);
    char *folder = in_folder_of(path, "."), *end;
    char *whole = folder ? realpath(folder, NULL) : NULL, *ours = realpath("/proc/self/fd", NULL);
    long n = strtol(name, &end, 10);
    bool is = whole && ours && !strcmp(whole, ours) && end != name && !*end && n >= 0 && n <= INT_MAX;
    free(folder);
    free(whole);
    free(ours);
    return is ? (int)n : -1;
}

/* Follows the links of a path's last part, to a descriptor or to something that is not a link. *to is malloc'ed. */
static int follow(const char *path, char **to, int *descriptor)
{
    char link[PATH_MAX];
    char *at = strdup(path);
    ssize_t n = 0;
    for (int i = 0; at && i <= LINKS_MAX; i++) {
        *descriptor = own_descriptor(at);
        n = *descriptor < 0 ? readlink(at, link, sizeof link - 1) : -1;
        if (n < 0)
            break;
        link[n] = '\0';
        char *next = in_folder_of(at, link);
        free(at);
        at = next;
    }
    *to = at;
    return !at ? -ENOMEM : n >= 0 ? -ELOOP : 0;
}

/* Takes over the descriptor. */
static int take(struct kp_target *t, int fd)
{
    t->to = fd < 0 ? NULL : fdopen(fd, "w");
    int rc = t->to ? 0 : -errno;
    if (rc && fd >= 0)
        close(fd);
    return rc;
}

/* Creates a file next to the target, named after it as far as the suffix leaves room. */
static int open_beside(struct kp_target *t)
{
    static const char suffix[] = ".XXXXXX";
    const char *slash = strrchr(t->path, '/'), *name = slash ? slash + 1 : t->path;
    int len = (int)(name - t->path) + (int)strnlen(name, NAME_MAX + 1 - sizeof suffix);
    t->beside = kp_asprintf("%.*s%s", len, t->path, suffix);
    if (!t->beside)
        return -ENOMEM;
    int fd = mkostemp(t->beside, O_CLOEXEC);
    int rc = fd < 0 ? -errno : take(t, fd);
    if (rc && fd >= 0)
        unlink(t->beside);
    return rc;
}

/* Returns true if the followed path is the file itself: an open file that was removed has another name there. */
static bool is_there(const struct kp_target *t)
{
    struct stat now;
    return !t->exists || (!lstat(t->path, &now) && now.st_dev == t->old.st_dev && now.st_ino == t->old.st_ino);
}

bool kp_target_is_stdout(const char *path)
{
    return !strcmp(path, "-");
}

/* Copies the descriptor; what the command has printed comes first. */
static int take_copy(struct kp_target *t, int descriptor)
{
    fflush(stdout);
    return take(t, fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

/* Finds what a path names. *descriptor: of this process, -1 for none. */
static int find_file(struct kp_target *t, const char *path, int *descriptor)
{
    *t = (struct kp_target){.to = NULL};
    *descriptor = -1;
    t->exists = !stat(path, &t->old);
    if (!t->exists && errno != ENOENT) /* like the kernel, follows no links of other users in /tmp */
        return -errno;
    return follow(path, &t->path, descriptor);
}

/* Returns true if the file exists, is not a descriptor, and is written through. */
static bool is_through(const struct kp_target *t)
{
    return (t->exists && !S_ISREG(t->old.st_mode)) || !is_there(t);
}

bool kp_target_replaces(const char *path)
{
    struct kp_target t;
    int descriptor;
    bool replaces = !kp_target_is_stdout(path) && !find_file(&t, path, &descriptor) && descriptor < 0 && t.exists &&
                    !is_through(&t);
    if (!kp_target_is_stdout(path))
        free(t.path);
    return replaces;
}

/* Returns 0 if a descriptor of this process can be written, else a negative errno. */
static int try_descriptor(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);
    return flags < 0 ? -errno : (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
}

int kp_target_try(const char *path)
{
    struct kp_target t;
    int descriptor;
    if (kp_target_is_stdout(path))
        return 0;
    int rc = find_file(&t, path, &descriptor);
    if (!rc && descriptor >= 0) {
        rc = try_descriptor(descriptor);
    } else if (!rc && is_through(&t)) {
        rc = access(path, W_OK) ? -errno : 0;
    } else if (!rc && !(rc = open_beside(&t))) {
        fclose(t.to);
        unlink(t.beside);
    }
    free(t.beside);
    free(t.path);
    return rc;
}

int kp_target_open(struct kp_target *t, const char *path, mode_t mode)
{
    int descriptor, rc;
    if (kp_target_is_stdout(path)) {
        *t = (struct kp_target){.to = NULL};
        return take_copy(t, STDOUT_FILENO);
    }
    rc = find_file(t, path, &descriptor);
    t->mode = mode;
    if (!rc && descriptor >= 0) {
        rc = take_copy(t, descriptor);
    } else if (!rc && is_through(t)) {
        rc = take(t, open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
    } else if (!rc) {
        rc = open_beside(t);
    }
    if (rc) {
        free(t->beside);
        free(t->path);
        t->beside = t->path = NULL;
    }
    return rc;
}

/* Gives the new file the mode of the old one, and its owner if that is allowed: who could read it still can. */
static int set_mode(const struct kp_target *t)
{
    mode_t hidden = umask(0);
    umask(hidden);
    int fd = fileno(t->to);
    if (t->exists && fchown(fd, t->old.st_uid, t->old.st_gid) && errno != EPERM)
        return -errno;
    return fchmod(fd, t->exists ? t->old.st_mode & 0777 : t->mode & ~hidden) ? -errno : 0;
}

int kp_target_end(struct kp_target *t, int rc)
{
    if (!rc && t->beside)
        rc = set_mode(t);
    if (fclose(t->to) && !rc)
        rc = -errno;
    if (!rc && t->beside && rename(t->beside, t->path))
        rc = -errno;
    if (rc && t->beside)
        unlink(t->beside);
    free(t->beside);
    free(t->path);
    *t = (struct kp_target){.to = NULL};
    return rc;
}

bool kp_target_is_database(const char *path)
{
    return !kp_target_is_stdout(path) && kp_store_is_database(path);
}
