/*
 * A page is made of blocks: headings, facts, tables, metrics, drawings, timelines, messages and notes. It builds them
 * once, as data; a writer for each format prints them. A further format is one more table of functions.
 *
 * Formats of rows (CSV) have no headings or drawings: the page is one table to them, which kp_layout describes, and
 * each row repeats what it belongs to. Pages tell them that with kp_write_field and the writer's session and launch.
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
#include "report/write/account.h"
#include "report/write/out.h"
#include "report/write/stack.h"

/* How deep a heading or a note stands. */
enum kp_level { KP_LEVEL_PAGE, KP_LEVEL_LAUNCH, KP_LEVEL_SECTION, KP_LEVEL_BODY };

/* What each row of a format of rows begins with. Where sessions are shared, the columns of the process come first. */
enum kp_row_start {
    KP_START_EMPTY,
    KP_START_ID,      /* of the launch */
    KP_START_PROCESS, /* its columns, shared or not */
    KP_START_LAUNCH,  /* all columns that tell which launch it is */
};

/* The page as one table. The fields stand behind what the rows begin with. */
struct kp_layout {
    enum kp_row_start start;
    const char *const *fields;
    size_t n;
    const char *const *units; /* a second row of headings, or NULL */
    bool by_metric;           /* each field is a metric, and each launch a row; else each metric is a row */
    /* The first of the fields that take what has no columns of its own: */
    size_t metric; /* name, unit and value of a metric; name, unit, number, time and value of a sample; the counts of an
                      instruction, each under its name */
    size_t rule;   /* rule, severity and text of a message, kind and size of its estimate */
};

struct kp_column {
    const char *heading;
    size_t field; /* of the layout */
    int width;    /* of text; 0 = that of the widest cell */
    bool to_the_left;
};

enum kp_table_kind {
    KP_TABLE_FRAMED,
    KP_TABLE_OPEN,     /* a page of its own: wide, without a frame */
    KP_TABLE_STREAMED, /* any number of rows, which are not kept: all columns have a width */
};

struct kp_table {
    enum kp_table_kind kind;
    const struct kp_column *columns;
    size_t n;
    bool long_headings; /* those behind the first column are names of metrics, too long to stand above numbers */
};

struct kp_fact {
    char *attribute, *value; /* owned */
    bool is_list;            /* separated by commas or blanks: a line may end there */
};

struct kp_facts {
    const char *title;
    struct kp_fact *at;
    size_t n, capacity;
};

struct kp_writer;

/* A format. A function that is NULL: the format has no such blocks. */
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
    struct kp_out out;                   /* what is displayed; the sink, of a document; the first error */
    const struct kp_session *session;    /* of the blocks that follow */
    const struct kp_launch_info *launch; /* of the rows that follow */
    bool shared;                         /* rows of several sessions are in one table */
    bool nvtx;                           /* rows of launches have the columns of NVTX */
};

/* Before the first block of a page. The layout must stay until the page ends. */
void kp_write_begin(struct kp_writer *w, const struct kp_layout *layout);
/* What a field says in the rows that follow, where they have nothing else for it. */
void kp_write_field(struct kp_writer *w, size_t field, const char *text);
/* The process that the session is of; opens a document. */
void kp_write_process(struct kp_writer *w);
void kp_write_heading(struct kp_writer *w, enum kp_level level, const char *text);
/* In rows, the first three fields are the title, the attribute and the value. */
void kp_write_facts(struct kp_writer *w, const struct kp_facts *facts);
/* A table: its head, its rows, its end. The table must stay until its end. */
void kp_write_table(struct kp_writer *w, const struct kp_table *table);
void kp_write_row(struct kp_writer *w, const char *const *cells);
void kp_write_table_end(struct kp_writer *w);
/* The head of the writer's launch. `quick`: as in kp_shown. */
void kp_write_launch(struct kp_writer *w, bool quick);
/* Lines, perhaps none, as a table of name, unit and value. */
void kp_write_metrics(struct kp_writer *w, const struct kp_lines *lines);
/* Which of the lines have no value, and why. */
void kp_write_missing(struct kp_writer *w, const struct kp_lines *lines);
/* Lines that hold at least one value, in the way that `body` says; a table of them where it names no drawing. */
void kp_write_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines);
/* `n` > 0 timelines. `dropped`: as kp_series_dropped. */
void kp_write_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped);
void kp_write_verdict(struct kp_writer *w, const struct kp_verdict *verdict);
/* The messages of the rules of a section. */
void kp_write_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section);
/* The hottest source lines, and the instructions of a function: see source_table.h. In rows, the first seven fields are
 * function, offset, file, line, the calls that lead there, opcode and instruction. */
void kp_write_source_lines(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help);
void kp_write_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f);
void kp_write_stacks(struct kp_writer *w, struct kp_stack_totals *stacks);
/* The summary over the run. */
void kp_write_summary(struct kp_writer *w, const struct kp_summary *summary);
/* A sentence; with a `mark` (such as "Note", else NULL) a paragraph that it opens. */
void kp_write_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text);
/* What follows stands apart. */
void kp_write_gap(struct kp_writer *w);
/* The account of the session; closes a document. */
void kp_write_account(struct kp_writer *w, const struct kp_choice *choice);
/* Ends the page, or the document, and frees what the writer holds. Returns out.rc. */
int kp_write_end(struct kp_writer *w);

/* Copies of a fact; a value that is NULL or "" is none. 0 or -ENOMEM. */
int kp_facts_add(struct kp_facts *f, const char *attribute, const char *value, bool is_list);
void kp_facts_free(struct kp_facts *f);

#endif
