#include "report/write/advice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"
#include "base/wrap.h"
#include "report/write/out.h"

enum { INDENT = 10, TEXT_WIDTH = 110 };

/* From this share of the time on, in percent, warps wait mostly for one thing. */
static const double mostly_from = 50;

/* --- messages --- */

/* Prints one line, padded to the full width as in ncu. */
static int put_line(const struct kp_sink *out, const char *head, const char *text, size_t len)
{
    char line[INDENT + TEXT_WIDTH + 2];
    int n = snprintf(line, sizeof line, "    %-*s%-*.*s\n", INDENT - 4, head, TEXT_WIDTH, (int)len, text);
    kp_blank_controls(line, (size_t)n - 1);
    return out->write(out->arg, line, (size_t)n);
}

static int put_message(const struct kp_sink *out, const struct kp_message *m)
{
    const char *head = kp_severity_name(m->severity), *line;
    struct kp_wrap wrap = {m->text, TEXT_WIDTH};
    char estimate[64];
    size_t len;
    int rc = 0;
    if (!isnan(m->speedup)) {
        int n = snprintf(estimate, sizeof estimate, "Est. %sSpeedup: %.4g%%", m->global ? "" : "Local ", m->speedup);
        rc = put_line(out, head, estimate, (size_t)n);
        head = "";
    }
    for (; !rc && kp_wrap_next(&wrap, &line, &len); head = "")
        rc = put_line(out, head, line, len);
    return rc;
}

static int put_separator(const struct kp_sink *out)
{
    char dashes[TEXT_WIDTH];
    memset(dashes, '-', sizeof dashes);
    return put_line(out, "-----", dashes, sizeof dashes);
}

int kp_render_messages(const struct kp_sink *out, const struct kp_messages *m, const char *section_id)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < m->n; i++) {
        if (strcmp(m->list[i].rule->section, section_id))
            continue;
        if (n++)
            rc = put_separator(out);
        if (!rc)
            rc = put_message(out, &m->list[i]);
    }
    return rc || !n ? rc : out->write(out->arg, "\n", 1);
}

/* --- the verdict --- */

static int put_wrapped(const struct kp_sink *out, const char *head, const char *text)
{
    struct kp_wrap wrap = {text, KP_LINE_WIDTH - strlen(head)};
    const char *line;
    char padded[2 * KP_LINE_WIDTH];
    size_t len;
    int rc = 0, indent = (int)strlen(head);
    for (; !rc && kp_wrap_next(&wrap, &line, &len); head = "") {
        int n = snprintf(padded, sizeof padded, "%-*s%.*s\n", indent, head, (int)len, line);
        kp_blank_controls(padded, (size_t)n - 1);
        rc = out->write(out->arg, padded, (size_t)n);
    }
    return rc;
}

static void describe_bound(FILE *f, const struct kp_verdict *v)
{
    fprintf(f, "bound by %s; ", v->what);
    if (v->bound == KP_BOUND_LAUNCH)
        fprintf(f, "the grid makes %.2f waves of blocks; ", v->waves);
    fprintf(f, "compute %.1f%%, memory %.1f%% of peak", v->compute, v->memory);
    if (*v->stall)
        fprintf(f, "; %s %s (%.1f%% of the time)",
                v->stall_share < mostly_from ? "longest wait:" : "warps wait mostly for", v->stall, v->stall_share);
}

static void describe_gains(FILE *f, const struct kp_verdict *v)
{
    for (size_t i = 0; i < KP_VERDICT_GAINS && v->gains[i]; i++) {
        const struct kp_message *m = v->gains[i];
        fprintf(f, "%s%.1f%% %s (%s)", i ? "; " : "", m->speedup, m->rule->id, m->section->display);
    }
}

static int put_described(const struct kp_sink *out, const char *head, const struct kp_verdict *v,
                         void (*describe)(FILE *f, const struct kp_verdict *v))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return -ENOMEM;
    locale_t before = kp_plain_begin();
    describe(f, v);
    kp_plain_end(before);
    int rc = kp_text_end(f, &text) ? -ENOMEM : put_wrapped(out, head, text);
    free(text);
    return rc;
}

int kp_render_verdict(const struct kp_sink *out, const struct kp_verdict *v)
{
    int rc = v->bound == KP_BOUND_UNKNOWN ? 0 : put_described(out, "    Verdict: ", v, describe_bound);
    return rc || !v->gains[0] ? rc : put_described(out, "    Gains: ", v, describe_gains);
}
