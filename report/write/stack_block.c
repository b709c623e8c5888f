/* Prints call stacks below a launch's header, and groups the launches of a session by them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "report/define/units.h"
#include "report/write/stack_block.h"

/* Most frames shown of a stack (outer ones are much the same for all); most stacks in their table. */
enum { FRAMES_MAX = 20, STACKS_MAX = 20 };

/* Returns malloc'ed text; names in it may contain anything. NULL without memory. */
static char *frame_text(const struct kp_frame *f)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const char *function = f->function ? f->function : "", *file = f->file ? f->file : "";
    if (*function)
        fputs(function, to);
    else
        fprintf(to, "0x%" PRIx64, f->offset);
    if (*file && f->line)
        fprintf(to, " at %s:%" PRIu32, file, f->line);
    else if (*file)
        fprintf(to, " in %s", file);
    if (f->kind == KP_FRAME_PYTHON)
        fputs(" (Python)", to);
    else
        fprintf(to, " (%s)", f->module && *f->module ? kp_base_name(f->module) : "no module");
    fclose(to);
    if (text)
        kp_blank_controls(text, size);
    return text;
}

static void print_frames(struct kp_out *o, const struct kp_stack *s)
{
    static const char indent[] = "        ";
    size_t shown = s->n_frames > FRAMES_MAX ? FRAMES_MAX : s->n_frames;
    for (size_t i = 0; i < shown && !o->rc; i++) {
        char *text = frame_text(&s->frames[i]);
        if (kp_out_has(o, text))
            kp_out_print(o, "%s%s\n", indent, text);
        free(text);
    }
    if (shown < s->n_frames)
        kp_out_print(o, "%sand %zu outer frame%s\n", indent, s->n_frames - shown, s->n_frames - shown == 1 ? "" : "s");
}

void kp_render_stack(struct kp_out *o, uint64_t id)
{
    struct kp_stack s;
    int rc = kp_lookup_stack(o->display->lookup, id, &s);
    if (rc == -ENOMEM && !o->rc)
        o->rc = rc;
    if (rc) /* an unreadable stack must not hide everything else */
        return;
    kp_out_print(o, "    Call Stack\n");
    print_frames(o, &s);
    kp_frames_free(&s);
}

/* ---- launches by stack ---- */

int kp_write_stack_totals_add(struct kp_stack_totals *t, const struct kp_result *r)
{
    double ns = 0;
    size_t i = 0;
    if (!r->launch.stack)
        return 0;
    kp_result_duration(r, &ns);
    while (i < t->n && t->at[i].stack != r->launch.stack)
        i++;
    if (i == t->n) {
        if (!KP_ROOM(t->at, t->n))
            return -ENOMEM;
        t->at[t->n++] = (struct kp_stack_total){.stack = r->launch.stack};
    }
    t->at[i].launches++;
    t->at[i].ns += ns;
    return 0;
}

void kp_write_stack_totals_free(struct kp_stack_totals *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->at[i].text);
    free(t->at);
    *t = (struct kp_stack_totals){.n = 0};
}

/* Returns all frames as text, malloc'ed; NULL without memory. */
static char *whole_text(const struct kp_stack *s)
{
    char *text = NULL;
    size_t size;
    bool failed = false;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (size_t i = 0; i < s->n_frames && !failed; i++) {
        char *line = frame_text(&s->frames[i]);
        failed = !line || fprintf(to, "%s\n", line) < 0;
        free(line);
    }
    if (!kp_text_end(to, &text) && !failed)
        return text;
    free(text);
    return NULL;
}

/* Reads the text of stacks, leaving out unreadable ones. 0 or -ENOMEM. */
static int read_texts(const struct kp_lookup *lookup, struct kp_stack_totals *t)
{
    int rc = 0;
    for (size_t i = 0; rc != -ENOMEM && i < t->n; i++) {
        struct kp_stack s;
        rc = kp_lookup_stack(lookup, t->at[i].stack, &s);
        if (rc)
            continue;
        t->at[i].text = whole_text(&s);
        rc = t->at[i].text ? 0 : -ENOMEM;
        kp_frames_free(&s);
    }
    return rc == -ENOMEM ? rc : 0;
}

static int by_text(const void *a, const void *b)
{
    const struct kp_stack_total *x = a, *y = b;
    int order = !x->text || !y->text ? !x->text - !y->text : strcmp(x->text, y->text);
    return order ? order : (x->stack > y->stack) - (x->stack < y->stack);
}

static int by_time(const void *a, const void *b)
{
    const struct kp_stack_total *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Merges stacks with the same text, for example after loop unrolling. */
static void put_together(struct kp_stack_totals *t)
{
    size_t n = 0;
    if (t->n)
        qsort(t->at, t->n, sizeof *t->at, by_text);
    for (size_t i = 0; i < t->n; i++) {
        struct kp_stack_total *last = n ? &t->at[n - 1] : NULL;
        if (last && t->at[i].text && !strcmp(last->text, t->at[i].text)) {
            last->launches += t->at[i].launches;
            last->ns += t->at[i].ns;
            free(t->at[i].text);
        } else if (t->at[i].text) {
            t->at[n++] = t->at[i];
        }
    }
    t->n = n;
    if (n)
        qsort(t->at, n, sizeof *t->at, by_time);
}

static void print_total(struct kp_out *o, const struct kp_stack_total *t, double all)
{
    char count[KP_NUMBER_MAX], time[KP_NUMBER_MAX + KP_UNIT_MAX];
    struct kp_stack s;
    kp_format_count(t->launches, count);
    kp_out_print(o, "    %s launch%s", count, t->launches == 1 ? "" : "es");
    if (all > 0) { /* without any, no durations were collected */
        kp_format_quantity(t->ns, "ns", o->display->base_units, time);
        kp_out_print(o, ", %s (%.1f%%)", time, 100 * t->ns / all);
    }
    kp_out_print(o, "\n");
    if (kp_lookup_stack(o->display->lookup, t->stack, &s))
        return;
    print_frames(o, &s);
    kp_frames_free(&s);
}

void kp_write_stack_totals_render(struct kp_out *o, struct kp_stack_totals *t)
{
    double all = 0;
    if (!t->n)
        return;
    if (read_texts(o->display->lookup, t) && !o->rc)
        o->rc = -ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        all += t->at[i].ns;
    put_together(t);
    if (!t->n || o->rc)
        return;
    kp_out_print(o, "  Launches by Call Stack\n");
    for (size_t i = 0; i < t->n && i < STACKS_MAX && !o->rc; i++)
        print_total(o, &t->at[i], all);
    if (t->n > STACKS_MAX)
        kp_out_print(o, "    and %zu other call stack%s\n", t->n - STACKS_MAX, t->n - STACKS_MAX == 1 ? "" : "s");
    kp_out_print(o, "\n");
}
