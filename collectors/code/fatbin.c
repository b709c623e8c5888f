#include "collectors/code/fatbin.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRAPPER = 0x466243b1, CONTAINER = 0xba55ed50, KIND_PTX = 1 };

struct wrapper {
    uint32_t magic, version;
    const void *container;
    void *more; /* parts of a separate compilation, which are not whole by themselves */
};

struct container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* of all entries */
};

/* What all entries begin with. */
struct entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size; /* of what follows the header */
};

static uint32_t magic_of(const void *image)
{
    uint32_t magic;
    memcpy(&magic, image, sizeof(magic));
    return magic;
}

/* Reads the entry at `at` of the container. Returns its whole size, 0 where there is no more. */
static uint64_t entry_at(const uint8_t *at, uint64_t left, struct entry *out)
{
    if (left < sizeof(*out))
        return 0;
    memcpy(out, at, sizeof(*out));
    if (out->header_size < sizeof(*out) || out->header_size > left || out->size > left - out->header_size)
        return 0;
    return out->header_size + out->size;
}

/* Copies the entries of PTX to `to` (NULL: only counts them). Returns their size. */
static uint64_t copy_entries(const uint8_t *at, uint64_t left, uint8_t *to)
{
    struct entry e;
    uint64_t sum = 0;
    for (uint64_t size; (size = entry_at(at, left, &e)); at += size, left -= size) {
        if (e.kind != KIND_PTX)
            continue;
        if (to)
            memcpy(to + sum, at, size);
        sum += size;
    }
    return sum;
}

static int copy_container(const void *image, struct kp_ptx *out)
{
    struct container head;
    memcpy(&head, image, sizeof(head));
    if (head.header_size < sizeof(head))
        return 0;
    const uint8_t *entries = (const uint8_t *)image + head.header_size;
    uint64_t size = copy_entries(entries, head.size, NULL);
    uint8_t *copy = size ? malloc(head.header_size + size) : NULL;
    if (!size)
        return 0;
    if (!copy)
        return -ENOMEM;
    memcpy(copy, image, head.header_size);
    copy_entries(entries, head.size, copy + head.header_size);
    head.size = size;
    memcpy(copy, &head, sizeof(head));
    *out = (struct kp_ptx){KP_PTX_FATBIN, copy, head.header_size + size};
    return 0;
}

/* PTX is the only text that a driver takes. */
static int copy_text(const char *text, struct kp_ptx *out)
{
    if (!isprint((unsigned char)*text) && !isspace((unsigned char)*text))
        return 0;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    *out = (struct kp_ptx){KP_PTX_TEXT, copy, strlen(copy) + 1};
    return 0;
}

int kp_ptx_copy(const void *image, struct kp_ptx *out)
{
    struct wrapper w;
    *out = (struct kp_ptx){KP_PTX_NONE, NULL, 0};
    if (!image)
        return 0;
    if (!strncmp(image, ELFMAG, SELFMAG) || strnlen(image, sizeof(uint32_t)) < sizeof(uint32_t))
        return 0;
    if (magic_of(image) == WRAPPER) {
        memcpy(&w, image, sizeof(w));
        image = w.container;
        if (!image || magic_of(image) != CONTAINER)
            return 0;
    }
    return magic_of(image) == CONTAINER ? copy_container(image, out) : copy_text(image, out);
}

/* Reads all of a file, with a NUL behind it. */
static int read_file(int fd, char **out)
{
    struct stat s;
    size_t n = 0;
    if (fstat(fd, &s) || !(*out = malloc((size_t)s.st_size + 1)))
        return -ENOMEM;
    for (ssize_t more = 1; more > 0 && n < (size_t)s.st_size; n += (size_t)(more > 0 ? more : 0))
        more = read(fd, *out + n, (size_t)s.st_size - n);
    (*out)[n] = '\0';
    if (n == (size_t)s.st_size)
        return 0;
    free(*out);
    return -EIO;
}

int kp_ptx_copy_file(const char *path, struct kp_ptx *out)
{
    char *image;
    *out = (struct kp_ptx){KP_PTX_NONE, NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = read_file(fd, &image);
    close(fd);
    if (rc)
        return rc;
    rc = kp_ptx_copy(image, out);
    free(image);
    return rc;
}

void kp_ptx_free(struct kp_ptx *p)
{
    free(p->bytes);
    *p = (struct kp_ptx){KP_PTX_NONE, NULL, 0};
}
