#include "cmd/words.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/room.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cmd/console.h"

static struct kp_arena arena; /* of all words from files */

/* Words that are being collected. */
struct list {
    char **at;
    size_t n;
};

/* Adds a word of the arena. 0 or -ENOMEM. */
static int add_word(struct list *l, const char *text, size_t len)
{
    char *word = kp_arena_text(&arena, text, len);
    if (!word || !KP_ROOM(l->at, l->n))
        return -ENOMEM;
    l->at[l->n++] = word;
    return 0;
}

/* Puts the words in place of `drop` ones from `at` on. 0 or -ENOMEM. */
static int put_words(struct kp_words *w, int at, int drop, const struct list *l)
{
    int n = w->n - drop + (int)l->n, rest = w->n - at - drop;
    char **all = kp_arena_alloc(&arena, ((size_t)n + 1) * sizeof *all);
    if (!all)
        return -ENOMEM;
    memcpy(all, w->at, (size_t)at * sizeof *all);
    if (l->n)
        memcpy(all + at, l->at, l->n * sizeof *all);
    memcpy(all + at + l->n, w->at + at + drop, ((size_t)rest + 1) * sizeof *all);
    *w = (struct kp_words){all, n};
    return 0;
}

static int failed(int rc, const char *err)
{
    return kp_console_error(rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
}

/* ---- response files ---- */

/* Takes quotes and backslashes off a word in place. Returns its end. */
static char *unquote(char *from, char **to)
{
    char quote = '\0', *out = from;
    *to = from;
    for (; *from && (quote || !isspace((unsigned char)*from)); from++) {
        if (*from == quote || (!quote && strchr("'\"", *from))) {
            quote = quote ? '\0' : *from;
            continue;
        }
        from += *from == '\\' && quote != '\'' && from[1];
        *out++ = *from;
    }
    char *end = *from ? from + 1 : from;
    *out = '\0';
    return end;
}

int kp_words_take_response(struct kp_words *w, int at)
{
    const char *path = w->at[at] + 1;
    struct list l = {0};
    char *text = NULL, *err = NULL, *word;
    size_t len;
    int rc = kp_small_file_read(path, "the options", &text, &len, &err);
    for (char *next = text; !rc && *(next += strspn(next, " \t\r\n"));) {
        next = unquote(next, &word);
        rc = add_word(&l, word, strlen(word));
    }
    if (!rc)
        rc = put_words(w, at, 1, &l);
    int status = rc ? failed(rc, err) : 0;
    free(l.at);
    free(text);
    free(err);
    return status;
}

/* ---- ncu's file of options ---- */

static const char run_title[] = "[Launch-and-attach]", import_title[] = "[Import]";

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

/* Adds one option as a word, "--option=value" or "-ovalue". */
static int add_option(struct list *l, char *line)
{
    char *value = strchr(line, '=');
    if (value)
        *value++ = '\0';
    char *name = trim(line);
    value = value ? trim(value) : NULL;
    name += strspn(name, "-");
    bool is_letter = !name[1];
    char *word =
        kp_asprintf("%s%s%s%s", is_letter ? "-" : "--", name, value && !is_letter ? "=" : "", value ? value : "");
    int rc = word ? add_word(l, word, strlen(word)) : -ENOMEM;
    free(word);
    return rc;
}

static int read_config(char *text, bool imports, struct list *l)
{
    bool wanted = true;
    int rc = 0;
    for (char *line, *rest = text; !rc && (line = strsep(&rest, "\n"));) {
        line = trim(line);
        if (*line == '[')
            wanted = !strcasecmp(line, imports ? import_title : run_title);
        else if (*line && *line != '#' && *line != ';' && wanted)
            rc = add_option(l, line);
    }
    return rc;
}

/* Returns the file that ncu would find, malloc'ed; NULL if there is none. */
static char *find_config(void)
{
    static const char name[] = "config.ncu-cfg";
    const char *home = getenv("HOME");
    char *path =
        access(name, R_OK) ? kp_asprintf("%s/.config/NVIDIA Corporation/%s", home ? home : "", name) : strdup(name);
    if (path && !access(path, R_OK))
        return path;
    free(path);
    return NULL;
}

int kp_words_take_config(struct kp_words *w, const char *path, bool imports)
{
    struct list l = {0};
    char *found = path ? NULL : find_config(), *text = NULL, *err = NULL;
    size_t len;
    if (!path && !found)
        return 0;
    int rc = kp_small_file_read(path ? path : found, "the options", &text, &len, &err);
    if (!rc)
        rc = read_config(text, imports, &l);
    if (!rc)
        rc = put_words(w, 1, 0, &l);
    int status = rc ? failed(rc, err) : 0;
    free(l.at);
    free(text);
    free(found);
    free(err);
    return status;
}

int kp_words_put(struct kp_words *w, int at, const char *text)
{
    struct list one = {0};
    int rc = add_word(&one, text, strlen(text));
    rc = rc ? rc : put_words(w, at, 1, &one);
    free(one.at);
    return rc;
}

/* ---- values ---- */

char *kp_words_folders_of(const char *files)
{
    const char *file;
    size_t len;
    char *all = strdup("");
    while (all && kp_list_next(&files, &file, &len)) {
        const char *slash = memrchr(file, '/', len);
        char *more = kp_asprintf("%s%s%.*s", all, *all ? "," : "", slash ? (int)(slash - file) : 1, slash ? file : ".");
        free(all);
        all = more;
    }
    return all;
}

static char *found; /* by add_folder, which nftw gives nothing of ours */

static int add_folder(const char *path, const struct stat *st, int type, struct FTW *place)
{
    static const char pattern[] = "*.section";
    size_t len = place->base ? (size_t)place->base - 1 : 0, before = strlen(found);
    (void)st;
    if (type != FTW_F || fnmatch(pattern, path + place->base, 0))
        return 0;
    char *folder = strndup(path, len);
    bool known = folder && before >= len && !strcmp(found + before - len, folder);
    char *more = folder && !known ? kp_asprintf("%s:%s", found, folder) : NULL;
    free(folder);
    if (!known && !more)
        return -1;
    if (more) {
        free(found);
        found = more;
    }
    return 0;
}

char *kp_words_folders_in(const char *folder)
{
    enum { FILES = 16 };
    char *root = kp_asprintf("%s", folder);
    found = root;
    if (root && nftw(folder, add_folder, FILES, FTW_PHYS) && errno == ENOMEM) {
        free(found);
        found = NULL;
    }
    return found;
}
