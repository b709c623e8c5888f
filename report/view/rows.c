#include "base/room.h"
#include "report/view/lines.h"

#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/groups.h"
#include "report/define/units.h"
#include "report/view/display.h"

int kp_lines_add(struct kp_lines *l, const struct kp_line *line)
{
    if (!KP_ROOM(l->at, l->n)) {
        free(line->made_label);
        return -ENOMEM;
    }
    l->at[l->n++] = *line;
    return 0;
}

static void keep_name(void *unused)
{
    (void)unused;
}

void kp_lines_free(struct kp_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].made_label);
    tdestroy(l->names, keep_name);
    free(l->at);
    l->names = NULL;
    l->at = NULL;
    l->n = 0;
}

static int by_name(const void *a, const void *b)
{
    const struct kp_line *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order)
        order = (x->kind > y->kind) - (x->kind < y->kind);
    return order ? order : strcmp(x->label, y->label);
}

void kp_lines_sort(struct kp_lines *l)
{
    if (l->n)
        qsort(l->at, l->n, sizeof *l->at, by_name);
}

bool kp_line_has_value(const struct kp_line *l)
{
    return l->metric && l->metric->kind != KP_VALUE_NA;
}

const char *kp_line_unit(const struct kp_line *l)
{
    const char *own = l->metric->unit;
    if (*own || !l->unit || !strcmp(l->unit, KP_UNIT_OF_CHIP))
        return own;
    return l->unit + (strncmp(l->unit, KP_UNIT_DRAWN, strlen(KP_UNIT_DRAWN)) ? 0 : strlen(KP_UNIT_DRAWN));
}

char *kp_line_title(const struct kp_display *d, const struct kp_line *l)
{
    if (d->naming != KP_NAMING_BOTH || !strcmp(l->label, l->name))
        return strdup(d->naming == KP_NAMING_NAME ? l->name : l->label);
    return kp_asprintf("%s (%s)", l->label, l->name);
}

char *kp_line_full_title(const struct kp_display *d, const struct kp_line *l)
{
    char *title = kp_line_title(d, l), *full;
    if (!title || l->kind != KP_ROW_ITEM || !*l->group || d->naming == KP_NAMING_NAME)
        return title;
    full = kp_asprintf("%s: %s", l->group, title);
    free(title);
    return full;
}

size_t kp_rows_before_bodies(const struct kp_section *s, enum kp_row_kind last)
{
    size_t n = 0;
    while (n < s->n_rows && s->rows[n].kind <= last)
        n++;
    return n;
}

/* --- which rows --- */

/* Returns true if a row applies. Launch and occupancy values describe one kernel; for a whole graph, values that were
 * not set do not exist. */
static bool row_applies(const struct kp_row *row, const struct kp_result *r)
{
    const struct kp_launch_info *l = &r->launch;
    if (!kp_cc_matches(row->cc, l->cc_major, l->cc_minor))
        return false;
    return l->kind == KP_WORKLOAD_KERNEL || row->source == KP_SRC_COUNTER || kp_result_find(r, row->metric);
}

/* Ranks a launch's metric: missing, a reason for having none, a value. */
static int standing(const struct kp_metric *m)
{
    return !m ? 0 : m->kind == KP_VALUE_NA ? 1 : 2;
}

/* Returns the line of the same label in the row's body, whose lines begin at `body`; other bodies have others. */
static struct kp_line *same_place(struct kp_lines *l, size_t body, const struct kp_row *row)
{
    for (size_t i = body; i < l->n; i++)
        if (l->at[i].kind == row->kind && !strcmp(l->at[i].label, row->label) && !strcmp(l->at[i].group, row->group))
            return &l->at[i];
    return NULL;
}

static int take_row(struct kp_lines *l, size_t body, const struct kp_row *row, const struct kp_result *r,
                    bool asked_for)
{
    const struct kp_metric *m = kp_result_find(r, row->metric);
    struct kp_line line = {row->kind, row->group, row->label, row->metric, m, NULL, row->unit}, *held;
    if (!row_applies(row, r) || (!m && !(asked_for && kp_row_required(row))))
        return 0;
    if (m && m->kind == KP_VALUE_NA && l->note && !strcmp(l->note, m->text))
        return 0; /* without any of them, the section disappears */
    held = same_place(l, body, row);
    if (!held)
        return kp_lines_add(l, &line);
    if (standing(m) > standing(held->metric))
        *held = line;
    return 0;
}

