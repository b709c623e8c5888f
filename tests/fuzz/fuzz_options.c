/* The value of an option, whose row in options.def is the first byte; it is checked and taken as from the environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/options/options.h"
#include "tests/fuzz/fuzz.h"

/* Values are checked each time; reading all options takes as long as many checks, and is done with one size in … */
enum { TAKEN = 16 };

/* Files and folders of the machine are no part of the input. */
static bool reads_files(const struct kp_option *row)
{
    return row->kind == KP_OPT_FILE || row->kind == KP_OPT_FOLDER;
}

static void take(const struct kp_option *row, const char *value, int checked)
{
    struct kp_options o;
    char name[KP_OPTION_NAME_MAX], *entry, *err = NULL;
    kp_option_env_name(row, name);
    kp_fuzz_require(asprintf(&entry, "%s=%s", name, value) > 0, "no memory for an entry");
    char *env[] = {entry, NULL};
    int rc = kp_options_from_env(&o, env, &err);
    kp_fuzz_outcome(rc, &err);
    kp_fuzz_require(rc || !checked, "a value is refused first and taken then");
    kp_options_want_nvtx(env);
    if (!rc)
        kp_options_free(&o);
    free(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    if (!size)
        return 0;
    const struct kp_option *row = &rows[data[0] % n];
    char *value = kp_fuzz_text(data + 1, size - 1), *err = NULL;
    if (!reads_files(row)) {
        int rc = kp_option_check(row, row->flag, value, &err);
        kp_fuzz_outcome(rc, &err);
        if (size % TAKEN == 0)
            take(row, value, rc);
    }
    free(value);
    return 0;
}
