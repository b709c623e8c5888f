#include "report/html/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"
#include "report/html/data.h"
#include "report/model/launch_names.h"
#include "report/view/launch_ranges.h"

struct kp_folded {
    struct kp_writer base;
    enum kp_folded_by by;
    struct kp_data data; /* the stacks are its strings */
    double *ns;          /* of each stack */
    size_t room;
    bool any; /* a launch has a stack, or a range */
    struct kp_launch_ranges ranges;
};

/* Writes a frame in one line; a semicolon would begin another one. A name without visible characters is replaced: tools
 * that read the file drop an empty frame. */
static void write_frame(struct kp_folded *f, FILE *to, const char *name, char end)
{
    char *copy = strdup(name);
    if (copy)
        kp_blank_controls(copy, strlen(copy));
    if (copy && !copy[strspn(copy, " ")]) {
        free(copy);
        copy = strdup(kp_range_nameless);
    }
    if (!copy) {
        f->data.rc = f->data.rc ? f->data.rc : -ENOMEM;
        return;
    }
    for (char *c = copy; (c = strchr(c, ';'));)
        *c = ':';
    fputs(copy, to);
    if (end)
        fputc(end, to);
    free(copy);
}

static void write_stack(struct kp_folded *f, FILE *to, uint64_t id)
{
    struct kp_stack stack = {0};
    if (kp_lookup_stack(f->base.out.display->lookup, id, &stack))
        stack = (struct kp_stack){0};
    f->any |= stack.n_frames > 0;
    for (size_t i = stack.n_frames; i; i--) {
        const struct kp_frame *frame = &stack.frames[i - 1];
        write_frame(f, to, *frame->function ? frame->function : kp_base_name(frame->module), ';');
    }
    kp_frames_free(&stack);
}

static void write_ranges(struct kp_folded *f, FILE *to, const struct kp_launch_info *l)
{
    struct kp_range_names names;
    int rc = kp_launch_ranges_find(&f->ranges, f->base.out.display->lookup, l, &names);
    f->data.rc = f->data.rc ? f->data.rc : rc;
    f->any |= names.n > 0;
    for (size_t i = 0; i < names.n; i++)
        write_frame(f, to, names.at[i], ';');
    free(names.at);
}

/* Adds time to the stack of that number. */
static void add_time(struct kp_folded *f, size_t at, double ns)
{
    if (f->data.rc)
        return;
    if (at >= f->room) {
        size_t room = 2 * at + 64;
        double *grown = realloc(f->ns, room * sizeof *grown);
        if (!grown) {
            f->data.rc = -ENOMEM;
            return;
        }
        memset(&grown[f->room], 0, (room - f->room) * sizeof *grown);
        f->ns = grown;
        f->room = room;
    }
    f->ns[at] += ns;
}

static void take_listed(struct kp_writer *w, const struct kp_shown *s, bool full)
{
    struct kp_folded *f = (struct kp_folded *)w;
    const struct kp_result *r = s->view.result;
    struct kp_draft line;
    double ns = 0;
    (void)full;
    if (kp_draft_begin(&f->data, &line)) {
        if (f->by == KP_FOLDED_STACK)
            write_stack(f, line.to, r->launch.stack);
        else
            write_ranges(f, line.to, &r->launch);
        write_frame(f, line.to, kp_launch_name(&r->launch), '\0');
    }
    size_t at = kp_draft_add(&f->data, &line, KP_DATA_STRINGS);
    if (kp_result_mean_duration(r, &ns) && ns > 0)
        add_time(f, at, ns * (double)kp_launch_weight(&r->launch));
    w->out.rc = w->out.rc ? w->out.rc : f->data.rc;
}

/* The session has ended. */
static void account(struct kp_writer *w, const struct kp_choice *choice)
{
    (void)choice;
    kp_launch_ranges_free(&((struct kp_folded *)w)->ranges);
}

static const struct kp_writer_kind kind = {.listed = take_listed, .account = account};

struct kp_folded *kp_folded_new(enum kp_folded_by by)
{
    struct kp_folded *f = calloc(1, sizeof *f);
    if (f) {
        f->base.kind = &kind;
        f->by = by;
    }
    return f;
}

void kp_folded_free(struct kp_folded *f)
{
    if (!f)
        return;
    kp_data_free(&f->data);
    kp_launch_ranges_free(&f->ranges);
    free(f->ns);
    free(f);
}

void kp_folded_display(struct kp_display *d)
{
    d->rules = 0;
    d->grouping = KP_GROUPING_NONE;
    d->format = KP_FORMAT_TEXT;
    d->details = KP_DETAILS_HEADER;
    d->pages[0] = KP_PAGE_DETAILS;
    d->n_pages = 1;
    d->from_records = true;
    d->brief_above = 1; /* the list of all is enough */
    d->brief_lines = 0;
    d->brief_most = 1;
}

struct kp_writer *kp_folded_writer(struct kp_folded *f)
{
    return &f->base;
}

const char *kp_folded_lacks(const struct kp_folded *f)
{
    if (f->any)
        return NULL;
    return f->by == KP_FOLDED_STACK
               ? "no launch has a call stack, so each line is a kernel alone: run the program with --call-stack=native"
               : "no launch has an NVTX range, so each line is a kernel alone: run the program with --nvtx, or with "
                 "--timeline";
}

int kp_folded_print(const struct kp_folded *f, FILE *to)
{
    locale_t before = kp_plain_begin();
    for (size_t i = 0; i < f->data.parts[KP_DATA_STRINGS].n && i < f->room; i++) {
        char number[KP_PLAIN_MAX];
        if (!(f->ns[i] > 0))
            continue;
        kp_plain_real(f->ns[i], number);
        fprintf(to, "%s %s\n", f->data.parts[KP_DATA_STRINGS].texts[i], number);
    }
    kp_plain_end(before);
    return ferror(to) ? -EIO : 0;
}
