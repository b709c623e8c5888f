/* What the tests of preload/, collectors/ and cupti/ share: the real CUPTI, a compiler, and files of the toolkit. */
#ifndef KP_TESTS_SUPPORT_COLLECT_SUPPORT_H
#define KP_TESTS_SUPPORT_COLLECT_SUPPORT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collectors/code/cubin.h"
#include "cupti/loader.h"

/* The C library's own loader functions. */
const struct kp_dl *kp_test_dl(void);

/* The CUPTI that this tree was built against, loaded once per process. Skips the test, with the reason, if
 * KP_REAL_CUPTI does not name its folder; fails it if it cannot be loaded from there. */
const struct kp_cupti *kp_test_real_cupti(void);

/* Skips the test in builds with sanitisers: it takes minutes there, nearly all of them in the library's own code, and
 * other tests do the same for one chip. */
void kp_test_skip_sanitized(void);
/* Returns true in such a build, for a test that covers fewer cases there. */
bool kp_test_is_sanitized(void);

/* Writes a file; fails the test if it cannot. */
void kp_test_write(const char *path, const char *text);

/* Compiles the text `source` into the shared object folder/name with the linker flags `flags`. Fails the test if there
 * is no compiler or it refuses. Returns the path; static storage, overwritten by the next call. */
const char *kp_test_shared_object(const char *folder, const char *name, const char *source, const char *flags);

/* The header of the image's section `name`; fails the test without one. */
Elf64_Shdr *kp_test_elf_section(uint8_t *image, const char *name);
/* Puts another PTX after everything in the image; there must be room for it. */
void kp_test_set_ptx(uint8_t *image, size_t *size, const char *text, size_t len);

/* The output and the image of a function that is printed. */
struct kp_test_printing {
    FILE *to;
    struct kp_cubin *cubin;
};

/* Calls `print`, which returns 0, for each function of an image with a struct kp_test_printing. Returns its output, to
 * be freed; NULL if the image cannot be opened. */
char *kp_test_print_image(const void *bytes, size_t size,
                          int (*print)(const struct kp_cubin_function *f, void *printing));

/* The file `name` in one of the folders `below` (NULL-terminated) of the build's CUDA toolkit; malloc'ed, or NULL if it
 * is not there. */
char *kp_test_toolkit_file(const char *const *below, const char *name);

#endif
