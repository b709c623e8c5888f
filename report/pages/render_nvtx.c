/* The lines below a launch's header that say in which NVTX ranges it was made. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/nvtx_expr.h"
#include "report/pages/render_body.h"
#include "base/text.h"

static const char nameless[] = "(no name)";

/* A range as it is written in a filter expression, but for the '\\' of special characters: those would only be in the
 * way of reading. */
static void write_range(FILE *to, const struct kp_nvtx_range *r)
{
    const char *category = r->category, *payload = r->payload;
    fprintf(to, "%s%s%s", r->domain, *r->domain ? "@" : "", *r->name ? r->name : nameless);
    if (*category || *payload)
        fprintf(to, " (%s%s%s%s%s)", *category ? "category " : "", category, *category && *payload ? ", " : "",
                *payload ? "payload " : "", payload);
}

/* The ranges from number `i` on that make up one line, those of a thread's stack or the start-end ranges: returns the
 * number of the first behind them. */
static size_t write_ranges(FILE *to, const struct kp_nvtx *n, size_t i)
{
    const struct kp_nvtx_range *first = &n->ranges[i];
    bool stack = first->kind == KP_NVTX_PUSH_POP;
    for (const char *mark = ""; i < n->n_ranges; i++, mark = stack ? " / " : ", ") {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (r->kind != first->kind || (stack && r->thread != first->thread))
            break;
        fputs(mark, to);
        write_range(to, r);
    }
    return i;
}

/* One paragraph of what NVTX tells; `text` is malloc'ed. */
static void print_nvtx_text(struct kp_out *o, const char *what, char *text)
{
    char *prefix = NULL;
    if (kp_out_has(o, text) && kp_out_has(o, asprintf(&prefix, "    NVTX %s: ", what) < 0 ? NULL : prefix)) {
        kp_blank_controls(text, strlen(text)); /* names may hold anything */
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

/* --- names of kernels --- */

/* NULL where the thread has none. */
static const struct kp_nvtx_range *innermost(const struct kp_nvtx *n)
{
    const struct kp_nvtx_range *last = NULL;
    for (size_t i = 0; i < n->n_ranges; i++)
        if (n->ranges[i].kind == KP_NVTX_PUSH_POP && n->ranges[i].thread == n->thread)
            last = &n->ranges[i];
    return last && *last->name ? last : NULL;
}

int kp_launch_range_name(const struct kp_launch_info *l, char **out)
{
    const struct kp_nvtx_range *range = innermost(&l->nvtx);
    *out = NULL;
    if (!range)
        return 0;
    if (asprintf(out, "%s/%s", range->name, kp_launch_name(l)) < 0) {
        *out = NULL;
        return -ENOMEM;
    }
    kp_blank_controls(*out, strlen(range->name));
    return 0;
}

size_t kp_launch_range_length(const struct kp_launch_info *l)
{
    const struct kp_nvtx_range *range = innermost(&l->nvtx);
    const char *name = kp_launch_name(l);
    size_t n = 0;
    while (range && range->name[n] && (kp_is_control(range->name[n]) ? ' ' : range->name[n]) == name[n])
        n++;
    return range && !range->name[n] && name[n] == '/' ? n + 1 : 0;
}

size_t kp_range_cut(const char *name, size_t range, size_t most, char *out)
{
    static const char cut[] = ".../";
    const char *mark = range > most ? cut : "";
    size_t kept = range > most ? most - strlen(cut) : range;
    while (range > most && kept && ((unsigned char)name[kept] & 0xc0) == 0x80)
        kept--; /* between the bytes of a character */
    memcpy(out, name, kept);
    memcpy(out + kept, mark, strlen(mark));
    return kept + strlen(mark);
}

/* --- ranges that launches are put together by --- */

char *kp_range_title(const struct kp_nvtx_range *r)
{
    struct kp_nvtx_range named = *r;
    if (!*r->name)
        named.name = (char *)nameless;
    char *title = kp_nvtx_expression(&named);
    if (title)
        kp_blank_controls(title, strlen(title));
    return title;
}

bool kp_range_is_new(const struct kp_nvtx *n, size_t i)
{
    const struct kp_nvtx_range *r = &n->ranges[i];
    for (const struct kp_nvtx_range *before = n->ranges; before < r; before++)
        if (before->kind == r->kind && !strcmp(before->domain, r->domain) && !strcmp(before->name, r->name))
            return false;
    return true;
}
