/* Keeps code and the text of its source files for the pages: all launches of a kernel need the same. */
#include "report/define/code_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/room.h"
#include "base/text.h"

enum {
    MOST_INSTRUCTIONS = 200000, /* held at most, about 100 bytes each */
    LARGEST_EMBEDDED = 1 << 20, /* byte */
    LARGEST_SHOWN = 64 << 20,   /* byte; generated sources are large, but nothing of this size is a source */
};

/* A file that was searched for. */
struct file {
    char *path, *found; /* text; NULL = not found */
    const char *text;   /* `found`, or the embedded text */
    size_t size;
    size_t *lines; /* start of each line */
    size_t n_lines;
};

struct kp_code_cache {
    const struct kp_lookup *lookup;
    const char *folders;
    struct kp_code **codes; /* their addresses stay: others point there */
    size_t n_codes, n_instructions;
    struct file *files;
    size_t n_files;
};

struct kp_code_cache *kp_codecache_new(const struct kp_lookup *lookup, const char *folders)
{
    struct kp_code_cache *c = calloc(1, sizeof *c);
    if (c) {
        c->lookup = lookup;
        c->folders = folders ? folders : "";
    }
    return c;
}

static void drop(struct kp_code_cache *c)
{
    for (size_t i = 0; i < c->n_codes; i++) {
        kp_code_free(c->codes[i]);
        free(c->codes[i]);
    }
    for (size_t i = 0; i < c->n_files; i++) {
        free(c->files[i].path);
        free(c->files[i].found);
        free(c->files[i].lines);
    }
    free(c->codes);
    free(c->files);
    c->codes = NULL;
    c->files = NULL;
    c->n_codes = c->n_files = c->n_instructions = 0;
}

void kp_codecache_free(struct kp_code_cache *c)
{
    if (c)
        drop(c);
    free(c);
}

void kp_codecache_trim(struct kp_code_cache *c)
{
    if (c->n_instructions > MOST_INSTRUCTIONS)
        drop(c);
}

static int fetch(struct kp_code_cache *c, uint64_t id, struct kp_code *to)
{
    int rc = c->lookup && c->lookup->code ? c->lookup->code(c->lookup->arg, id, to) : -ENOENT;
    if (!rc || rc == -ENOMEM)
        return rc;
    *to = (struct kp_code){.id = id}; /* so that the store is not asked again */
    return 0;
}

int kp_codecache_code(struct kp_code_cache *c, uint64_t id, const struct kp_code **out)
{
    *out = NULL;
    for (size_t i = 0; i < c->n_codes; i++)
        if (c->codes[i]->id == id) {
            *out = c->codes[i]->function ? c->codes[i] : NULL;
            return 0;
        }
    if (!KP_ROOM(c->codes, c->n_codes))
        return -ENOMEM;
    struct kp_code *code = calloc(1, sizeof *code);
    int rc = code ? fetch(c, id, code) : -ENOMEM;
    if (rc) {
        free(code);
        return rc;
    }
    code->id = id;
    c->codes[c->n_codes++] = code;
    c->n_instructions += code->n_instructions + code->n_ptx;
    *out = code->function ? code : NULL;
    return 0;
}

/* ---- files ---- */

/* Reads only regular files: a path may name a device or a pipe. -E2BIG beyond `limit`. */
static int read_file(const char *path, size_t limit, char **text, size_t *size)
{
    struct stat st;
    char *to = NULL;
    size_t n = 0;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = -ENOENT;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
        goto out;
    rc = (size_t)st.st_size > limit ? -E2BIG : (to = malloc((size_t)st.st_size + 1)) ? 0 : -ENOMEM;
    while (!rc && n < (size_t)st.st_size && (got = read(fd, to + n, (size_t)st.st_size - n)) > 0)
        n += (size_t)got;
    if (!rc && got < 0)
        rc = -EIO;
out:
    if (fd >= 0)
        close(fd);
    if (rc) {
        free(to);
        return rc;
    }
    to[n] = '\0';
    *text = to;
    *size = n;
    return 0;
}

/* Looks below `folder` for the longest tail of the path that leads to a file: a/b/c.cu, then b/c.cu, then c.cu. */
static int look_in(const char *folder, size_t len, const char *path, char **text, size_t *size)
{
    int rc = -ENOENT;
    for (const char *part = path; rc && rc != -ENOMEM && part; part = strchr(part, '/')) {
        char *name = NULL;
        part += strspn(part, "/");
        if (!*part)
            break;
        if (asprintf(&name, "%.*s/%s", (int)len, folder, part) < 0)
            return -ENOMEM;
        rc = read_file(name, LARGEST_SHOWN, text, size);
        free(name);
    }
    return rc;
}

static int find_text(const char *folders, const char *path, char **text, size_t *size)
{
    const char *folder;
    size_t len;
    int rc = *path ? read_file(path, LARGEST_SHOWN, text, size) : -ENOENT;
    while (rc && rc != -ENOMEM && kp_list_next(&folders, &folder, &len))
        rc = look_in(folder, len, path, text, size);
    return rc;
}

static void find_lines(struct file *f)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < f->size; i++)
        n += f->text[i] == '\n';
    f->lines = calloc(n + 1, sizeof *f->lines);
    for (size_t i = 0; f->lines && i <= n; i++) {
        const char *end = memchr(f->text + at, '\n', f->size - at);
        f->lines[f->n_lines++] = at;
        at = end ? (size_t)(end - f->text) + 1 : f->size;
    }
}

/* Finds the file, once. NULL without memory. */
static const struct file *file_of(struct kp_code_cache *c, const struct kp_source_file *source)
{
    const char *path = source->path ? source->path : "";
    for (size_t i = 0; i < c->n_files; i++)
        if (!strcmp(c->files[i].path, path))
            return &c->files[i];
    if (!KP_ROOM(c->files, c->n_files))
        return NULL;
    struct file *f = &c->files[c->n_files];
    *f = (struct file){.path = kp_strdup(path)};
    if (!f->path)
        return NULL;
    c->n_files++;
    if (source->text) {
        f->text = source->text;
        f->size = strlen(source->text);
    } else if (!find_text(c->folders, path, &f->found, &f->size)) {
        f->text = f->found;
    }
    if (f->text)
        find_lines(f);
    return f;
}

bool kp_codecache_has_file(struct kp_code_cache *c, const struct kp_code *code, uint32_t file)
{
    const struct file *f = file < code->n_files ? file_of(c, &code->files[file]) : NULL;
    return f && f->text;
}

const char *kp_codecache_line(struct kp_code_cache *c, const struct kp_code *code, uint32_t file, uint32_t line,
                              size_t *len)
{
    const struct file *f = file < code->n_files ? file_of(c, &code->files[file]) : NULL;
    if (!f || !f->text || !line || line > f->n_lines || f->lines[line - 1] >= f->size)
        return NULL;
    const char *text = f->text + f->lines[line - 1], *end = memchr(text, '\n', f->size - f->lines[line - 1]);
    *len = end ? (size_t)(end - text) : f->size - f->lines[line - 1];
    return text;
}

int kp_source_embed(struct kp_code *c)
{
    int rc = 0;
    size_t size;
    for (size_t i = 0; rc != -ENOMEM && i < c->n_files; i++)
        if (!c->files[i].text && c->files[i].path)
            rc = read_file(c->files[i].path, LARGEST_EMBEDDED, &c->files[i].text, &size);
    return rc == -ENOMEM ? rc : 0;
}
