#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digit.h"
#include "base/environment.h"
#include "base/path.h"
#include "base/text.h"

struct macros {
    uint64_t pid, index;
    const char *host;
    bool has_index; /* the pattern contains %i */
};

/* Expands a variable; `p` points after "%q". Returns the character after the closing brace. */
static const char *expand_env(const char *p, const char *pattern, FILE *out, int *rc, char **err)
{
    size_t n = *p == '{' ? strcspn(p + 1, "}") : 0;
    if (!n || p[1 + n] != '}') {
        *rc = kp_error(err, "%%q in '%s' needs a name in braces: %%q{NAME}", pattern);
        return p;
    }
    char *name = strndup(p + 1, n);
    const char *value = name ? getenv(name) : NULL;
    if (value)
        fputs(value, out);
    else
        *rc = name ? kp_error(err, "%%q{%s} in '%s': the environment has no such variable", name, pattern) : -ENOMEM;
    free(name);
    return p + n + 2;
}

static void write_rank(FILE *out)
{
    size_t len;
    const char *rank = kp_environment_rank(NULL, &len);
    fputs(rank ? rank : "0", out);
}

/* Expands one macro; `p` points after a '%'. Returns the text after the macro. */
static const char *expand_macro(const char *p, const char *pattern, struct macros *m, FILE *out, int *rc, char **err)
{
    switch (*p) {
    case 'p':
        fprintf(out, "%" PRIu64, m->pid);
        break;
    case 'h':
        fputs(m->host, out);
        break;
    case 'i':
        fprintf(out, "%" PRIu64, m->index);
        m->has_index = true;
        break;
    case 'r':
        write_rank(out);
        break;
    case '%':
        fputc('%', out);
        break;
    case 'q':
        return expand_env(p + 1, pattern, out, rc, err);
    default:
        *rc = kp_error(err, "unknown %%%.1s in '%s'; valid: %%p %%h %%q{NAME} %%i %%r %%%%", p, pattern);
        return p;
    }
    return p + 1;
}

static int expand_once(const char *pattern, struct macros *m, char **out, char **err)
{
    size_t size;
    FILE *f = open_memstream(out, &size);
    if (!f)
        return -ENOMEM;
    int rc = 0;
    for (const char *p = pattern; !rc && *p;) {
        if (*p == '%')
            p = expand_macro(p + 1, pattern, m, f, &rc, err);
        else
            fputc(*p++, f);
    }
    if (kp_text_end(f, out) && !rc)
        rc = -ENOMEM;
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

int kp_expand_path(const char *pattern, uint64_t pid, const char *host, char **out, char **err)
{
    struct macros m = {.pid = pid, .host = host, .index = 1};
    struct stat st;
    *err = NULL;
    for (;;) {
        *out = NULL;
        int rc = expand_once(pattern, &m, out, err);
        /* Counts an inaccessible name as unused: creating the file will report the error. */
        if (rc || !m.has_index || lstat(*out, &st))
            return rc;
        free(*out);
        m.index++;
    }
}

static bool has_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    if (!*name)
        return true;
    if (!dot || dot == name || !kp_is_letter(dot[1]))
        return false;
    for (dot++; kp_is_letter(*dot) || kp_is_digit(*dot) || *dot == '-' || *dot == '_';)
        dot++;
    return !*dot;
}

char *kp_path_with_ending(const char *path)
{
    struct stat st;
    bool no_file = !stat(path, &st) && !S_ISREG(st.st_mode);
    return kp_asprintf("%s%s", path, no_file || has_extension(path) ? "" : KP_SESSION_ENDING);
}
