#include "report/model/vary.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The parts of a block's size are separated by x. */
static bool read_block(const char *word, struct kp_vary_value *v)
{
    char *end = (char *)(uintptr_t)word;
    unsigned long long part[3] = {1, 1, 1};
    int n = 0;
    for (bool more = true; more && n < 3; n++) {
        if (!isdigit((unsigned char)*end))
            return false;
        part[n] = strtoull(end, &end, 10);
        more = *end == 'x';
        end += more;
    }
    if (*end || part[0] - 1 > UINT16_MAX || part[1] - 1 > UINT16_MAX || part[2] - 1 > UINT16_MAX)
        return false;
    v->number = part[0] * part[1] * part[2];
    for (int i = 0; n > 1 && i < 3; i++)
        v->block[i] = (uint32_t)part[i];
    return true;
}

static bool read_size(const char *word, struct kp_vary_value *v)
{
    static const char units[] = "KM";
    char *end;
    if (!isdigit((unsigned char)*word))
        return false;
    v->number = strtoull(word, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (end[unit != NULL] || v->number > UINT32_MAX >> shift)
        return false;
    v->number <<= shift;
    return true;
}

static bool read_percent(const char *word, struct kp_vary_value *v)
{
    char *end;
    if (!isdigit((unsigned char)*word))
        return false;
    v->number = strtoull(word, &end, 10);
    return !*end && v->number <= 100;
}

static const struct {
    const char *word;
    bool (*read)(const char *word, struct kp_vary_value *v);
    const char *form; /* of a value, for whoever wrote another */
} kinds[KP_VARY_KINDS] = {
    [KP_VARY_BLOCK] = {"block", read_block, "threads, such as 128, or 16x8"},
    [KP_VARY_SHARED] = {"shared", read_size, "a size, such as 16K"},
    [KP_VARY_CARVEOUT] = {"carveout", read_percent, "a percentage from 0 to 100"},
};

static bool has_value(const struct kp_vary *v, int kind, const struct kp_vary_value *value)
{
    for (size_t i = 0; i < v->kinds[kind].n; i++) {
        const struct kp_vary_value *at = &v->kinds[kind].values[i];
        if (at->number == value->number && !memcmp(at->block, value->block, sizeof at->block))
            return true;
    }
    return false;
}

/* A value that comes twice counts once. */
static int add_value(struct kp_vary *v, int kind, const char *item, size_t len, char **err)
{
    struct kp_vary_value value = {.number = 0};
    if (len < sizeof value.word)
        memcpy(value.word, item, len);
    if (len >= sizeof value.word || !kinds[kind].read(value.word, &value))
        return kp_error(err, "%s=%.*s: write %s", kinds[kind].word, (int)len, item, kinds[kind].form);
    if (has_value(v, kind, &value))
        return 0;
    if (v->kinds[kind].n == KP_VARY_VALUES)
        return kp_error(err, "%s has more than %d values", kinds[kind].word, KP_VARY_VALUES);
    v->kinds[kind].values[v->kinds[kind].n++] = value;
    return 0;
}

static int find_kind(const char *name, char **err)
{
    const char *words[KP_VARY_KINDS + 1] = {0};
    for (int i = 0; i < KP_VARY_KINDS; i++) {
        words[i] = kinds[i].word;
        if (!strcmp(name, words[i]))
            return i;
    }
    return kp_error_choice(err, "unknown kind of variant", name, words);
}

/* Reads an item: NAME=VALUES. */
static int read_item(struct kp_vary *v, const char *item, size_t len, char **err)
{
    const char *equals = memchr(item, '=', len), *value;
    size_t size, before;
    if (!equals)
        return kp_error(err, "'%.*s' is not NAME=VALUES, such as block=64,128,256", (int)len, item);
    char *name = strndup(item, (size_t)(equals - item)), *list = strndup(equals + 1, len - (size_t)(equals + 1 - item));
    int kind = name && list ? find_kind(name, err) : -ENOMEM, rc = kind < 0 ? kind : 0;
    const char *cursor = list;
    for (before = 0; !rc && kp_list_next(&cursor, &value, &size); before++)
        rc = add_value(v, kind, value, size, err);
    if (!rc && !before)
        rc = kp_error(err, "%s= has no values", name);
    free(name);
    free(list);
    return rc;
}

int kp_vary_read(const char *text, struct kp_vary *out, char **err)
{
    int rc = 0;
    *out = (struct kp_vary){.n = 1};
    *err = NULL;
    for (size_t len; !rc && *text; text += len + (text[len] == ';')) {
        text += strspn(text, " \t");
        len = strcspn(text, ";");
        if (len)
            rc = read_item(out, text, len, err);
    }
    for (int i = 0; !rc && i < KP_VARY_KINDS; i++) {
        out->n *= out->kinds[i].n ? out->kinds[i].n : 1;
        if (out->n > KP_VARY_VARIANTS)
            rc = kp_error(err, "the values have more than %d combinations", KP_VARY_VARIANTS);
    }
    return rc;
}

struct kp_variation kp_vary_at(const struct kp_vary *v, size_t i)
{
    struct kp_variation one = {.name = ""};
    size_t len = 0;
    for (int k = KP_VARY_KINDS; k--;) {
        size_t n = v->kinds[k].n;
        if (n)
            one.of[k] = &v->kinds[k].values[i % n];
        i /= n ? n : 1;
    }
    for (int k = 0; k < KP_VARY_KINDS; k++)
        if (one.of[k])
            len += (size_t)snprintf(one.name + len, sizeof one.name - len, "%s%s=%s", len ? " " : "", kinds[k].word,
                                    one.of[k]->word);
    return one;
}
