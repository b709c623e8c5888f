/* The destination of text. */
#ifndef KP_BASE_SINK_H
#define KP_BASE_SINK_H

#include <stddef.h>

/* Receives text: `write` gets a chunk and returns 0 or a negative errno, which ends the rendering. */
struct kp_sink {
    int (*write)(void *arg, const char *text, size_t len);
    void *arg;
};

#endif
