/*
 * Finds the metrics to sample over time: those of the sections' series, and those that the user lists with
 * "pmsampling:". cupti/pm.h samples them.
 */
#ifndef KP_COLLECTORS_PROVIDERS_PM_LIST_H
#define KP_COLLECTORS_PROVIDERS_PM_LIST_H

#include "cupti/host.h"
#include "report/define/sections.h"

struct kp_pm_list {
    char **names; /* full names with suffix, each once, in the order of the sections and of the list; owned */
    size_t n;
};

/* Returns true if the sections or `metrics` (as in KPROF_METRICS) need samples on a device of that compute
 * capability. */
bool kp_providers_pm_wanted(int major, int minor, const struct kp_section *const *sections, size_t n_sections,
                            const char *metrics);

/* Lists the metrics for the chip of `host` (of kp_pm_host): those of the sections that the chip has, and all listed
 * names. kp_plan_make has already refused unknown ones. 0 and *out to kp_providers_pm_list_free; -ENOMEM. */
int kp_providers_pm_list(struct kp_host *host, int major, int minor, const struct kp_section *const *sections,
                         size_t n_sections, const char *metrics, struct kp_pm_list *out);
void kp_providers_pm_list_free(struct kp_pm_list *l);

#endif
