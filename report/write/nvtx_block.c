/* Writes the lines below a launch's header that name its NVTX ranges. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/model/launch_names.h"
#include "report/write/launch_head.h"

/* Writes a range as in a filter expression, but without the '\' of special characters, for readability. */
static void print_range(FILE *to, const struct kp_nvtx_range *r)
{
    const char *category = r->category, *payload = r->payload;
    fprintf(to, "%s%s%s", r->domain, *r->domain ? "@" : "", *r->name ? r->name : kp_range_nameless);
    if (*category || *payload)
        fprintf(to, " (%s%s%s%s%s)", *category ? "category " : "", category, *category && *payload ? ", " : "",
                *payload ? "payload " : "", payload);
}

/* Writes one line of ranges from number `i` on: a thread's stack, or the start-end ranges. Returns the index after
 * them. */
static size_t write_ranges(FILE *to, const struct kp_nvtx *n, size_t i)
{
    const struct kp_nvtx_range *first = &n->ranges[i];
    bool stack = first->kind == KP_NVTX_PUSH_POP;
    for (const char *mark = ""; i < n->n_ranges; i++, mark = stack ? " / " : ", ") {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (r->kind != first->kind || (stack && r->thread != first->thread))
            break;
        fputs(mark, to);
        print_range(to, r);
    }
    return i;
}

/* Prints one paragraph about NVTX; `text` is malloc'ed. */
static void print_nvtx_text(struct kp_out *o, const char *what, char *text)
{
    char *prefix = NULL;
    if (kp_out_has(o, text) && kp_out_has(o, asprintf(&prefix, "    NVTX %s: ", what) < 0 ? NULL : prefix)) {
        kp_blank_controls(text, strlen(text)); /* names may contain anything */
        kp_out_wrapped(o, prefix, text);
        free(prefix);
    }
    free(text);
}

static void print_nvtx_names(struct kp_out *o, const struct kp_nvtx *n)
{
    char *text = NULL;
    if (n->thread_name && *n->thread_name)
        print_nvtx_text(o, "Thread", asprintf(&text, "%s (%" PRIu64 ")", n->thread_name, n->thread) < 0 ? NULL : text);
    if (n->stream_name && *n->stream_name)
        print_nvtx_text(o, "Stream", strdup(n->stream_name));
}

void kp_render_nvtx(struct kp_out *o, const struct kp_nvtx *n)
{
    for (size_t i = 0; i < n->n_ranges && !o->rc;) {
        const struct kp_nvtx_range *first = &n->ranges[i];
        char *text = NULL, what[64] = "Start/End";
        size_t size;
        FILE *to = open_memstream(&text, &size);
        if (first->kind == KP_NVTX_PUSH_POP)
            snprintf(what, sizeof what, first->thread == n->thread ? "Push/Pop" : "Push/Pop of Thread %" PRIu64,
                     first->thread);
        if (!to) {
            o->rc = -ENOMEM;
            return;
        }
        i = write_ranges(to, n, i);
        fclose(to);
        print_nvtx_text(o, what, text);
    }
    print_nvtx_names(o, n);
}
