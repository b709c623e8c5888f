#include "report/write/csv_launch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/model/launch_names.h"
#include "report/write/cells.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const launch_headings[] = {"Kernel Name", "Context", "Stream", "Block Size",
                                              "Grid Size",   "Device",  "CC"};
/* Facts: the columns of `ncu --csv --nvtx`, with the fields of each range, and the text for unset ones. */
static const char *const nvtx_headings[] = {"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
                                            "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"};
static const char default_domain[] = "<default domain>", not_set[] = "none";

void kp_write_csv_process_headings(struct kp_csv *c)
{
    static const char *const process_headings[] = {"Process ID", "Process Name", "Host Name"};
    kp_csv_fields(c, process_headings, COUNT(process_headings));
}

void kp_write_csv_process(struct kp_csv *c, const struct kp_display *d, const struct kp_session *s)
{
    kp_csv_formatted(c, "%" PRIu64, s->pid);
    kp_csv_field(c, kp_write_process_name(s));
    kp_csv_field(c, kp_write_host(d, s));
}

void kp_write_csv_launch_headings(struct kp_csv *c, bool nvtx)
{
    kp_csv_field(c, "ID");
    kp_write_csv_process_headings(c);
    if (nvtx)
        kp_csv_fields(c, nvtx_headings, COUNT(nvtx_headings));
    kp_csv_fields(c, launch_headings, COUNT(launch_headings));
}

/* Returns the smallest NVTX type that surely holds the number: the original type is not stored. */
static const char *payload_type(const char *payload)
{
    if (!*payload)
        return not_set;
    if (payload[strspn(payload, "-0123456789")])
        return "DOUBLE";
    return *payload == '-' ? "INT64" : "UNSIGNED_INT64";
}

/* Writes a range; colours are not stored, and the message is the range's name. */
static void write_range(FILE *to, const struct kp_nvtx_range *r)
{
    fprintf(to, "%s:%s:%s:%s:%s:%s:%s:%s", *r->domain ? r->domain : default_domain, r->name, payload_type(r->payload),
            *r->payload ? r->payload : not_set, not_set, not_set, not_set, not_set);
}

/* Writes each thread's number followed by its stack. */
static void write_stack_fields(FILE *to, const struct kp_nvtx *n)
{
    const struct kp_nvtx_range *before = NULL;
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (r->kind != KP_NVTX_PUSH_POP)
            continue;
        if (!before || before->thread != r->thread)
            fprintf(to, "%" PRIu64 " ", r->thread);
        fputs(" \"", to);
        write_range(to, r);
        fputs("\" ", to);
        before = r;
    }
}

/* Writes start-end ranges, numbered from the oldest around the launch. */
static void write_started(FILE *to, const struct kp_nvtx *n)
{
    unsigned id = 0;
    for (size_t i = 0; i < n->n_ranges; i++) {
        if (n->ranges[i].kind != KP_NVTX_START_END)
            continue;
        fprintf(to, " \"%u:", id++);
        write_range(to, &n->ranges[i]);
        fputs("\" ", to);
    }
}

static int write_nvtx(struct kp_csv *c, const struct kp_nvtx *n)
{
    void (*const columns[COUNT(nvtx_headings)])(FILE * to, const struct kp_nvtx *n) = {write_stack_fields,
                                                                                       write_started};
    for (size_t i = 0; i < COUNT(columns); i++) {
        char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        if (!to)
            return -ENOMEM;
        columns[i](to, n);
        bool failed = kp_text_end(to, &text);
        kp_csv_field(c, text);
        free(text);
        if (failed)
            return -ENOMEM;
    }
    return 0;
}

static void write_size(struct kp_csv *c, const struct kp_launch_info *l, const uint32_t size[3])
{
    if (l->kind == KP_WORKLOAD_KERNEL)
        kp_csv_formatted(c, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", size[0], size[1], size[2]);
    else
        kp_csv_field(c, "");
}

int kp_write_csv_launch(struct kp_csv *c, const struct kp_display *d, const struct kp_session *s,
                        const struct kp_launch_info *l, const char *name, bool nvtx)
{
    kp_csv_formatted(c, "%" PRIu64, l->id);
    kp_write_csv_process(c, d, s);
    int rc = nvtx ? write_nvtx(c, &l->nvtx) : 0;
    kp_csv_field(c, name);
    kp_csv_formatted(c, "%" PRIu64, l->context_id);
    kp_csv_formatted(c, "%" PRIu64, l->stream_id);
    write_size(c, l, l->block);
    write_size(c, l, l->grid);
    kp_csv_formatted(c, "%d", l->device);
    kp_csv_formatted(c, "%d.%d", l->cc_major, l->cc_minor);
    return rc;
}
