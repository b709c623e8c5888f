#include "base/stream.h"

#include <errno.h>

static ssize_t hand_on(void *cookie, const char *text, size_t len)
{
    struct kp_stream *s = cookie;
    if (!s->rc)
        s->rc = s->sink->write(s->sink->arg, text, len);
    return s->rc ? 0 : (ssize_t)len; /* 0 is an error to stdio */
}

int kp_stream_open(struct kp_stream *s, const struct kp_sink *sink)
{
    *s = (struct kp_stream){.sink = sink};
    s->to = fopencookie(s, "w", (cookie_io_functions_t){.write = hand_on});
    return s->to ? 0 : -ENOMEM;
}

int kp_stream_close(struct kp_stream *s)
{
    int failed = fclose(s->to);
    s->to = NULL;
    return s->rc ? s->rc : failed ? -ENOMEM : 0;
}
