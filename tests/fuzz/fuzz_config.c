/* A file of options. */
#include <stdlib.h>
#include <string.h>

#include "report/config.h"
#include "report/options.h"
#include "tests/fuzz/fuzz.h"

static char set_in_environment[] = "KPROF_SET=basic", empty_in_environment[] = "KPROF_PAGE=", other[] = "HOME=/";

static void check_entries(const struct kp_config_file *c)
{
    char *env[] = {set_in_environment, empty_in_environment, other, NULL};
    char **all = kp_config_file_over(c, env);
    kp_fuzz_require(all != NULL, "no memory for an environment");
    for (size_t i = 0; i < c->n; i++) {
        kp_fuzz_require(!strncmp(c->entries[i], KP_OPTION_PREFIX, strlen(KP_OPTION_PREFIX)) &&
                            strchr(c->entries[i], '='),
                        "an entry that is none of an environment");
        kp_fuzz_require(kp_config_file_line(c, c->entries[i]) == c->lines[i], "an entry whose line is another's");
    }
    free(all);
}

/* With the options that only check text: what names files of the machine is left to the harness of options. */
static void take_options(char *path_entry)
{
    struct kp_options o;
    char *env[] = {path_entry, NULL}, *err = NULL;
    int rc = kp_options_from_env(&o, env, &err);
    kp_fuzz_outcome(rc, err);
    if (!rc)
        kp_options_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char entry[128] = "KPROF_CONFIG=";
    struct kp_config_file c;
    char *err = NULL;
    const char *path = kp_fuzz_file(data, size);
    strcpy(strchr(entry, '=') + 1, path);
    int rc = kp_config_file_read(path, &c, &err);
    kp_fuzz_outcome(rc, err);
    if (!rc)
        check_entries(&c);
    kp_config_file_free(&c);
    if (!memmem(data, size, "older", 5) && !memmem(data, size, "OLDER", 5))
        take_options(entry);
    return 0;
}
