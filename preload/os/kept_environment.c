#include "preload/os/kept_environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern char **environ;

static const char prefix[] = "KPROF_";

/* Copies: a program may write over the place where its first environment is. */
static struct {
    char *text; /* the entries, one after the other */
    size_t n;
} kept;

static bool is_option(const char *entry)
{
    return !strncmp(entry, prefix, sizeof(prefix) - 1);
}

void kp_kept_note(void)
{
    size_t size = 0;
    for (char **e = environ; e && *e; e++)
        size += is_option(*e) ? strlen(*e) + 1 : 0;
    if (!size)
        return;
    /* not malloc: a signal's handler may run now */
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    char *to = kept.text = at;
    for (char **e = environ; *e; e++)
        if (is_option(*e)) {
            to = stpcpy(to, *e) + 1;
            kept.n++;
        }
}

static size_t count(void)
{
    size_t n = 0;
    while (environ && environ[n])
        n++;
    return n;
}

/* Returns the entry for the variable that `name` begins with, up to its end or a '='; NULL if there is none. */
static char *find_entry(char *const *entries, size_t n, const char *name)
{
    size_t len = strcspn(name, "=");
    for (size_t i = 0; i < n; i++)
        if (!strncmp(entries[i], name, len) && entries[i][len] == '=')
            return entries[i];
    return NULL;
}

char **kp_kept_entries(void)
{
    size_t n = count(), all = n;
    char **list = malloc((n + kept.n + 1) * sizeof(*list)), *entry = kept.text;
    if (!list)
        return NULL;
    if (n)
        memcpy(list, environ, n * sizeof(*list));
    for (size_t i = 0; i < kept.n; i++, entry += strlen(entry) + 1)
        if (!find_entry(list, n, entry))
            list[all++] = entry;
    list[all] = NULL;
    return list;
}

const char *kp_kept_option(const char *name)
{
    char *entry = kept.text, *found = find_entry(environ, count(), name);
    for (size_t i = 0; i < kept.n && !found; i++, entry += strlen(entry) + 1)
        found = find_entry(&entry, 1, name);
    return found ? found + strlen(name) + 1 : NULL;
}
