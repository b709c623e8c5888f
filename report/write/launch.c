#include "report/write/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/launch_names.h"
#include "report/write/stack.h"

static void print_note(struct kp_out *o, const char *note, bool quick)
{
    static const char counted[] = "; counted in one pass, with the caches as they were";
    char *text;
    if (!kp_out_has(o, asprintf(&text, "%s%s", note, quick ? counted : "") < 0 ? NULL : text))
        return;
    kp_out_wrapped(o, "    Note: ", text);
    free(text);
}

void kp_launch_print_name(struct kp_out *o, const struct kp_launch_info *l)
{
    const char *name = kp_launch_name(l);
    kp_out_text(o, "  ", 2);
    kp_out_one_line(o, name, strlen(name));
}

void kp_launch_print(struct kp_out *o, const struct kp_launch_info *l)
{
    kp_launch_print_name(o, l);
    if (l->kind == KP_WORKLOAD_KERNEL)
        kp_out_print(o, " (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")x(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", l->grid[0],
                     l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
}

static void print_launch_line(struct kp_out *o, const struct kp_launch_info *l)
{
    kp_launch_print(o, l);
    kp_out_print(o, ", Context %" PRIu64 ", Stream %" PRIu64 ", Device %d, CC %d.%d\n", l->context_id, l->stream_id,
                 l->device, l->cc_major, l->cc_minor);
}

void kp_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick)
{
    print_launch_line(o, l);
    kp_render_nvtx(o, &l->nvtx);
    kp_render_stack(o, l->stack);
    if (l->note)
        print_note(o, l->note, quick);
}
