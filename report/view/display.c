#include "report/view/display.h"

#include <stdlib.h>
#include <string.h>

#include "report/judge/rules.h"
#include "report/options/options.h"
#include "base/text.h"

struct kp_display kp_display_of(const struct kp_options *o)
{
    struct kp_display d = {0};
    char *err = NULL;
    d.details = !strcmp(o->print_details, "all")    ? KP_DETAILS_ALL
                : !strcmp(o->print_details, "body") ? KP_DETAILS_BODY
                                                    : KP_DETAILS_HEADER;
    d.naming = !strcmp(o->print_metric_name, "label-name") ? KP_NAMING_BOTH
               : !strcmp(o->print_metric_name, "name")     ? KP_NAMING_NAME
                                                           : KP_NAMING_LABEL;
    d.base_units = !strcmp(o->print_units, "base");
    d.instances = !strcmp(o->print_metric_instances, "details")  ? KP_INSTANCES_DETAILS
                  : !strcmp(o->print_metric_instances, "values") ? KP_INSTANCES_VALUES
                                                                 : KP_INSTANCES_NONE;
    if (!o->apply_rules || kp_rules_select(o->rule, &d.rules, &err))
        d.rules = 0;
    d.csv_defuse = o->csv_defuse;
    d.format = o->csv ? KP_FORMAT_CSV : o->json ? KP_FORMAT_JSON : KP_FORMAT_TEXT;
    d.grouping = !strcmp(o->print_summary, "per-gpu")      ? KP_GROUPING_GPU
                 : !strcmp(o->print_summary, "per-kernel") ? KP_GROUPING_KERNEL
                 : !strcmp(o->print_summary, "per-nvtx")   ? KP_GROUPING_NVTX
                                                           : KP_GROUPING_NONE;
    d.n_pages = kp_page_ids(o->page, d.pages);
    d.trace_columns = o->trace_columns;
    d.range_names = !strcmp(o->print_nvtx_rename, "kernel");
    d.source_lines = kp_list_has(o->print_source, "cuda");
    d.source_sass = kp_list_has(o->print_source, "sass");
    d.source_folders = o->source_folders;
    free(err);
    return d;
}
