#include "report/options/ncu.h"

#include <string.h>

static const struct kp_ncu_option options[] = {
#define KP_NCU(flag, letter, how, values, text) {flag, letter, KP_NCU_##how, values, text},
#include "report/options/ncu.def"
};

enum { OPTIONS = sizeof options / sizeof *options };

const struct kp_ncu_option *kp_ncu_options(size_t *n)
{
    *n = OPTIONS;
    return options;
}

const struct kp_ncu_option *kp_ncu_option(const char *flag)
{
    size_t i = 0;
    while (i < OPTIONS && strcmp(options[i].flag, flag) != 0)
        i++;
    return i < OPTIONS ? &options[i] : NULL;
}

static const char *instead(const struct kp_ncu_option *o)
{
    return o && o->how != KP_NCU_SAME ? o->text : NULL;
}

const char *kp_ncu_instead(const char *flag)
{
    return instead(kp_ncu_option(flag));
}

const char *kp_ncu_instead_of_letter(int letter)
{
    size_t i = 0;
    while (i < OPTIONS && options[i].letter != letter)
        i++;
    return letter && i < OPTIONS ? instead(&options[i]) : NULL;
}
