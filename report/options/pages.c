#include "report/options/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/sections.h"
#include "report/define/source.h"
#include "report/options/options.h"
#include "base/text.h"

static const struct {
    const char *name;
    const char *section; /* without which it has nothing to show; NULL: none */
} rows[KP_PAGE_IDS] = {
    [KP_PAGE_DETAILS] = {"details", NULL}, [KP_PAGE_RAW] = {"raw", NULL},
    [KP_PAGE_SESSION] = {"session", NULL}, [KP_PAGE_SUMMARY] = {"summary", NULL},
    [KP_PAGE_TRACE] = {"trace", NULL},     [KP_PAGE_SOURCE] = {"source", kp_source_section},
    [KP_PAGE_PM] = {"pm", "PmSampling"},
};

const char *kp_page_name(enum kp_page_id page)
{
    return rows[page].name;
}

size_t kp_page_ids(const char *list, enum kp_page_id out[KP_PAGES_MAX])
{
    const char *item;
    size_t len, n = 0;
    while (n < KP_PAGES_MAX && kp_list_next(&list, &item, &len))
        for (size_t i = 0; i < KP_PAGE_IDS; i++)
            if (strlen(rows[i].name) == len && !strncmp(rows[i].name, item, len))
                out[n++] = (enum kp_page_id)i;
    return n;
}

/* --- what is to be collected --- */

int kp_page_wants(struct kp_options *o)
{
    enum kp_page_id ids[KP_PAGES_MAX];
    size_t n = kp_page_ids(o->page, ids), size, found = 0;
    char *list = NULL;
    FILE *to = open_memstream(&list, &size);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (rows[ids[i]].section)
            fprintf(to, "%s%s", found++ ? "," : "", rows[ids[i]].section);
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

static bool is_alone(const char *pages)
{
    enum kp_page_id ids[KP_PAGES_MAX];
    size_t n = kp_page_ids(pages, ids);
    for (size_t i = 0; i < n; i++)
        if (ids[i] != KP_PAGE_TRACE)
            return false;
    return n > 0;
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

int kp_trace_wants(struct kp_options *o)
{
    const char *cursor = o->trace_columns, *item, *sets = kp_section_quick()->sets, *set = "";
    size_t len, set_len = 0;
    bool quick = true;
    if (!is_alone(o->page))
        return 0;
    while (kp_word_next(&cursor, &item, &len))
        quick &= quick_has(item, len);
    if (quick)
        return kp_list_next(&sets, &set, &set_len) ? replace(&o->set, set, set_len) : 0;
    int rc = replace(&o->metrics, o->trace_columns, strlen(o->trace_columns));
    return rc ? rc : replace(&o->set, "", 0);
}
