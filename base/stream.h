/*
 * A stdio stream over a sink, so that small pieces reach the sink as large ones.
 * Threads: one at a time for each stream.
 */
#ifndef KP_BASE_STREAM_H
#define KP_BASE_STREAM_H

#include <stdio.h>

#include "base/sink.h"

struct kp_stream {
    FILE *to;
    const struct kp_sink *sink;
    int rc; /* the sink's first error */
};

/* Opens a stream; `s` and the sink must stay in place until the stream is closed. 0 or -ENOMEM. */
int kp_stream_open(struct kp_stream *s, const struct kp_sink *sink);
/* Returns a sink that prints into a stdio stream. */
struct kp_sink kp_stream_sink(FILE *to);

/* Closes the stream after passing the rest to the sink. 0, an error of the sink, or -ENOMEM. */
int kp_stream_close(struct kp_stream *s);

#endif