int kp_lines_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_view *v, bool asked_for,
                     struct kp_lines *out)
{
    int rc = 0;
    size_t body = out->n;
    out->note = v->result->launch.note;
    for (size_t i = first; !rc && i < end; i++) {
        const struct kp_row *row = &s->rows[i];
        body = row->kind == KP_ROW_BODY ? out->n : body;
        if (strncmp(row->metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)))
            rc = take_row(out, body, row, v->result, asked_for);
        else
            rc = kp_lines_of_breakdown(row->metric + strlen(KP_BREAKDOWN), v, out);
    }
    return rc;
}

/* --- constituents of throughputs --- */

const char *kp_breakdown_of(const char *metric, const struct kp_view *v, size_t *len)
{
    const struct kp_session *s = v->session;
    size_t n = strlen(metric), i = 0;
    while (i < s->n_devices && s->devices[i].ordinal != v->result->launch.device)
        i++;
    const char *line = i < s->n_devices ? s->devices[i].breakdowns : NULL;
    while (line && *line) {
        size_t whole = strcspn(line, "\n");
        if (whole > n && !strncmp(line, metric, n) && line[n] == '\t') {
            *len = whole - n - 1;
            return line + n + 1;
        }
        line += whole + (line[whole] == '\n');
    }
    return NULL;
}

/* Units whose name in a label is not their name in capitals. Facts: charts of Nsight Compute 2025.3. */
static const struct {
    const char *unit, *shown;
} unit_names[] = {{"l1tex", "L1"}, {"lts", "L2"}, {"fbpa", "DRAM"}};

static void write_unit_name(FILE *f, const char *unit, size_t len)
{
    for (size_t i = 0; i < sizeof unit_names / sizeof *unit_names; i++)
        if (strlen(unit_names[i].unit) == len && !strncmp(unit_names[i].unit, unit, len)) {
            fputs(unit_names[i].shown, f);
            return;
        }
    for (size_t i = 0; i < len; i++)
        fputc(toupper((unsigned char)unit[i]), f);
}

/* `sm__inst_executed_pipe_adu.avg.pct` -> `SM: Inst Executed Pipe Adu`; malloc'ed. */
static char *constituent_label(const char *metric)
{
    char *label = NULL;
    size_t size;
    const char *words = strstr(metric, "__");
    FILE *f = open_memstream(&label, &size);
    if (!f)
        return NULL;
    if (words) {
        write_unit_name(f, metric, (size_t)(words - metric));
        fputc(':', f);
    }
    for (const char *c = words ? words + 1 : metric; *c && *c != '.'; c++)
        if (*c == '_')
            fputc(' ', f);
        else
            fputc(c == metric || c[-1] == '_' ? toupper((unsigned char)*c) : *c, f);
    if (!kp_text_end(f, &label))
        return label;
    free(label);
    return NULL;
}

static int add_constituent(const char *name, const struct kp_view *v, struct kp_lines *out)
{
    const struct kp_metric *m = kp_result_find(v->result, name);
    if (!m || (m->kind == KP_VALUE_NA && out->note && !strcmp(out->note, m->text)))
        return 0;
    char *label = constituent_label(m->name);
    return label ? kp_lines_add(out, &(struct kp_line){KP_ROW_ITEM, "", label, m->name, m, label, NULL}) : -ENOMEM;
}

int kp_lines_of_breakdown(const char *metric, const struct kp_view *v, struct kp_lines *out)
{
    size_t len, item_len;
    const char *list = kp_breakdown_of(metric, v, &len), *item;
    char *copy = list ? strndup(list, len) : NULL;
    int rc = list && !copy ? -ENOMEM : 0;
    const char *cursor = copy;
    while (!rc && cursor && kp_list_next(&cursor, &item, &item_len)) {
        char *name = strndup(item, item_len);
        rc = name ? add_constituent(name, v, out) : -ENOMEM;
        free(name);
    }
    free(copy);
    return rc;
}
