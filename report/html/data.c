#include "report/html/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"

enum { REPLACEMENT = 0xfffd }; /* Unicode's, for invalid bytes */

/* --- texts, each once --- */

static size_t *slot_of(const struct kp_data_part *p, const char *text)
{
    size_t at = kp_hash(text, strlen(text), 0) & (p->n_slots - 1);
    while (p->slots[at] && strcmp(p->texts[p->slots[at] - 1], text) != 0)
        at = (at + 1) & (p->n_slots - 1);
    return &p->slots[at];
}

/* Makes room for one more text; the slots stay half empty. False without memory. */
static bool make_room(struct kp_data_part *p)
{
    if (p->n < p->room)
        return true;
    size_t room = p->room ? 2 * p->room : 64;
    char **texts = realloc(p->texts, room * sizeof *texts);
    if (!texts)
        return false;
    p->texts = texts;
    size_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots)
        return false;
    free(p->slots);
    p->slots = slots;
    p->n_slots = 2 * room;
    p->room = room;
    for (size_t i = 0; i < p->n; i++)
        *slot_of(p, texts[i]) = i + 1;
    return true;
}

size_t kp_data_add(struct kp_data *d, enum kp_data_table table, const char *text)
{
    struct kp_data_part *p = &d->parts[table];
    char *copy = NULL;
    text = text ? text : "";
    if (d->rc)
        return 0;
    size_t *slot = p->n_slots ? slot_of(p, text) : NULL;
    if (slot && *slot)
        return *slot - 1;
    if (!make_room(p) || !(copy = strdup(text))) {
        d->rc = -ENOMEM;
        return 0;
    }
    *slot_of(p, text) = p->n + 1;
    p->texts[p->n] = copy;
    return p->n++;
}

void kp_data_free(struct kp_data *d)
{
    for (size_t t = 0; t < KP_DATA_TABLES; t++) {
        for (size_t i = 0; i < d->parts[t].n; i++)
            free(d->parts[t].texts[i]);
        free(d->parts[t].texts);
        free(d->parts[t].slots);
    }
    *d = (struct kp_data){.rc = 0};
}

/* --- texts being written --- */

bool kp_draft_begin(struct kp_data *d, struct kp_draft *draft)
{
    *draft = (struct kp_draft){.to = NULL};
    if (!d->rc && !(draft->to = open_memstream(&draft->text, &draft->size)))
        d->rc = -ENOMEM;
    return !d->rc;
}

char *kp_draft_take(struct kp_data *d, struct kp_draft *draft)
{
    if (draft->to && kp_text_end(draft->to, &draft->text) && !d->rc)
        d->rc = -ENOMEM;
    char *text = draft->text;
    *draft = (struct kp_draft){.to = NULL};
    if (!d->rc)
        return text;
    free(text);
    return NULL;
}

size_t kp_draft_add(struct kp_data *d, struct kp_draft *draft, enum kp_data_table table)
{
    char *text = kp_draft_take(d, draft);
    size_t at = text ? kp_data_add(d, table, text) : 0;
    free(text);
    return at;
}

/* --- JSON --- */

void kp_data_real(FILE *to, double value)
{
    char text[KP_PLAIN_MAX];
    if (isfinite(value))
        kp_plain_real(value, text);
    fputs(isfinite(value) ? text : isnan(value) ? "null" : value < 0 ? "-1e999" : "1e999", to);
}

/* Returns true if a character ends a JSON string, controls a terminal, or is special in HTML. */
static bool is_special(char c)
{
    return strchr("\"\\<>&'", c) != NULL;
}

static void print_text(FILE *to, const char *text)
{
    bool shown;
    const char *end = text + strlen(text);
    fputc('"', to);
    for (const char *c = text; c < end;) {
        size_t len = kp_text_shown_len(c, (size_t)(end - c), &shown);
        if (shown && !is_special(*c))
            fwrite(c, 1, len, to);
        else
            fprintf(to, "\\u%04x", kp_utf8_len(c, (size_t)(end - c)) ? kp_utf8_code(c, len) : REPLACEMENT);
        c += len;
    }
    fputc('"', to);
}

static void print_part(FILE *to, const struct kp_data_part *p, bool texts)
{
    fputc('[', to);
    for (size_t i = 0; i < p->n; i++) {
        fputs(i ? ",\n" : "\n", to);
        if (texts)
            print_text(to, p->texts[i]);
        else
            fputs(p->texts[i], to);
    }
    fputc(']', to);
}

int kp_data_print(const struct kp_data *d, FILE *to)
{
    static const char *const names[KP_DATA_TABLES] = {
        [KP_DATA_STRINGS] = "strings",   [KP_DATA_METRICS] = "metrics",   [KP_DATA_SECTIONS] = "sections",
        [KP_DATA_SETS] = "sets",         [KP_DATA_KEYS] = "keys",         [KP_DATA_PATHS] = "paths",
        [KP_DATA_RULES] = "rules",       [KP_DATA_STACKS] = "stacks",     [KP_DATA_CODES] = "codes",
        [KP_DATA_SESSIONS] = "sessions", [KP_DATA_LAUNCHES] = "launches", [KP_DATA_FULL] = "full",
    };
    for (size_t t = 0; t < KP_DATA_TABLES; t++) {
        fprintf(to, "%s\"%s\":", t ? ",\n" : "{", names[t]);
        print_part(to, &d->parts[t], t == KP_DATA_STRINGS);
    }
    fputc('}', to);
    return ferror(to) ? -EIO : 0;
}
