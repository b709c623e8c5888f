/*
 * The data of the HTML file while they are collected: tables of texts, each text once. Elements of tables name others
 * by their number, so that names, layouts and lists that many launches share are in the file once. Threads: one at a
 * time.
 */
#ifndef KP_REPORT_HTML_DATA_H
#define KP_REPORT_HTML_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The tables; all but the first hold JSON. script/data.js says what the elements are made of. */
enum kp_data_table {
    KP_DATA_STRINGS,
    KP_DATA_METRICS,
    KP_DATA_SECTIONS,
    KP_DATA_SETS,
    KP_DATA_KEYS,
    KP_DATA_PATHS,
    KP_DATA_RULES,
    KP_DATA_STACKS,
    KP_DATA_CODES,
    KP_DATA_SESSIONS,
    KP_DATA_LAUNCHES,
    KP_DATA_FULL,
    KP_DATA_TABLES
};

struct kp_data_part {
    char **texts;
    size_t n, room;
    size_t *slots; /* of the texts by their hash: number + 1; 0 = empty */
    size_t n_slots;
};

/* Zero-initialised. */
struct kp_data {
    struct kp_data_part parts[KP_DATA_TABLES];
    int rc; /* the first error; from then on nothing is added */
};

/* Adds a text, unless it is there. Returns its number in the table; 0 after an error. NULL is "". */
size_t kp_data_add(struct kp_data *d, enum kp_data_table table, const char *text);
static inline size_t kp_data_string(struct kp_data *d, const char *text)
{
    return kp_data_add(d, KP_DATA_STRINGS, text);
}
void kp_data_free(struct kp_data *d);

/* A text being written; zeroed when it has ended. */
struct kp_draft {
    FILE *to;
    char *text;
    size_t size;
};
/* Returns false without memory, which is noted, or after an error: then there is nothing to write to. */
bool kp_draft_begin(struct kp_data *d, struct kp_draft *draft);
/* Ends the text, if it was begun, and returns it; the caller frees it. NULL after an error. */
char *kp_draft_take(struct kp_data *d, struct kp_draft *draft);
/* Does the same and adds the text. Returns its number; 0 after an error. */
size_t kp_draft_add(struct kp_data *d, struct kp_draft *draft, enum kp_data_table table);

/* Writes a number that reads back exactly; NaN becomes null. */
void kp_data_real(FILE *to, double value);
/* Writes all tables as one JSON object. No character in it means anything to HTML. 0 or -EIO. */
int kp_data_print(const struct kp_data *d, FILE *to);

#endif
