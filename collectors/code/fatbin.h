/*
 * The PTX in an image that a program hands to the driver: text, or a fat binary with code of several kinds.
 *
 * KP_VENDOR: NVIDIA does not document fat binaries. Found in the output of nvcc 13.0: a wrapper (magic number, version,
 * address of the container), and the container: a header, and entries that each have a header of their own. An entry of
 * PTX may be compressed: it is handed on as it is.
 */
#ifndef KP_COLLECTORS_CODE_FATBIN_H
#define KP_COLLECTORS_CODE_FATBIN_H

#include <stddef.h>

enum kp_ptx_form {
    KP_PTX_NONE,   /* the image has none */
    KP_PTX_TEXT,   /* ends with a NUL, which counts */
    KP_PTX_FATBIN, /* a container with the image's entries of PTX and nothing else */
};

struct kp_ptx {
    enum kp_ptx_form form;
    void *bytes; /* malloc'ed */
    size_t size;
};

/* Fills *out with a copy of the PTX of an image, which a driver has accepted: its own sizes are believed. A text ends
 * with a NUL. 0, or -ENOMEM. */
int kp_ptx_copy(const void *image, struct kp_ptx *out);

/* Does the same for the file of that name. 0, -ENOMEM, or -errno where it cannot be read. */
int kp_ptx_copy_file(const char *path, struct kp_ptx *out);

void kp_ptx_free(struct kp_ptx *p);

#endif
