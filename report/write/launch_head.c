#include "report/write/launch_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"
#include "report/model/launch_names.h"
#include "report/define/units.h"
#include "report/write/stack_block.h"

static void print_note(struct kp_out *o, const char *note, bool quick)
{
    static const char counted[] = "; counted in one pass, with the caches as they were";
    char *text;
    if (!kp_out_has(o, asprintf(&text, "%s%s", note, quick ? counted : "") < 0 ? NULL : text))
        return;
    kp_out_wrapped(o, "    Note: ", text);
    free(text);
}

void kp_write_launch_name(struct kp_out *o, const struct kp_launch_info *l)
{
    const char *name = kp_launch_name(l);
    kp_out_one_line(o, name, strlen(name));
}

enum { SHAPE_MAX = 80 };

/* Writes " (grid)x(block)"; nothing for a graph. */
static void write_shape(const struct kp_launch_info *l, char out[SHAPE_MAX])
{
    *out = '\0';
    if (l->kind == KP_WORKLOAD_KERNEL)
        snprintf(out, SHAPE_MAX, " (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")x(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")",
                 l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
}

void kp_write_launch_line(struct kp_out *o, const struct kp_launch_info *l)
{
    char shape[SHAPE_MAX];
    write_shape(l, shape);
    kp_write_launch_name(o, l);
    kp_out_print(o, "%s", shape);
}

/* Prints the header line. If it is wider than the terminal, the place of the launch gets a line of its
 * own. */
static void print_launch_line(struct kp_out *o, const struct kp_launch_info *l)
{
    char shape[SHAPE_MAX], place[2 * SHAPE_MAX];
    write_shape(l, shape);
    int len = snprintf(place, sizeof place, "Context %" PRIu64 ", ", l->context_id);
    if (l->kind != KP_WORKLOAD_RANGE) /* has several */
        len += snprintf(place + len, sizeof place - (size_t)len, "Stream %" PRIu64 ", ", l->stream_id);
    len +=
        snprintf(place + len, sizeof place - (size_t)len, "Device %d, CC %d.%d", l->device, l->cc_major, l->cc_minor);
    if (l->graph_number)
        len += snprintf(place + len, sizeof place - (size_t)len, ", Graph %" PRIu32 ", Node %" PRIu32, l->graph_number,
                        l->node);
    size_t all = 2 + kp_width(kp_launch_name(l)) + strlen(shape) + 2 + (size_t)len;
    kp_out_text(o, "  ", 2);
    kp_write_launch_line(o, l);
    kp_out_print(o, ",");
    bool broken = kp_out_breaks(o) && all > kp_out_wide(o);
    kp_out_text(o, broken ? "\n      " : " ", broken ? 7 : 1);
    kp_out_print(o, "%s", place);
    kp_out_paint(o, KP_PAINT_NONE);
    kp_out_text(o, "\n", 1);
}

/* Says what was counted of launches. Without a pass they were timed by activity records. */
static void write_counted(const struct kp_launch_info *l, char out[128])
{
    const char *were = l->counted == 1 ? "was" : "were";
    if (!l->passes)
        snprintf(out, 128, "%s timed without counters", were);
    else if (l->groups == 1)
        snprintf(out, 128, "%s counted, all for one group of counters", were);
    else
        snprintf(out, 128, "%s counted, each for one of %" PRIu32 " groups of counters", were, l->groups);
}

enum { RECORDED_MAX = 128 + KP_NUMBER_MAX + KP_UNIT_MAX };

/* Writes how long the launches took that activity records have timed; nothing without records. */
static void write_recorded(const struct kp_launch_info *l, char out[RECORDED_MAX])
{
    char time[KP_NUMBER_MAX + KP_UNIT_MAX];
    *out = '\0';
    if (!l->recorded)
        return;
    kp_format_quantity(l->recorded_ns, "ns", false, time);
    snprintf(out, RECORDED_MAX, "; records have the times of %" PRIu64 ", %s in total", l->recorded, time);
}

/* Says how many launches that passed unmeasured the launch stands for, and how their times are known. */
static void print_passed(struct kp_out *o, const struct kp_launch_info *l)
{
    char *text, recorded[RECORDED_MAX];
    if (l->groups || l->alike < 2)
        return;
    write_recorded(l, recorded);
    if (kp_out_has(o, asprintf(&text,
                               "this one and %" PRIu64 " of this kernel and shape that passed unmeasured, within the "
                               "budget%s",
                               l->alike - 1,
                               *recorded ? recorded : "; their times were not recorded, and sums take this one's") < 0
                          ? NULL
                          : text))
        kp_out_wrapped(o, "    Launches: ", text);
    free(text);
}

/* Says what the values of a rotation are. */
static void print_rotation(struct kp_out *o, const struct kp_launch_info *l)
{
    char *text, counted[128], recorded[RECORDED_MAX];
    if (!l->groups)
        return;
    write_counted(l, counted);
    write_recorded(l, recorded);
    if (kp_out_has(o, asprintf(&text,
                               "%" PRIu64 " %s of this kernel and shape; %" PRIu64 " %s, with the caches as they "
                               "were; values are means; +- is the 95 %% interval for the mean of another run%s",
                               l->alike, l->alike == 1 ? "launch" : "launches", l->counted, counted, recorded) < 0
                          ? NULL
                          : text))
        kp_out_wrapped(o, "    Rotation: ", text);
    free(text);
}

void kp_write_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick)
{
    kp_out_paint(o, KP_PAINT_LAUNCH);
    print_launch_line(o, l);
    if (o->display && o->display->face == KP_FACE_NCU)
        kp_out_print(o, "    Warning: Collected without fixed GPU frequencies; values may differ from run to run.\n");
    kp_render_nvtx(o, &l->nvtx);
    kp_render_stack(o, l->stack);
    print_rotation(o, l);
    print_passed(o, l);
    if (l->note)
        print_note(o, l->note, quick && !l->groups);
}
