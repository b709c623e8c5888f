/* The report as CSV: the one table that the page's layout describes, with ncu's columns of the process and launch; or
 * its rows as JSON. */
#ifndef KP_REPORT_WRITE_CSV_WRITER_H
#define KP_REPORT_WRITE_CSV_WRITER_H

#include <stdio.h>

#include "base/csv.h"
#include "base/json.h"
#include "report/write/writer.h"

struct kp_csv_writer {
    struct kp_writer base;
    struct kp_csv csv;
    const struct kp_layout *layout; /* of the page */
    const struct kp_table *table;   /* the one being written */
    char **said;                    /* of each field, the text from kp_write_field; NULL = none */
    const char **row;               /* of each field, what overrides it in the next row; NULL = nothing */
    const struct kp_metric *metric; /* of the next row; NULL = none */
    size_t n;                       /* fields */
    bool goes_on;                   /* the table does, of another page: it has its headings */
    struct kp_json *json; /* of KP_START_EMPTY, each row is an object here, with texts and numbers; NULL: CSV */
};

/* Initialises the writer; end it with kp_write_end(&c->base). `to` stays open; its errors end the page with -EIO. */
void kp_write_csv_writer_init(struct kp_csv_writer *c, FILE *to, const struct kp_display *d);

#endif
