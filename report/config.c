#include "report/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

static const char prefix[] = "KPROF_", own_name[] = "KPROF_CONFIG=";

/* "launch-skip" is KPROF_LAUNCH_SKIP; a name that begins as those do stays as it is. */
static char *entry_of(const char *name, size_t name_len, const char *value, size_t value_len)
{
    size_t begin = strncmp(name, prefix, sizeof prefix - 1) ? sizeof prefix - 1 : 0;
    char *entry = malloc(begin + name_len + 1 + value_len + 1);
    if (!entry)
        return NULL;
    memcpy(entry, prefix, begin);
    for (size_t i = 0; i < name_len; i++)
        entry[begin + i] = !begin ? name[i] : name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    entry[begin + name_len] = '=';
    memcpy(entry + begin + name_len + 1, value, value_len);
    entry[begin + name_len + 1 + value_len] = '\0';
    return entry;
}

static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return !strncmp(a, b, len) && b[len] == '=';
}

/* Takes the entry over. */
static int add(struct kp_config_file *c, char *entry, size_t line)
{
    size_t i = 0;
    while (i < c->n && !same_name(c->entries[i], entry))
        i++;
    if (i == c->n) {
        char **entries = realloc(c->entries, (c->n + 1) * sizeof *entries);
        c->entries = entries ? entries : c->entries;
        size_t *lines = entries ? realloc(c->lines, (c->n + 1) * sizeof *lines) : NULL;
        c->lines = lines ? lines : c->lines;
        if (!lines) {
            free(entry);
            return -ENOMEM;
        }
        c->entries[c->n++] = NULL;
    }
    free(c->entries[i]);
    c->entries[i] = entry;
    c->lines[i] = line;
    return 0;
}

static size_t trimmed(const char **text, size_t len)
{
    while (len && isspace((unsigned char)**text))
        (*text)++, len--;
    while (len && isspace((unsigned char)(*text)[len - 1]))
        len--;
    return len;
}

static int read_line(struct kp_config_file *c, const char *text, size_t len, size_t line, char **err)
{
    size_t rest = trimmed(&text, len), name_len = 0;
    const char *name = text;
    if (!rest || *text == '#')
        return 0;
    while (name_len < rest && (isalnum((unsigned char)text[name_len]) || strchr("_-", text[name_len])))
        name_len++;
    text += name_len;
    rest = trimmed(&text, rest - name_len);
    if (!name_len || !rest || *text != '=' || memchr(text, '\0', rest))
        return kp_error(err, "%s:%zu: no line of the form NAME = VALUE", c->path, line);
    text++;
    rest = trimmed(&text, rest - 1);
    char *entry = entry_of(name, name_len, text, rest);
    if (entry && same_name(own_name, entry)) {
        free(entry);
        return kp_error(err, "%s:%zu: a file of options cannot name another", c->path, line);
    }
    return entry ? add(c, entry, line) : -ENOMEM;
}

int kp_config_file_read(const char *path, struct kp_config_file *out, char **err)
{
    FILE *from = fopen(path, "re");
    char *text = NULL;
    size_t cap = 0, line = 0;
    ssize_t len;
    int rc = 0;
    *err = NULL;
    *out = (struct kp_config_file){.path = strdup(path)};
    if (!out->path)
        rc = -ENOMEM;
    else if (!from)
        rc = kp_error(err, "cannot read the options in %s: %s", path, strerror(errno));
    while (!rc && (len = getline(&text, &cap, from)) >= 0)
        rc = read_line(out, text, (size_t)len, ++line, err);
    if (!rc && ferror(from))
        rc = kp_error(err, "cannot read the options in %s: %s", path, strerror(errno));
    free(text);
    if (from)
        fclose(from);
    return rc;
}

void kp_config_file_free(struct kp_config_file *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->entries[i]);
    free(c->entries);
    free(c->lines);
    free(c->path);
    *c = (struct kp_config_file){.n = 0};
}

/* An empty value is as good as none. */
static bool sets(char *const *env, const char *entry)
{
    for (; *env; env++)
        if (same_name(entry, *env) && (*env)[strcspn(*env, "=") + 1])
            return true;
    return false;
}

char **kp_config_file_over(const struct kp_config_file *c, char *const *env)
{
    size_t n = 0;
    while (env[n])
        n++;
    char **all = malloc((n + c->n + 1) * sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, env, n * sizeof *all);
    for (size_t i = 0; i < c->n; i++)
        if (!sets(env, c->entries[i]))
            all[n++] = c->entries[i];
    all[n] = NULL;
    return all;
}

size_t kp_config_file_line(const struct kp_config_file *c, const char *entry)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->entries[i] == entry)
            return c->lines[i];
    return 0;
}
