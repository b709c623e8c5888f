#include "report/define/section_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "report/define/section_tree.h"

enum {
    MAX_FILE = 16 << 20, /* byte; the largest of Nsight Compute's own has 1.5 MB */
    MAX_NOTES = 6,       /* named in the note */
};

static const char ending[] = ".section";

/* Sections and definitions from section files, kept to the end of the process. */
static struct {
    struct kp_arena arena;
    struct folder {
        const char *path;
        const struct folder *next;
    } * folders;
    char *note;
} loaded;

/* ---- one file ---- */

/* Reads the whole file, malloc'ed and terminated. */
static int read_text(const char *path, char **out, char **err)
{
    struct stat st = {0};
    size_t have = 0;
    ssize_t n = 0;
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe of that name must not block the program */
    int rc = fd < 0 || fstat(fd, &st) ? kp_error(err, "cannot read '%s': %s", path, strerror(errno)) : 0;
    if (!rc && (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE))
        rc = kp_error(err, "cannot read '%s': %s", path, S_ISREG(st.st_mode) ? "it is too large" : "it is not a file");
    if (!rc && !(*out = calloc(1, (size_t)st.st_size + 1)))
        rc = -ENOMEM;
    while (!rc && have < (size_t)st.st_size && (n = read(fd, *out + have, (size_t)st.st_size - have)) > 0)
        have += (size_t)n;
    if (!rc && n < 0)
        rc = kp_error(err, "cannot read '%s': %s", path, strerror(errno));
    if (!rc && strlen(*out) < have)
        rc = kp_error(err, "cannot read '%s': it is not text", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int read_section_file(struct kp_section_reader *r, const char *path, struct kp_section_file *out, char **err)
{
    struct kp_arena tree = {0};
    const struct kp_field *root;
    char *text = NULL, *why = NULL;
    int rc = read_text(path, &text, err);
    if (rc)
        goto out;
    r->file = path;
    rc = kp_prototext_parse(&tree, text, &root, &why);
    if (rc == -EINVAL)
        rc = kp_error(err, "%s:%s", path, why);
    else if (!rc)
        rc = kp_section_tree_read(r, root, out, err);
    r->file = NULL; /* the caller's */
out:
    kp_arena_free(&tree);
    free(text);
    free(why);
    return rc;
}

/* ---- sources of values ---- */

static const struct {
    const char *prefix;
    enum kp_source source;
} sources[] = {
    {"launch__occupancy", KP_SRC_OCCUPANCY},
    {"launch__", KP_SRC_LAUNCH},
    {"device__", KP_SRC_LAUNCH},
    {"numa__", KP_SRC_LAUNCH},
};

static enum kp_source source_by_name(const char *metric)
{
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (!strncmp(metric, sources[i].prefix, strlen(sources[i].prefix)))
            return sources[i].source;
    return KP_SRC_COUNTER;
}

/* Rows of the table that are not counters: few; other rows get their source from them. */
struct known {
    const struct kp_row **rows;
    size_t n;
};

static int find_known(struct known *k)
{
    size_t n, most = 0;
    const struct kp_section *s = kp_sections_builtin(&n);
    for (size_t i = 0; i < n; i++)
        most += s[i].n_rows;
    k->n = 0;
    k->rows = malloc((most + 1) * sizeof *k->rows);
    for (size_t i = 0; k->rows && i < n; i++)
        for (size_t j = 0; j < s[i].n_rows; j++)
            if (s[i].rows[j].source != KP_SRC_COUNTER && s[i].rows[j].kind != KP_ROW_BODY)
                k->rows[k->n++] = &s[i].rows[j];
    return k->rows ? 0 : -ENOMEM;
}

static enum kp_source source_of(const struct known *k, const char *metric)
{
    if (kp_derived_find(metric))
        return KP_SRC_DERIVED;
    for (size_t i = 0; i < k->n; i++)
        if (!strcmp(k->rows[i]->metric, metric))
            return k->rows[i]->source;
    return source_by_name(metric);
}

/* ---- the folder ---- */

static int is_section_file(const struct dirent *e)
{
    size_t n = strlen(e->d_name), tail = sizeof ending - 1;
    return n > tail && e->d_name[0] != '.' && !strcmp(e->d_name + n - tail, ending);
}

/* Compares by name in every locale, unlike alphasort. */
static int by_file_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds the content of all files. Sources come last: a file may show metrics that another one defines. */
static int add_all(struct kp_section_file *files, size_t n, char **err)
{
    struct known known = {0};
    struct kp_section *sections = malloc((n + 1) * sizeof *sections);
    int rc = sections ? find_known(&known) : -ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; !rc && j < files[i].n_definitions; j++)
            rc = kp_derived_add(&files[i].definitions[j], err);
    for (size_t i = 0; !rc && i < n; i++) {
        for (size_t j = 0; j < files[i].section.n_rows; j++)
            files[i].rows[j].source = source_of(&known, files[i].rows[j].metric);
        sections[i] = files[i].section;
    }
    if (!rc)
        rc = kp_sections_add(sections, n);
    free(sections);
    free(known.rows);
    return rc;
}

/* Prints the first note found first: the list begins with the last. */
static void print_notes(FILE *f, const struct kp_section_note *note, size_t number)
{
    if (!note)
        return;
    print_notes(f, note->next, number - 1);
    if (number <= MAX_NOTES)
        fprintf(f, "%s%s", number > 1 ? ", " : "", note->text);
}

static int make_note(const struct kp_section_reader *r, const char *folder, size_t n_files, char **out)
{
    size_t size;
    FILE *f = open_memstream(out, &size);
    if (!f)
        return -ENOMEM;
    if (!n_files)
        fprintf(f, "no file *%s in '%s'", ending, folder);
    else if (r->n_notes)
        fputs("ignored in section files: ", f);
    print_notes(f, r->notes, r->n_notes);
    if (r->n_notes > MAX_NOTES)
        fprintf(f, " and %zu more", r->n_notes - MAX_NOTES);
    return kp_text_end(f, out) ? -ENOMEM : 0;
}

/* Reads the files of a folder; `path` is its absolute path, by which it is recognised later. */
static int read_folder(struct kp_section_reader *r, const char *folder, const char *path, struct dirent *const *entries,
                       size_t n, char **err)
{
    char file[PATH_MAX], *note = NULL;
    struct kp_section_file *files = calloc(n + 1, sizeof *files);
    struct folder *record = kp_arena_alloc(&r->arena, sizeof *record);
    const char *kept = kp_arena_text(&r->arena, path, strlen(path));
    int rc = files && record && kept ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        if ((size_t)snprintf(file, sizeof file, "%s/%s", folder, entries[i]->d_name) >= sizeof file)
            rc = kp_error(err, "the path of '%s' is too long", entries[i]->d_name);
        else
            rc = read_section_file(r, file, &files[i], err);
    }
    if (!rc)
        rc = make_note(r, folder, n, &note);
    if (!rc)
        rc = add_all(files, n, err);
    free(files);
    if (rc) {
        free(note);
        return rc;
    }
    *record = (struct folder){kept, loaded.folders};
    loaded.folders = record;
    free(loaded.note);
    loaded.note = note;
    return 0;
}

int kp_sections_load(const char *folder, char **err)
{
    struct kp_section_reader r = {0};
    struct dirent **entries = NULL;
    int n = 0, rc = 0;
    *err = NULL;
    char *path = realpath(folder, NULL);
    for (const struct folder *f = loaded.folders; path && f; f = f->next)
        if (!strcmp(f->path, path))
            goto out;
    n = path ? scandir(path, &entries, is_section_file, by_file_name) : -1;
    if (n < 0)
        rc = errno == ENOMEM ? -ENOMEM : kp_error(err, "cannot read folder '%s': %s", folder, strerror(errno));
    else
        rc = read_folder(&r, folder, path, entries, (size_t)n, err);
    if (!rc)
        kp_arena_move(&loaded.arena, &r.arena);
    else
        kp_arena_free(&r.arena);
out:
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    free(path);
    return rc;
}

const char *kp_sections_note(void)
{
    return loaded.note ? loaded.note : "";
}
