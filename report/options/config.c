#include "report/options/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small_file.h"
#include "base/text.h"
#include "report/options/options.h"

enum { LEAST_ROOM = 64 };

static const char prefix[] = KP_OPTION_PREFIX, own_name[] = KP_OPTION_PREFIX "CONFIG=";

/* Makes an entry: "launch-skip" becomes KPROF_LAUNCH_SKIP; a name with that prefix stays as it is. */
static char *entry_of(const char *name, size_t name_len, const char *value, size_t value_len)
{
    bool whole = name_len >= sizeof prefix - 1 && !memcmp(name, prefix, sizeof prefix - 1);
    char *entry;
    if (asprintf(&entry, "%s%.*s=%.*s", whole ? "" : prefix, (int)name_len, name, (int)value_len, value) < 0)
        return NULL;
    if (!whole)
        kp_option_env_spell(entry);
    return entry;
}

static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return !strncmp(a, b, len) && b[len] == '=';
}

/* A file being read. A hash table with open addressing finds the entry of a name: a file may have very many. */
struct reading {
    struct kp_config_file *c;
    size_t *slots; /* by the hash of the name: index + 1 in c->entries, 0 = free; at most half are taken */
    size_t room;   /* slots, a power of two; the arrays of c have room for half as many */
};

/* Returns the slot with the entry of the same name, or a free one. */
static size_t slot_of(const struct reading *r, const char *entry)
{
    size_t at = kp_hash(entry, strcspn(entry, "="), 0) & (r->room - 1);
    while (r->slots[at] && !same_name(r->c->entries[r->slots[at] - 1], entry))
        at = (at + 1) & (r->room - 1);
    return at;
}

static int make_room(struct reading *r)
{
    struct kp_config_file *c = r->c;
    if (2 * c->n < r->room)
        return 0;
    size_t room = r->room ? 2 * r->room : LEAST_ROOM;
    char **entries = realloc(c->entries, room / 2 * sizeof *entries);
    c->entries = entries ? entries : c->entries;
    size_t *lines = realloc(c->lines, room / 2 * sizeof *lines);
    c->lines = lines ? lines : c->lines;
    size_t *slots = calloc(room, sizeof *slots);
    if (!entries || !lines || !slots) {
        free(slots);
        return -ENOMEM;
    }
    free(r->slots);
    r->slots = slots;
    r->room = room;
    for (size_t i = 0; i < c->n; i++)
        slots[slot_of(r, c->entries[i])] = i + 1;
    return 0;
}

/* Adds the entry, and owns it from then on. */
static int add(struct reading *r, char *entry, size_t line)
{
    struct kp_config_file *c = r->c;
    if (make_room(r)) {
        free(entry);
        return -ENOMEM;
    }
    size_t *slot = &r->slots[slot_of(r, entry)];
    if (!*slot) {
        c->entries[c->n++] = NULL;
        *slot = c->n;
    }
    free(c->entries[*slot - 1]);
    c->entries[*slot - 1] = entry;
    c->lines[*slot - 1] = line;
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

static int read_line(struct reading *r, const char *text, size_t len, size_t line, char **err)
{
    size_t rest = trimmed(&text, len), name_len = 0;
    const char *name = text;
    if (!rest || *text == '#')
        return 0;
    while (name_len < rest &&
           (isalnum((unsigned char)text[name_len]) || text[name_len] == '_' || text[name_len] == '-'))
        name_len++;
    text += name_len;
    rest = trimmed(&text, rest - name_len);
    if (!name_len || !rest || *text != '=' || memchr(text, '\0', rest))
        return kp_error(err, "%s:%zu: the line is not NAME = VALUE", r->c->path, line);
    text++;
    rest = trimmed(&text, rest - 1);
    char *entry = entry_of(name, name_len, text, rest);
    if (entry && same_name(own_name, entry)) {
        free(entry);
        return kp_error(err, "%s:%zu: a file of options cannot name another", r->c->path, line);
    }
    return entry ? add(r, entry, line) : -ENOMEM;
}

static int read_lines(struct kp_config_file *c, const char *text, size_t len, char **err)
{
    struct reading r = {.c = c};
    int rc = 0;
    for (size_t line = 1; !rc && len; line++) {
        const char *end = memchr(text, '\n', len);
        size_t size = end ? (size_t)(end - text) : len, step = size + (end != NULL);
        rc = read_line(&r, text, size, line, err);
        text += step;
        len -= step;
    }
    free(r.slots);
    return rc;
}

int kp_options_file_read(const char *path, struct kp_config_file *out, char **err)
{
    size_t len;
    char *text = NULL;
    *err = NULL;
    *out = (struct kp_config_file){.path = strdup(path)};
    int rc = out->path ? kp_small_file_read(path, "the options", &text, &len, err) : -ENOMEM;
    if (!rc)
        rc = read_lines(out, text, len, err);
    free(text);
    return rc;
}

void kp_options_file_free(struct kp_config_file *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->entries[i]);
    free(c->entries);
    free(c->lines);
    free(c->path);
    *c = (struct kp_config_file){.n = 0};
}

/* Returns true if `env` sets the variable of an entry; an empty value does not count. */
static bool sets(char *const *env, const char *entry)
{
    for (; *env; env++)
        if (same_name(entry, *env) && (*env)[strcspn(*env, "=") + 1])
            return true;
    return false;
}

char **kp_options_file_over(const struct kp_config_file *c, char *const *env)
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

size_t kp_options_file_line(const struct kp_config_file *c, const char *entry)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->entries[i] == entry)
            return c->lines[i];
    return 0;
}
