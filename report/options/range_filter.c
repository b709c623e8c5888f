#include "report/options/range_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void kp_option_numbers_free(struct kp_range_filter *f)
{
    kp_pattern_free(f->starts);
    kp_pattern_free(f->nvtx);
    *f = (struct kp_range_filter){.anew = false};
}

static int read_numbers(const char *text, size_t len, struct kp_pattern **out, char **err)
{
    char *whole = len ? kp_asprintf("regex:^(%.*s)$", (int)len, text) : NULL;
    int rc = len && !whole ? -ENOMEM : whole ? kp_pattern_new(whole, out, err) : 0;
    free(whole);
    return rc;
}

int kp_option_numbers_read(const char *value, struct kp_range_filter *out, char **err)
{
    const char *first = strchr(value, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    size_t len = first ? (size_t)(first - value) : 0;
    *out = (struct kp_range_filter){.anew = len == 3 && !strncmp(value, "yes", len)};
    *err = NULL;
    if (!second || (len && !out->anew && strncmp(value, "no:", 3) != 0))
        return kp_error(err, "'%s' is not [yes|no]:RANGES:RANGES, such as :2: or yes:1:[2-4]", value);
    int rc = read_numbers(first + 1, (size_t)(second - first - 1), &out->starts, err);
    if (!rc)
        rc = read_numbers(second + 1, strlen(second + 1), &out->nvtx, err);
    if (rc)
        kp_option_numbers_free(out);
    return rc;
}
