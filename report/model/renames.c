#include "report/model/renames.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pattern.h"
#include "base/room.h"
#include "base/small_file.h"
#include "base/text.h"
#include "report/model/model.h"

struct rename {
    struct kp_pattern *original;
    char *renamed;
};

struct renames {
    struct rename *at;
    size_t n;
};

static struct renames loaded;

static void drop(struct renames *r)
{
    for (size_t i = 0; i < r->n; i++) {
        kp_pattern_free(r->at[i].original);
        free(r->at[i].renamed);
    }
    free(r->at);
    *r = (struct renames){0};
}

/* A file being read. */
struct reading {
    const char *path;
    size_t line;
    char *original; /* waits for its new name; owned */
    struct renames found;
};

static int bad_line(const struct reading *r, const char *why, char **err)
{
    return kp_error(err, "%s:%zu: %s", r->path, r->line, why);
}

/* --- values --- */

/* Copies what stands between the quotes. NULL without memory or without an end; *whole: there was an end. */
static char *unquoted(const char *text, bool *whole)
{
    char quote = *text++, *out = malloc(strlen(text) + 1), *to = out;
    *whole = false;
    if (!out)
        return NULL;
    for (; *text && !*whole; text++) {
        bool doubled = quote == '\'' && text[0] == '\'' && text[1] == '\'';
        bool escaped = quote == '"' && text[0] == '\\' && text[1];
        text += doubled || escaped;
        *whole = *text == quote && !doubled && !escaped;
        if (!*whole)
            *to++ = *text;
    }
    *to = '\0';
    return out;
}

/* Copies a value as it stands, up to a comment. */
static char *plain(const char *text)
{
    const char *comment = strstr(text, " #");
    size_t len = comment ? (size_t)(comment - text) : strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return strndup(text, len);
}

/* Reads the value after a key. */
static int read_value(const struct reading *r, const char *text, char **out, char **err)
{
    bool is_quoted, whole = true;
    text += strspn(text, " \t");
    is_quoted = *text == '\'' || *text == '"';
    *out = is_quoted ? unquoted(text, &whole) : plain(text);
    if (!*out)
        return -ENOMEM;
    if (whole && **out)
        return 0;
    free(*out);
    *out = NULL;
    return bad_line(r, whole ? "a name is missing after the ':'" : "the quote has no end on this line", err);
}

/* --- pairs --- */

static int take_original(struct reading *r, const char *text, char **err)
{
    if (r->original)
        return bad_line(r, "the Original before it has no Renamed", err);
    return read_value(r, text, &r->original, err);
}

static int take_renamed(struct reading *r, const char *text, char **err)
{
    struct rename one = {0};
    char *why = NULL;
    if (!r->original)
        return bad_line(r, "this Renamed has no Original before it", err);
    int rc = KP_ROOM(r->found.at, r->found.n) ? 0 : -ENOMEM;
    if (!rc)
        rc = read_value(r, text, &one.renamed, err);
    if (!rc && (rc = kp_pattern_new(r->original, &one.original, &why)) == -EINVAL)
        bad_line(r, why, err);
    free(why);
    if (rc) {
        free(one.renamed);
        return rc;
    }
    r->found.at[r->found.n++] = one;
    free(r->original);
    r->original = NULL;
    return 0;
}

static const struct key {
    const char *word;
    int (*take)(struct reading *r, const char *text, char **err);
} keys[] = {{"Original:", take_original}, {"Renamed:", take_renamed}};

static int read_line(struct reading *r, const char *text, char **err)
{
    text += strspn(text, "- \t\r\n"); /* dashes of lists, and of a document's begin */
    if (!*text || *text == '#')
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strncasecmp(text, keys[i].word, strlen(keys[i].word)))
            return keys[i].take(r, text + strlen(keys[i].word), err);
    return bad_line(r, "neither 'Original: NAME' nor 'Renamed: NAME'", err);
}

static int read_text(struct reading *r, char *text, char **err)
{
    int rc = 0;
    while (!rc && *text) {
        size_t len = strcspn(text, "\n");
        char *next = text + len + (text[len] == '\n');
        text[len - (len && text[len - 1] == '\r')] = text[len] = '\0';
        r->line++;
        rc = read_line(r, text, err);
        text = next;
    }
    return rc || !r->original ? rc : bad_line(r, "the last Original has no Renamed", err);
}

static int read_path(struct reading *r, char **err)
{
    char *text, *why = NULL;
    size_t len;
    int rc = kp_small_file_read(r->path, "the names", &text, &len, &why);
    if (!rc)
        rc = read_text(r, text, err);
    else if (why)
        rc = kp_error(err, "%s; name a file, or " KP_RENAMES_OFF, why);
    free(text);
    free(why);
    return rc;
}

char *kp_renames_path(const char *value)
{
    static const char name[] = KP_RENAMES_FILE;
    const char *home = getenv("HOME");
    if (!*value || !strcmp(value, KP_RENAMES_OFF))
        return kp_strdup(value);
    if (strcmp(value, KP_RENAMES_ON) != 0)
        return realpath(value, NULL);
    char *here = realpath(name, NULL);
    char *there = here ? NULL : kp_asprintf("%s/.config/NVIDIA Corporation/%s", home ? home : "", name);
    char *found = here ? here : there ? realpath(there, NULL) : NULL;
    free(there);
    return found ? found : kp_strdup(KP_RENAMES_OFF);
}

int kp_renames_load(const char *value, char **err)
{
    char *path = strcmp(value, KP_RENAMES_ON) ? NULL : kp_renames_path(value);
    struct reading r = {.path = path ? path : value};
    int rc = strcmp(r.path, KP_RENAMES_OFF) ? read_path(&r, err) : 0;
    free(path);
    free(r.original);
    if (rc) {
        drop(&r.found);
        return rc;
    }
    drop(&loaded);
    loaded = r.found;
    return 0;
}

const char *kp_renames_find(const char *demangled)
{
    for (size_t i = 0; i < loaded.n; i++)
        if (kp_pattern_match(loaded.at[i].original, demangled))
            return loaded.at[i].renamed;
    return NULL;
}

bool kp_renames_gave(const char *name)
{
    for (size_t i = 0; i < loaded.n; i++)
        if (!strcmp(loaded.at[i].renamed, name))
            return true;
    return false;
}
