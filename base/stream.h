/*
 * A stdio stream over a sink, so that what is written in small pieces reaches the sink in large ones.
 * Threads: one at a time for each stream.
 */
#ifndef KP_BASE_STREAM_H
#define KP_BASE_STREAM_H

#include <stdio.h>

#include "base/sink.h"

struct kp_stream {
    FILE *to;
    const struct kp_sink *sink;
    int rc; /* what the sink returned first */
};

/* `s` and the sink must stay where they are until the stream is closed. 0 or -ENOMEM. */
int kp_stream_open(struct kp_stream *s, const struct kp_sink *sink);
/* A sink that prints into a stdio stream. */
struct kp_sink kp_stream_sink(FILE *to);

/* Closes the stream, once the sink has the rest. 0, what the sink returned, or -ENOMEM. */
int kp_stream_close(struct kp_stream *s);

#endif
