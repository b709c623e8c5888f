#include "report/options/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/sections.h"
#include "report/define/source.h"

/* The section that a page needs; NULL: none. */
static const char *const section_of[KP_PAGE_IDS] = {[KP_PAGE_SOURCE] = kp_source_section, [KP_PAGE_PM] = "PmSampling"};

/* --- selection of sections --- */

int kp_options_wants_page(struct kp_options *o)
{
    size_t n = o->page.n, size, found = 0;
    char *list = NULL;
    FILE *to = open_memstream(&list, &size);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (section_of[o->page.at[i]])
            fprintf(to, "%s%s", found++ ? "," : "", section_of[o->page.at[i]]);
    if (kp_text_end(to, &list)) {
        free(list);
        return -ENOMEM;
    }
    if (!found) {
        free(list);
        return 0;
    }
    free(o->section);
    o->section = list;
    if (found == n)
        *o->set = '\0';
    return 0;
}

static bool is_alone(const struct kp_choices *pages, enum kp_page_id page)
{
    for (size_t i = 0; i < pages->n; i++)
        if (pages->at[i] != page)
            return false;
    return pages->n > 0;
}

static bool quick_has(const char *metric, size_t len)
{
    const struct kp_section *quick = kp_section_quick();
    for (size_t i = 0; i < quick->n_rows; i++)
        if (strlen(quick->rows[i].metric) == len && !strncmp(quick->rows[i].metric, metric, len))
            return true;
    return false;
}

static int replace(char **text, const char *with, size_t len)
{
    char *copy = strndup(with, len);
    if (!copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

int kp_options_wants_trace(struct kp_options *o)
{
    const char *cursor = o->trace_columns, *item, *sets = kp_section_quick()->sets, *set = "";
    size_t len, set_len = 0;
    bool quick = true;
    if (!is_alone(&o->page, KP_PAGE_TRACE))
        return 0;
    while (kp_word_next(&cursor, &item, &len))
        quick &= quick_has(item, len);
    if (quick)
        return kp_list_next(&sets, &set, &set_len) ? replace(&o->set, set, set_len) : 0;
    o->only_columns = true;
    int rc = replace(&o->metrics, o->trace_columns, strlen(o->trace_columns));
    return rc ? rc : replace(&o->set, "", 0);
}

int kp_options_wants_timeline(struct kp_options *o)
{
    o->only_timeline = is_alone(&o->page, KP_PAGE_TIMELINE);
    return o->only_timeline ? replace(&o->set, "", 0) : 0;
}
