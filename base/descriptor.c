#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Below the usual limit of 1024; with a lower limit, above the descriptors that a child of ours inherits. */
enum { HIGH = 700, LEAST = 10 };

int kp_descriptor_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    copy = copy >= 0 ? copy : fcntl(fd, F_DUPFD_CLOEXEC, LEAST);
    if (copy < 0 && errno == EINVAL)
        errno = EMFILE; /* the limit allows none of them */
    return copy;
}

int kp_descriptor_raise(int fd)
{
    if (fd < 0)
        return fd;
    int copy = kp_descriptor_copy(fd), error = errno;
    close(fd);
    errno = error;
    return copy;
}

int kp_descriptor_memory(const char *name)
{
    /* A system call: the C library's memfd_create is newer than our baseline. */
    return kp_descriptor_raise((int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */));
}

struct kp_descriptor_file kp_descriptor_file(int fd)
{
    struct stat s;
    if (fd < 0 || fstat(fd, &s))
        return (struct kp_descriptor_file){.known = false};
    return (struct kp_descriptor_file){true, s.st_dev, s.st_ino};
}

bool kp_descriptor_is(int fd, const struct kp_descriptor_file *f)
{
    struct kp_descriptor_file now = kp_descriptor_file(fd);
    return f->known && now.known && now.device == f->device && now.file == f->file;
}

int kp_descriptor_open_again(const char *path, int flags, const struct kp_descriptor_file *f)
{
    int fd = kp_descriptor_raise(open(path, flags | O_CLOEXEC));
    if (fd < 0 || kp_descriptor_is(fd, f))
        return fd;
    close(fd);
    return -1;
}
