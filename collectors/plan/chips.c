#include "collectors/plan/chips.h"

#include <string.h>

const struct kp_chip kp_chips[] = {
#define KP_CHIP(name, major, minor, opens, passes) {name, major, minor},
#include "collectors/plan/chips.def"
};

const size_t kp_n_chips = sizeof(kp_chips) / sizeof(*kp_chips);

bool kp_chip_cc(const char *chip, int *major, int *minor)
{
    for (size_t i = 0; i < kp_n_chips; i++)
        if (!strcmp(kp_chips[i].name, chip)) {
            *major = kp_chips[i].major;
            *minor = kp_chips[i].minor;
            return true;
        }
    return false;
}

const char *kp_chip_only(int major, int minor)
{
    const char *only = NULL;
    for (size_t i = 0; i < kp_n_chips; i++)
        if (kp_chips[i].major == major && kp_chips[i].minor == minor) {
            if (only)
                return NULL;
            only = kp_chips[i].name;
        }
    return only;
}
