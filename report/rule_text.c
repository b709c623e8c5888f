/* How messages look in the text report. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/rules.h"
#include "report/wrap.h"

enum { INDENT = 10, TEXT_WIDTH = 110 };

static const char *const severity_names[] = {
    [KP_SEVERITY_OPT] = "OPT", [KP_SEVERITY_INF] = "INF", [KP_SEVERITY_WRN] = "WRN"};

/* One line, padded with blanks to the full width as ncu does. */
static int put_line(const struct kp_sink *out, const char *head, const char *text, size_t len)
{
    char line[INDENT + TEXT_WIDTH + 2];
    int n = snprintf(line, sizeof line, "    %-*s%-*.*s\n", INDENT - 4, head, TEXT_WIDTH, (int)len, text);
    return out->write(out->arg, line, (size_t)n);
}

static int put_message(const struct kp_sink *out, const struct kp_message *m)
{
    const char *head = severity_names[m->severity], *line;
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
