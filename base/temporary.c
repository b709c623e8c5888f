#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST = 16,    /* folders of a process at a time */
    DEEPEST = 8,  /* folders within folders; kprof makes two */
    BLOCK = 4096, /* bytes of entries read at a time */
};

/* A slot is set after its path is whole, and emptied before the path is freed. */
static struct {
    char *volatile paths[MOST];
    pid_t pid; /* of the process that has made them */
} made;

const char *kp_temporary_base(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

static void note(const char *folder)
{
    if (made.pid != getpid()) /* those of the process that forked this one are not its own */
        for (size_t i = 0; i < MOST; i++)
            made.paths[i] = NULL;
    made.pid = getpid();
    for (size_t i = 0; i < MOST; i++)
        if (!made.paths[i]) {
            made.paths[i] = strdup(folder);
            break;
        }
}

char *kp_temporary_folder(const char *begin)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%sXXXXXX", kp_temporary_base(), begin) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    if (!mkdtemp(path)) {
        int why = errno;
        free(path);
        errno = why;
        return NULL;
    }
    note(path);
    return path;
}

void kp_temporary_keep(const char *folder)
{
    for (size_t i = 0; i < MOST; i++) {
        char *path = made.paths[i];
        if (path && !strcmp(path, folder)) {
            made.paths[i] = NULL;
            free(path);
        }
    }
}

static int open_folder(int in, const char *name)
{
    return openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool remove_in(int in, const char *name, int depth);

/* Removes what a block of entries names. Returns how many are gone. */
static size_t remove_entries(int fd, const char *block, long n, int depth)
{
    enum { SIZE_AT = 16, NAME_AT = 19 }; /* in the kernel's struct linux_dirent64 */
    size_t gone = 0;
    for (long at = 0; at < n;) {
        const char *name = block + at + NAME_AT;
        uint16_t size;
        memcpy(&size, block + at + SIZE_AT, sizeof size);
        at += size;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        gone += !unlinkat(fd, name, 0) || (errno == EISDIR && depth < DEEPEST && remove_in(fd, name, depth + 1));
    }
    return gone;
}

/* Removes a folder; returns true if it is gone. All that it calls may be called in a handler of a signal: readdir may
 * not. */
static bool remove_in(int in, const char *name, int depth)
{
    char block[BLOCK];
    int fd = open_folder(in, name);
    if (fd < 0)
        return false;
    for (size_t gone = 1; gone;) { /* from the start: entries may move while others are removed */
        long n;
        gone = 0;
        lseek(fd, 0, SEEK_SET);
        while ((n = syscall(SYS_getdents64, fd, block, sizeof block)) > 0)
            gone += remove_entries(fd, block, n, depth);
    }
    close(fd);
    return !unlinkat(in, name, AT_REMOVEDIR);
}

void kp_temporary_remove(const char *folder)
{
    remove_in(AT_FDCWD, folder, 0);
    kp_temporary_keep(folder);
}

void kp_temporary_end(void)
{
    int why = errno;
    for (size_t i = 0; i < MOST && made.pid == getpid(); i++)
        if (made.paths[i])
            remove_in(AT_FDCWD, made.paths[i], 0);
    errno = why;
}

/* ---- what others have left ---- */

/* Returns true if a name starts with the number of a live process. */
static bool names_process(const char *name)
{
    char *end = NULL;
    long pid = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;
    return pid > 1 && pid <= INT32_MAX && (*end == '.' || *end == '-') && (!kill((pid_t)pid, 0) || errno == EPERM);
}

static bool is_used(int in, const char *name, time_t since, int depth);

/* Returns true if an entry of a folder was written since then, or belongs to a live process. */
static bool is_entry_used(int fd, const char *name, time_t since, int depth)
{
    struct stat st;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return false;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno != ENOENT;
    if (st.st_uid != geteuid() || st.st_mtime > since || names_process(name))
        return true;
    return S_ISDIR(st.st_mode) && is_used(fd, name, since, depth + 1);
}

static bool is_used(int in, const char *name, time_t since, int depth)
{
    int fd = depth < DEEPEST ? open_folder(in, name) : -1;
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool used = !folder;
    while (!used && (entry = readdir(folder)))
        used = is_entry_used(dirfd(folder), entry->d_name, since, depth);
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    return used;
}

/* Returns true if a folder is one that kprof makes: it is the user's alone, and has the marker. */
static bool is_ours(int in, const char *name, const char *marker)
{
    struct stat folder, file;
    int fd = open_folder(in, name);
    bool ours = fd >= 0 && !fstat(fd, &folder) && folder.st_uid == geteuid() && (folder.st_mode & 0777) == 0700 &&
                !fstatat(fd, marker, &file, AT_SYMLINK_NOFOLLOW) && S_ISREG(file.st_mode) && file.st_uid == geteuid();
    if (fd >= 0)
        close(fd);
    return ours;
}

void kp_temporary_sweep(const char *begin, const char *marker, time_t age)
{
    DIR *in = opendir(kp_temporary_base());
    const struct dirent *entry;
    size_t len = strlen(begin);
    while (in && (entry = readdir(in)))
        if (!strncmp(entry->d_name, begin, len) && !names_process(entry->d_name + len) &&
            is_ours(dirfd(in), entry->d_name, marker) && !is_used(dirfd(in), entry->d_name, time(NULL) - age, 0))
            remove_in(dirfd(in), entry->d_name, 0);
    if (in)
        closedir(in);
}
