/* Makes the program's NVTX load this library. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "preload/who/nvtx.h"

extern char **environ;

static bool wanted;
static const char *other;

/* Reads the environment without getenv, which some programs (shells) replace by their own function that must not run
 * before main. */
static const char *in_environment(const char *name)
{
    size_t len = strlen(name);
    for (char **entry = environ; *entry; entry++)
        if (!strncmp(*entry, name, len) && (*entry)[len] == '=')
            return *entry + len + 1;
    return NULL;
}

static void add_to_environment(char *entry)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **grown = malloc((n + 2) * sizeof(*grown));
    if (!grown)
        return;
    memcpy(grown, environ, n * sizeof(*grown));
    grown[n] = entry;
    grown[n + 1] = NULL;
    environ = grown;
}

/* Names the library as the loader already knows it, so every process that has it finds it without a search, from any
 * folder, and no other process does. */
void kp_nvtx_offer(void)
{
    if (!environ || !(wanted = kp_options_want_nvtx(environ)))
        return;
    static char entry[] =
        KP_NVTX_PATH_VARIABLE "=" KP_LIBRARY; /* writable, because a shell writes into its environment */
    const char *path = in_environment(KP_NVTX_PATH_VARIABLE), *slash = path ? strrchr(path, '/') : NULL;
    if (!path)
        add_to_environment(entry);
    else if (strcmp(slash ? slash + 1 : path, KP_LIBRARY))
        other = kp_strdup(path);
}

const char *kp_nvtx_other(void)
{
    return other;
}

bool kp_nvtx_wanted(void)
{
    return wanted;
}
