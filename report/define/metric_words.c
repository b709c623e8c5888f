#include "report/define/metric_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/source.h"

static const struct metric {
    const char *name, *words;
} metrics[] = {
#define KP_METRIC_WORDS(name, words) {name, words},
#include "report/define/metric_words.def"
};

static const char *const stalls[KP_STALL_REASONS] = {
#define KP_STALL_WORDS(reason, words) [KP_STALL_##reason] = words,
#include "report/define/metric_words.def"
};

/* Describes samples: all, or only those from cycles in which the scheduler issued nothing. */
static bool stall_words(const char *name, char *text, size_t size)
{
    for (size_t i = 0; i < KP_STALL_REASONS; i++) {
        size_t len = strlen(kp_stall_reasons[i].metric);
        if (!stalls[i] || strncmp(name, kp_stall_reasons[i].metric, len) != 0)
            continue;
        bool all = !name[len];
        if (!all && strcmp(name + len, "_not_issued") != 0)
            continue;
        snprintf(text, size, "samples of a warp that %s%s", stalls[i],
                 all ? "" : ", when its scheduler issued nothing");
        return true;
    }
    return false;
}

static int by_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct metric *)entry)->name);
}

bool kp_section_metric_words(const char *name, char *text, size_t size)
{
    if (!strncmp(name, KP_STALL_PREFIX, strlen(KP_STALL_PREFIX)))
        return stall_words(name, text, size);
    const struct metric *m = bsearch(name, metrics, sizeof metrics / sizeof *metrics, sizeof *metrics, by_name);
    if (m)
        snprintf(text, size, "%s", m->words);
    return m;
}
