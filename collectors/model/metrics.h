/* The properties of a metric, and a list of metrics that can be counted together.
 * Threads: shares no data. */
#ifndef KP_COLLECTORS_MODEL_METRICS_H
#define KP_COLLECTORS_MODEL_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_metric_type { KP_METRIC_COUNTER, KP_METRIC_RATIO, KP_METRIC_THROUGHPUT, KP_METRIC_TYPES };

struct kp_metric_props {
    enum kp_metric_type type;
    char unit[48];           /* base unit in the report's spelling ("ns", "%", "byte/s", "inst/cycle", "") */
    const char *description; /* owned by CUPTI */
};

/* Returns true if patched code counts the metric. KP_VENDOR: such counters share no pass with others. */
bool kp_config_is_patched_metric(const char *name);

/* A scheduled list of metrics, which configures the target side. */
struct kp_config {
    uint8_t *image;
    size_t size;
    size_t passes;
    const char **names; /* points to the caller's strings; the array is owned */
    size_t n_names;
    size_t n_more; /* names after these, which are not scheduled: the counters of the others give their values, too */
    /* If lists share an image: this list's first pass in it, and its total passes; turns 0: all passes are this
     * list's. */
    size_t turn, turns;
    bool patched; /* patched code counts another list of the image */
    /* Layout of counter data for all lists that share the image, from kp_host_layout. The first list has it, if a
     * session can count them. */
    uint8_t *layout;
    size_t layout_size;
};
/* Returns true if both have the same image. The profiler changes to another only when it is enabled again. */
bool kp_config_same(const struct kp_config *a, const struct kp_config *b);
/* Returns true if patched code counts any metric of this list, or of a list that shares its image. */
bool kp_config_patches(const struct kp_config *config);
/* Frees the data of `config` and zeroes it. */
void kp_config_free(struct kp_config *config);

#endif
