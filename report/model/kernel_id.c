#include "report/model/kernel_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "base/room.h"
#include "base/text.h"

/* Numbers: all, a list, or those that an expression matches as a whole. */
struct numbers {
    uint64_t *list;
    size_t n;
    struct kp_pattern *regex; /* NULL: none */
};

struct kp_kernel_id {
    struct numbers context, stream, invocation;
    struct kp_pattern *name;
};

static bool is_any(const struct numbers *s)
{
    return !s->n && !s->regex;
}

static int read_list(const char *text, struct numbers *out, char **err)
{
    const char *item;
    size_t len;
    while (kp_list_next(&text, &item, &len)) {
        if (!KP_ROOM(out->list, out->n))
            return -ENOMEM;
        char *end;
        errno = 0;
        out->list[out->n++] = strtoull(item, &end, 10);
        if (end != item + len)
            return kp_error(err, "'%.*s' is not a number", (int)len, item);
        if (errno == ERANGE)
            return kp_error(err, "%.*s is too large", (int)len, item);
    }
    return 0;
}

static int read_numbers(const char *what, const char *text, struct numbers *out, char **err)
{
    if (strspn(text, "0123456789, ") == strlen(text))
        return read_list(text, out, err);
    /* An expression with letters matches no number: the user wrote a name, or put a field in the wrong place. */
    if (strpbrk(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"))
        return kp_error(err, "'%s' is not a valid %s; write a number, a list of numbers or a regular expression", text,
                        what);
    size_t digits = strspn(text, "0123456789");
    if (digits && text[digits] == '-' && strspn(text + digits + 1, "0123456789") == strlen(text + digits + 1))
        return kp_error(
            err,
            "'%s' is not a valid %s; as a regular expression it would match only that text: write a list of numbers",
            text, what);
    return kp_pattern_whole(text, &out->regex, err);
}

/* Splits `text` in place: zeros replace colons. */
static bool split(char *text, char *parts[4])
{
    char *first = strchr(text, ':'), *second = first ? strchr(first + 1, ':') : NULL, *last = strrchr(text, ':');
    if (!second || last == second)
        return false;
    *first = *second = *last = '\0';
    parts[0] = text;
    parts[1] = first + 1;
    parts[2] = second + 1;
    parts[3] = last + 1;
    return true;
}

static int read_parts(char *const parts[4], struct kp_kernel_id *id, char **err)
{
    int rc = read_numbers("context", parts[0], &id->context, err);
    if (!rc)
        rc = read_numbers("stream", parts[1], &id->stream, err);
    if (!rc)
        rc = kp_pattern_new(parts[2], &id->name, err);
    if (!rc)
        rc = read_numbers("invocation", parts[3], &id->invocation, err);
    for (size_t i = 0; !rc && i < id->invocation.n; i++)
        if (!id->invocation.list[i])
            rc = kp_error(err, "invocations are counted from 1; '%s' has a 0", parts[3]);
    return rc;
}

int kp_kernelid_new(const char *text, struct kp_kernel_id **out, char **err)
{
    char *parts[4];
    *out = NULL;
    *err = NULL;
    char *copy = strdup(text);
    struct kp_kernel_id *id = copy ? calloc(1, sizeof *id) : NULL;
    int rc = -ENOMEM;
    if (!id)
        goto out;
    if (split(copy, parts))
        rc = read_parts(parts, id, err);
    else
        rc = kp_error(err, "'%s' is not context:stream:name:invocation; fields may be empty, as in ::%s:", text,
                      *text && !strchr(text, ':') ? text : "name");
    if (!rc) {
        *out = id;
        id = NULL;
    }
out:
    kp_kernelid_free(id);
    free(copy);
    return rc;
}

static void free_numbers(struct numbers *s)
{
    kp_pattern_free(s->regex);
    free(s->list);
}

void kp_kernelid_free(struct kp_kernel_id *id)
{
    if (!id)
        return;
    free_numbers(&id->context);
    free_numbers(&id->stream);
    free_numbers(&id->invocation);
    kp_pattern_free(id->name);
    free(id);
}

static bool has_number(const struct numbers *s, uint64_t number)
{
    char text[24];
    if (is_any(s))
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i] == number)
            return true;
    if (!s->regex)
        return false;
    snprintf(text, sizeof text, "%" PRIu64, number);
    return kp_pattern_match(s->regex, text);
}

bool kp_kernelid_asks_place(const struct kp_kernel_id *id)
{
    return !is_any(&id->context) || !is_any(&id->stream);
}

bool kp_kernelid_place(const struct kp_kernel_id *id, uint64_t context, uint64_t stream)
{
    return has_number(&id->context, context) && has_number(&id->stream, stream);
}

bool kp_kernelid_name(const struct kp_kernel_id *id, const char *name)
{
    return kp_pattern_match(id->name, name);
}

bool kp_kernelid_invocation(const struct kp_kernel_id *id, uint64_t nth)
{
    return has_number(&id->invocation, nth);
}
