/* `kprof series`: a run that tries a launch in other ways. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/console.h"
#include "report/options/options.h"

/* What a series has if the user gives nothing else. */
static const struct {
    const char *name, *value;
} defaults[] = {
    {"KPROF_LAUNCH_COUNT", "1"}, /* a launch is repeated for each variant */
    {"KPROF_PAGE", "series"},
};

/* Returns true if the environment, or the file of options that it names, sets the option. */
static bool is_given(const char *name)
{
    char *value = kp_options_value(environ, name);
    bool given = value && *value;
    free(value);
    return given;
}

int kp_main_series(void)
{
    if (!is_given("KPROF_VARY"))
        return kp_console_error(KP_EXIT_USAGE, "nothing to vary: add --vary block=64,128,256, or shared= or carveout=");
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!is_given(defaults[i].name) && setenv(defaults[i].name, defaults[i].value, 1))
            return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    return 0;
}
