/*
 * A page consists of blocks: headings, facts, tables, metrics, drawings, timelines, messages and notes. The page builds
 * its blocks once as data; a writer for each format prints them. A further format is one more table of functions.
 *
 * Formats of rows (CSV) have no headings or drawings. For them the page is one table, which kp_layout describes, and
 * each row repeats its context. Pages give them that context with kp_write_field and with the writer's session and
 * launch.
 *
 * Errors: the first one, of sink, stream or memory, stays in out.rc; from then on nothing is written.
 * Threads: one at a time for each writer.
 */
#ifndef KP_REPORT_WRITE_WRITER_H
#define KP_REPORT_WRITE_WRITER_H

#include "report/define/source.h"
#include "report/judge/summary.h"
#include "report/judge/verdict.h"
#include "report/view/lines.h"
#include "report/view/series.h"
#include "report/view/shown.h"
#include "report/write/account.h"
#include "report/write/out.h"
#include "report/write/stack_block.h"

/* The level of a heading or a note; RUN is about the whole run. */
enum kp_level { KP_LEVEL_PAGE, KP_LEVEL_LAUNCH, KP_LEVEL_SECTION, KP_LEVEL_BODY, KP_LEVEL_RUN };

/* The first columns of each row, in a format of rows. If sessions are shared, the columns of the process come before
 * them. */
enum kp_row_start {
    KP_START_EMPTY,
    KP_START_ID,      /* of the launch */
    KP_START_PROCESS, /* its columns, shared or not */
    KP_START_LAUNCH,  /* all columns that identify the launch */
};

/* The page as one table. Its fields follow the first columns of the row. */
struct kp_layout {
    enum kp_row_start start;
    const char *const *fields;
    size_t n;
    const char *const *units; /* a second row of headings, or NULL */
    bool by_metric;           /* each field is a metric, and each launch a row; else each metric is a row */
    bool rows_of_metrics;     /* rows are of metrics, and of messages */
    const bool *numbers;      /* of each field, whether JSON has numbers there; NULL: in none */
    const bool *means;        /* by_metric: of each field, whether rotation made a value; NULL: of none */
    /* First fields of the kinds of content that have no columns otherwise: */
    size_t metric; /* name, unit and value of a metric; name, unit, number, time and value of a sample; the counts of an
                      instruction, each under its name */
    size_t rule;   /* rule, severity and text of a message, kind and size of its estimate */
};

#define KP_NO_FIELD SIZE_MAX /* the first columns of a row have it */

struct kp_column {
    const char *heading;
    size_t field; /* of the layout, or KP_NO_FIELD */
    int width;    /* of text; 0 = width of the widest cell */
    bool to_the_left;
};

enum kp_table_kind {
    KP_TABLE_FRAMED,
    KP_TABLE_OPEN,     /* a page of its own: wide, without a frame */
    KP_TABLE_STREAMED, /* any number of rows, printed at once: each column has a width */
};

struct kp_table {
    enum kp_table_kind kind;
    const struct kp_column *columns;
    size_t n;
    bool long_headings; /* columns of numbers are named after metrics, too long for headings above them */
};

struct kp_fact {
    char *attribute, *value; /* owned */
    bool is_list;            /* separated by commas or blanks, which allow line breaks */
};

struct kp_facts {
    const char *title;
    struct kp_fact *at;
    size_t n;
};

struct kp_writer;

/* A format. NULL: the format has no such blocks. */
struct kp_writer_kind {
    bool rows;        /* a format of rows */
    bool plain;       /* numbers are for a program: in base units, with all digits */
    size_t name_room; /* the most characters of a kernel's name in a table; 0 = any number */
    void (*begin)(struct kp_writer *w, const struct kp_layout *layout);
    void (*field)(struct kp_writer *w, size_t field, const char *text);
    void (*process)(struct kp_writer *w);
    void (*heading)(struct kp_writer *w, enum kp_level level, const char *text);
    void (*facts)(struct kp_writer *w, const struct kp_facts *facts);
    void (*table)(struct kp_writer *w, const struct kp_table *table);
    void (*row)(struct kp_writer *w, const char *const *cells);
    void (*table_end)(struct kp_writer *w);
    void (*listed)(struct kp_writer *w, const struct kp_shown *s, bool full);
    void (*launch)(struct kp_writer *w, bool quick);
    void (*metrics)(struct kp_writer *w, const struct kp_lines *lines);
    void (*missing)(struct kp_writer *w, const struct kp_lines *lines);
    void (*drawing)(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines);
    void (*series)(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped);
    void (*verdict)(struct kp_writer *w, const struct kp_verdict *verdict);
    void (*messages)(struct kp_writer *w, const struct kp_messages *messages, const char *section);
    void (*source_lines)(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help);
    void (*source_code)(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f);
    void (*stacks)(struct kp_writer *w, struct kp_stack_totals *stacks);
    void (*summary)(struct kp_writer *w, const struct kp_summary *summary);
    void (*note)(struct kp_writer *w, enum kp_level level, const char *mark, const char *text);
    void (*gap)(struct kp_writer *w);
    void (*account)(struct kp_writer *w, const struct kp_choice *choice);
    void (*end)(struct kp_writer *w);
};

