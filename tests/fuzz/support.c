#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

uint8_t *kp_fuzz_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size);
    kp_fuzz_require(copy != NULL, "no memory for the input");
    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *kp_fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    kp_fuzz_require(text != NULL, "no memory for the input");
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void kp_fuzz_require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

void kp_fuzz_outcome(int rc, char **err)
{
    kp_fuzz_require(rc == 0 || rc == -EINVAL, "neither taken nor refused");
    kp_fuzz_require(!rc == !*err, "an error without a message, or a message without an error");
    kp_fuzz_require(!*err || **err, "an empty message");
    free(*err);
    *err = NULL;
}

const char *kp_fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    kp_fuzz_require(fd >= 0 && !ftruncate(fd, (off_t)size), "no file in memory");
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, data + done, size - done, (off_t)done);
        kp_fuzz_require(n > 0, "a file in memory cannot be written");
        done += (size_t)n;
    }
    return path;
}

uint8_t *kp_fuzz_source(const char *name, size_t *size)
{
    uint8_t *content = NULL;
    long end = -1;
    FILE *f = fopen(name, "rb");
    if (f && !fseek(f, 0, SEEK_END) && (end = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET))
        content = malloc((size_t)end);
    if (!content || fread(content, 1, (size_t)end, f) != (size_t)end) {
        fprintf(stderr, "fuzz: cannot read %s; run harnesses in the root of the source tree\n", name);
        exit(2);
    }
    fclose(f);
    *size = (size_t)end;
    return content;
}
