#include "report/view/display.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "report/define/units.h"
#include "report/judge/rules.h"
#include "report/options/options.h"

/* What a summary of text lists at most: kernels twice. With what stands around them, this is one screen. */
enum { TOP_KERNELS = 15, TOP_RANGES = 8, SCREEN = 60 };
/* What anyone reads to the end. */
enum { BRIEF_LINES = 200 };

static size_t top_of(const struct kp_options *o, size_t of_text)
{
    if (o->top != KP_OPTION_AUTO)
        return (size_t)o->top;
    return o->csv || o->json ? 0 : of_text;
}

struct kp_display kp_display_of(const struct kp_options *o)
{
    struct kp_display d = {0};
    char *err = NULL;
    d.face = o->face;
    d.details = o->print_details;
    d.naming = o->print_metric_name;
    d.base_units = o->print_units == KP_SCALING_BASE;
    d.decimals = o->print_fp;
    d.name_as = o->print_kernel_base;
    d.instances = o->print_metric_instances;
    if (!o->apply_rules || kp_rules_select(o->rule, &d.rules, &err))
        d.rules = 0;
    d.format = o->csv ? KP_FORMAT_CSV : o->json ? KP_FORMAT_JSON : KP_FORMAT_TEXT;
    d.grouping = o->print_summary;
    for (d.n_pages = 0; d.n_pages < o->page.n; d.n_pages++)
        d.pages[d.n_pages] = (enum kp_page_id)o->page.at[d.n_pages];
    d.from_records = !o->json && (d.grouping || kp_choices_has(&o->page, KP_PAGE_SUMMARY));
    d.trace_columns = o->trace_columns;
    d.range_names = o->print_nvtx_rename == KP_NVTX_RENAME_KERNEL;
    d.source_lines = kp_choices_has(&o->print_source, KP_SOURCE_LINES);
    d.source_sass = kp_choices_has(&o->print_source, KP_SOURCE_SASS);
    d.source_ptx = kp_choices_has(&o->print_source, KP_SOURCE_PTX);
    d.source_folders = o->source_folders;
    d.sort = o->sort;
    d.top = top_of(o, TOP_KERNELS);
    d.top_ranges = top_of(o, TOP_RANGES);
    d.screen = o->top == KP_OPTION_AUTO ? SCREEN : 0;
    d.brief_above = o->as_it_comes ? o->brief_above : 0;
    d.brief_lines = d.brief_above ? BRIEF_LINES : 0;
    free(err);
    return d;
}

bool kp_display_shows(const struct kp_display *d, enum kp_page_id page)
{
    bool found = !d->n_pages && page == KP_PAGE_DETAILS;
    for (size_t i = 0; i < d->n_pages; i++)
        found |= d->pages[i] == page;
    return found;
}

/* Returns true if the locale of the environment separates thousands; the process may have another one. */
static bool has_separator(void)
{
    locale_t l = newlocale(LC_NUMERIC_MASK, "", (locale_t)0);
    bool has = l && *nl_langinfo_l(THOUSEP, l);
    if (l)
        freelocale(l);
    return has;
}

void kp_display_fit(struct kp_display *d, const struct kp_options *o, int fd)
{
    bool as_ncu = o->face == KP_FACE_NCU; /* which breaks no line, and has no colours */
    kp_format_separated(!as_ncu || has_separator());
    d->width = as_ncu ? 0 : kp_terminal_width(fd);
    d->colors = o->color == KP_COLOR_AUTO ? !as_ncu && kp_terminal_has_colors(fd) : o->color == KP_COLOR_ALWAYS;
}
