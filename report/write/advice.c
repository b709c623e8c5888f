#include "report/write/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"
#include "base/wrap.h"
#include "report/write/out.h"

enum { INDENT = 10 };

/* From this share of the time on, in percent, warps mostly wait for one thing. */
static const double mostly_from = 50;

/* --- messages --- */

static size_t text_width(const struct kp_out *o)
{
    return kp_out_prose(o, INDENT);
}

/* Prints one line, padded to the full width as in ncu. */
static void put_line(struct kp_out *o, const char *head, const char *text, size_t len)
{
    kp_out_print(o, "    ");
    kp_out_paint(o, KP_PAINT_LABEL);
    kp_out_print(o, "%s", head);
    kp_out_paint(o, KP_PAINT_NONE);
    kp_out_print(o, "%*s%-*.*s\n", INDENT - 4 - (int)strlen(head), "", (int)text_width(o), (int)len, text);
}

static void put_message(struct kp_out *o, const struct kp_message *m)
{
    const char *head = kp_severity_name(m->severity), *line;
    struct kp_wrap wrap = {m->text, text_width(o)};
    char estimate[64];
    size_t len;
    if (!isnan(m->speedup)) {
        int n = snprintf(estimate, sizeof estimate, "Est. %sSpeedup: %.4g%%", m->global ? "" : "Local ", m->speedup);
        put_line(o, head, estimate, (size_t)n);
        head = "";
    }
    for (; kp_wrap_next(&wrap, &line, &len); head = "")
        put_line(o, head, line, len);
}

static void put_separator(struct kp_out *o)
{
    kp_out_print(o, "    %-*s", INDENT - 4, "-----");
    kp_out_repeat(o, '-', text_width(o));
    kp_out_text(o, "\n", 1);
}

int kp_render_messages(struct kp_out *o, const struct kp_messages *m, const char *section_id)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->list[i].rule->section, section_id))
            continue;
        if (n++)
            put_separator(o);
        put_message(o, &m->list[i]);
    }
    if (n)
        kp_out_text(o, "\n", 1);
    return o->rc;
}

/* --- the verdict --- */

static void put_wrapped(struct kp_out *o, const char *head, const char *text)
{
    size_t indent = strlen("    ") + strlen(head), len;
    struct kp_wrap wrap = {text, kp_out_prose(o, indent)};
    const char *line;
    kp_out_print(o, "    ");
    kp_out_paint(o, KP_PAINT_LABEL);
    kp_out_print(o, "%s", head);
    kp_out_paint(o, KP_PAINT_NONE);
    for (bool first = true; kp_wrap_next(&wrap, &line, &len); first = false)
        kp_out_print(o, "%*s%.*s\n", first ? 0 : (int)indent, "", (int)len, line);
}

static void describe_bound(FILE *f, const struct kp_verdict *v)
{
    fprintf(f, "bound by %s; ", v->what);
    if (v->bound == KP_BOUND_LAUNCH)
        fprintf(f, "the grid makes %.2f waves of blocks; ", v->waves);
    fprintf(f, "compute %.1f%%, memory %.1f%% of peak", v->compute, v->memory);
    if (*v->stall)
        fprintf(f, "; %s %s (%.1f%% of the time)",
                v->stall_share < mostly_from ? "longest wait:" : "warps mostly wait for", v->stall, v->stall_share);
}

static void describe_gains(FILE *f, const struct kp_verdict *v)
{
    for (size_t i = 0; i < KP_VERDICT_GAINS && v->gains[i]; i++) {
        const struct kp_message *m = v->gains[i];
        fprintf(f, "%s%.1f%% %s (%s)", i ? "; " : "", m->speedup, m->rule->id, m->section->display);
    }
}

static void put_described(struct kp_out *o, const char *head, const struct kp_verdict *v,
                          void (*describe)(FILE *f, const struct kp_verdict *v))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(o, f))
        return;
    locale_t before = kp_plain_begin();
    describe(f, v);
    kp_plain_end(before);
    if (kp_text_end(f, &text))
        kp_out_has(o, NULL);
    else
        put_wrapped(o, head, text);
    free(text);
}

int kp_render_verdict(struct kp_out *o, const struct kp_verdict *v)
{
    if (v->bound != KP_BOUND_UNKNOWN)
        put_described(o, "Verdict: ", v, describe_bound);
    if (v->gains[0])
        put_described(o, "Gains: ", v, describe_gains);
    return o->rc;
}
