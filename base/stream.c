#include "base/stream.h"

#include <errno.h>

static ssize_t hand_on(void *cookie, const char *text, size_t len)
{
    struct kp_stream *s = cookie;
    if (!s->rc)
        s->rc = s->sink->write(s->sink->arg, text, len);
    if (!s->rc)
        return (ssize_t)len;
    errno = -s->rc;
    return 0; /* stdio treats 0 as an error */
}

int kp_stream_open(struct kp_stream *s, const struct kp_sink *sink)
{
    *s = (struct kp_stream){.sink = sink};
    s->to = fopencookie(s, "w", (cookie_io_functions_t){.write = hand_on});
    return s->to ? 0 : -ENOMEM;
}

static int print(void *arg, const char *text, size_t len)
{
    return fwrite(text, 1, len, arg) == len ? 0 : -errno;
}

struct kp_sink kp_stream_sink(FILE *to)
{
    return (struct kp_sink){print, to};
}

int kp_stream_close(struct kp_stream *s)
{
    int failed = fclose(s->to);
    s->to = NULL;
    return s->rc ? s->rc : failed ? -ENOMEM : 0;
}
