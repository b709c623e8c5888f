#include "collectors/providers/tables.h"

#include "cupti/chosen.h"
#include "cupti/host.h"
#include "cupti/pm.h"

int kp_tables_open(const struct kp_cupti *c, enum kp_tables which, const char *chip, const uint8_t *availability,
                   struct kp_host **out)
{
    return which == KP_TABLES_SAMPLED ? kp_pm_host(c, chip, NULL, out) : kp_host_open(c, chip, availability, out);
}

void kp_tables_close(struct kp_host *h)
{
    kp_host_close(h);
}

int kp_tables_metric(struct kp_host *h, const char *name, struct kp_metric_props *out)
{
    return kp_host_metric(h, name, out);
}

int kp_tables_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n)
{
    return kp_host_names(h, type, names, n);
}

int kp_tables_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                       size_t *n)
{
    return kp_host_suffixes(h, type, name, suffixes, n);
}

int kp_tables_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n)
{
    return kp_host_constituents(h, name, names, n);
}

int kp_tables_chips(const struct kp_cupti *c, const char *const **chips, size_t *n)
{
    return kp_host_chips(c, chips, n);
}

int kp_tables_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                       const char *const *names, size_t n, struct kp_config *out)
{
    return kp_host_schedule(c, chip, availability, names, n, out);
}

int kp_tables_schedule_kept(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                            const char *const *names, size_t n, struct kp_config *out, struct kp_host **kept)
{
    return kp_host_schedule_kept(c, chip, availability, names, n, out, kept);
}

bool kp_tables_choose(const struct kp_cupti *c)
{
    return kp_chosen_available(c);
}

int kp_tables_layout(struct kp_host *h, const struct kp_config *lists, size_t n, uint8_t **layout, size_t *size)
{
    return kp_host_layout(h, lists, n, layout, size);
}

int kp_tables_schedule_turns(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                             struct kp_config *lists, size_t n, struct kp_host *first, size_t *good)
{
    return kp_host_schedule_turns(c, chip, availability, lists, n, first, good);
}

int kp_tables_fit(struct kp_host *h, const char *const *names, size_t n, bool *fit)
{
    return kp_host_fits_pass(h, names, n, fit);
}
