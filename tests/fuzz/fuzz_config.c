/* A file of options: its lines, and now and then as a file, with what it sets. */
#include "report/options/config.c"

#include "tests/fuzz/fuzz.h"

/* Reading all options takes as long as many files, and is done with one size in … */
enum { TAKEN = 16 };

static char set_in_environment[] = "KPROF_SET=basic", empty_in_environment[] = "KPROF_PAGE=", other[] = "HOME=/";

static void check_entries(const struct kp_config_file *c)
{
    char *env[] = {set_in_environment, empty_in_environment, other, NULL};
    char **all = kp_options_file_over(c, env);
    kp_fuzz_require(all != NULL, "no memory for an environment");
    for (size_t i = 0; i < c->n; i++) {
        kp_fuzz_require(!strncmp(c->entries[i], KP_OPTION_PREFIX, strlen(KP_OPTION_PREFIX)) &&
                            strchr(c->entries[i], '='),
                        "an entry that is none of an environment");
        kp_fuzz_require(kp_options_file_line(c, c->entries[i]) == c->lines[i], "an entry whose line is another's");
    }
    free(all);
}

/* The whole way of a file. What names files of the machine is no part of the input. */
static void take_file(const uint8_t *data, size_t size)
{
    static char entry[128];
    struct kp_options o;
    char *env[] = {entry, NULL}, *err = NULL;
    snprintf(entry, sizeof entry, "%s%s", own_name, kp_fuzz_file(data, size));
    int rc = kp_options_from_env(&o, env, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc)
        kp_options_free(&o);
}

static bool names_folder(const uint8_t *data, size_t size)
{
    return memmem(data, size, "older", 5) || memmem(data, size, "OLDER", 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "x", *err = NULL;
    uint8_t *text = kp_fuzz_bytes(data, size);
    struct kp_config_file c = {.path = path};
    int rc = read_lines(&c, (const char *)text, size, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc)
        check_entries(&c);
    c.path = NULL;
    kp_options_file_free(&c);
    if (size % TAKEN == 0 && !names_folder(data, size))
        take_file(data, size);
    free(text);
    return 0;
}
