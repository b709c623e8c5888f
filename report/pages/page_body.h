/* Shared declarations of the pages: one function for each page. */
#ifndef KP_REPORT_PAGES_PAGE_BODY_H
#define KP_REPORT_PAGES_PAGE_BODY_H

#include <stdio.h>

#include "report/pages/page.h"
#include "report/write/cells.h"
#include "report/write/writer.h"

/* The heading of a column of ranges; see kp_range_title. */
#define KP_NVTX_RANGE "NVTX Range"

/* A session being printed. */
struct kp_page {
    const struct kp_display *display;
    const struct kp_session *session;
    const struct kp_launches *launches;
    struct kp_summary *summary; /* the page adds its launches here; NULL: details have their own */
    char **err;
    bool shared; /* several sessions share the table: each row names its process */
};

/* Calls `fn` for each launch, with the metrics and the name to show. */
int kp_page_each(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg);

/* Does the same if `fn` looks at these metrics alone, a list that ends with NULL, and at no code, series or
 * variants. */
int kp_page_each_with(const struct kp_page *p, const char *const *only, int (*fn)(struct kp_result *r, void *arg),
                      void *arg);

/* Writes the blocks of a page, for `n` sessions: several only if w->kind->rows. Returns errors of the launches or of
 * memory; errors of the writer stay there. */
typedef int kp_page_fn(const struct kp_page *pages, size_t n, struct kp_writer *w);
kp_page_fn kp_page_details, kp_page_raw, kp_page_session, kp_page_summary, kp_page_trace, kp_page_source, kp_page_pm,
    kp_page_timeline, kp_page_series, kp_page_ranks;
/* Write these pages as the CSV of ncu, in place of those above. */
kp_page_fn kp_page_ncu_session, kp_page_ncu_source;
/* Writes the pages details and raw if the display groups launches. */
kp_page_fn kp_page_grouped;
/* Makes this the session of all further blocks. */
void kp_page_enter(const struct kp_page *p, struct kp_writer *w);
/* Returns true if samples of warps of this launch were lost. */
bool kp_page_has_dropped(const struct kp_result *r);
/* Notes how many samples of warps were lost, and how to keep them; *told: any were lost. 0 or -ENOMEM. */
int kp_page_tell_dropped(struct kp_writer *w, const struct kp_view *v, bool *told);
/* Notes how many launches the page leaves out: the number, `one` or `several` by it, and `what`. */
void kp_page_tell_without(struct kp_writer *w, uint64_t launches, const char *one, const char *several,
                          const char *what);

/* What a table leaves for names at least, and between its columns. */
enum { KP_PAGE_NAME_LEAST = 20, KP_PAGE_GAP = 2 };

/* Hides columns that stand before names in a line of `wide` bytes, in the order of `dispensable`, until the names have
 * room. widths[0..n): without gaps. `hidden` has room for n, all false. Returns the room; the minimum if hiding all of
 * them does not suffice. */
size_t kp_page_fit_columns(const size_t *widths, size_t n, const int *dispensable, size_t n_dispensable, size_t wide,
                           bool *hidden);

/* Writes the whole session, or several of them. */
int kp_page_json(const struct kp_page *pages, size_t n, FILE *to);

#endif