struct kp_writer {
    const struct kp_writer_kind *kind;
    struct kp_out out;                   /* the display; the sink, of a document; the first error */
    const struct kp_session *session;    /* of the blocks that follow */
    const struct kp_launch_info *launch; /* of the rows that follow */
    bool shared;                         /* rows of several sessions are in one table */
    bool nvtx;                           /* rows of launches have the columns of NVTX, */
    bool rotated;                        /* and those of a rotation */
};

/* Begins a page, before its first block. The layout must stay until the page ends. */
void kp_write_begin(struct kp_writer *w, const struct kp_layout *layout);
/* Sets the text of a field for the following rows that do not set it themselves. */
void kp_write_field(struct kp_writer *w, size_t field, const char *text);
/* Writes the process of the session; opens a document. */
void kp_write_process(struct kp_writer *w);
void kp_write_heading(struct kp_writer *w, enum kp_level level, const char *text);
/* Writes facts. In rows, the first three fields are the title, the attribute and the value. */
void kp_write_facts(struct kp_writer *w, const struct kp_facts *facts);
/* Writes a table: its head, its rows, its end. The table must stay until its end. */
void kp_write_table(struct kp_writer *w, const struct kp_table *table);
void kp_write_row(struct kp_writer *w, const char *const *cells);
void kp_write_table_end(struct kp_writer *w);
/* Writes the writer's launch for a list of all launches. `full`: its head and its sections follow. A page that shows
 * some launches in full lists the others, too. */
void kp_write_listed(struct kp_writer *w, const struct kp_shown *s, bool full);
/* Writes the head of the writer's launch. `quick`: as in kp_shown. */
void kp_write_launch(struct kp_writer *w, bool quick);
/* Writes lines, perhaps none, in a table of name, unit and value. */
void kp_write_metrics(struct kp_writer *w, const struct kp_lines *lines);
/* Reports which lines have no value, and why. */
void kp_write_missing(struct kp_writer *w, const struct kp_lines *lines);
/* Draws lines, one of them with a value, by `body`; in a table if `body` is no drawing. */
void kp_write_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines);
/* Writes `n` > 0 timelines. `dropped`: as kp_view_series_dropped. */
void kp_write_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped);
void kp_write_verdict(struct kp_writer *w, const struct kp_verdict *verdict);
/* Writes the messages of a section's rules. */
void kp_write_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section);
/* Write the hottest source lines, and the instructions of a function: see source_table.h. In rows, the first seven
 * fields are function, offset, file, line, the calls that lead there, opcode and instruction. */
void kp_write_source_lines(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help);
void kp_write_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f);
void kp_write_stacks(struct kp_writer *w, struct kp_stack_totals *stacks);
/* Writes the summary of the run. */
void kp_write_summary(struct kp_writer *w, const struct kp_summary *summary);
/* Writes a sentence, or with a `mark` (such as "Note", else NULL) a paragraph that begins with the mark. */
void kp_write_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text);
/* Says below a table how many rows it lacks; nothing for 0. */
void kp_write_rest(struct kp_writer *w, size_t rest);
/* Separates the following blocks from those before. */
void kp_write_gap(struct kp_writer *w);
/* Writes the account of the session; closes a document. */
void kp_write_account(struct kp_writer *w, const struct kp_choice *choice);
/* Notes the outcome of a part that is written in another way: 0, or an error. */
static inline void kp_write_failed(struct kp_writer *w, int rc)
{
    w->out.rc = w->out.rc ? w->out.rc : rc;
}
/* Ends the page, or the document, and frees what the writer holds. Returns out.rc. */
int kp_write_end(struct kp_writer *w);

/* Copies of a fact; a value that is NULL or "" is none. 0 or -ENOMEM. */
int kp_facts_add(struct kp_facts *f, const char *attribute, const char *value, bool is_list);
void kp_facts_free(struct kp_facts *f);

#endif
