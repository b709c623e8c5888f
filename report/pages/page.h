/*
 * Prints a whole session as text, CSV or JSON: in the library at the end, and later in `kprof report`.
 */
#ifndef KP_REPORT_PAGES_PAGE_H
#define KP_REPORT_PAGES_PAGE_H

#include "base/sink.h"
#include "report/model/lookup.h"
#include "report/store/store.h"
#include "report/view/display.h"

struct kp_choice;
struct kp_writer;
/* The source of a session's launches. */
struct kp_launches {
    /* Calls `fn` for each launch by ascending id, like kp_store_each_result. Pages may call it more than once. */
    int (*each)(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err);
    /* Does the same for results with only the metrics `only`, a list that ends with NULL, if that is faster; else
     * NULL. */
    int (*each_with)(void *from, const char *const *only, int (*fn)(struct kp_result *r, void *arg), void *arg,
                     char **err);
    void *from;
    struct kp_lookup lookup;        /* finds stacks and code by the ids in launches */
    const struct kp_choice *choice; /* set by `each` if it leaves out launches that were not chosen; else NULL */
};

/* Prints the pages of `d`. Text begins with the process line and ends with the account and, for an incomplete
 * session, with a line that says so. CSV is one page, JSON the whole session whatever the page; neither has other
 * lines. Numbers do not depend on the program's locale. Returns 0, the error of `out`, -ENOMEM or an error of the
 * launches; *err is a malloc'ed line or NULL. */
int kp_page_print(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err);
/* Does the same with any writer, which the caller ends; ignores the format of `d`. A format of rows gets one page. */
int kp_page_write(struct kp_writer *w, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err);
/* Writes a stored session as kp_page_write does. */
int kp_page_write_store(struct kp_writer *w, const struct kp_display *d, struct kp_store *store, char **err);
/* Prints a stored session as kp_page_print does. */
int kp_page_print_store(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err);

/* Reports that `d` shows none of the stored launches, and sets *unmatched then; else prints nothing. The line names the
 * kernel nearest to `kernel_name`, the option from which d->chooser was made, and the kernels of the session. Returns
 * the same as kp_page_print. */
int kp_page_tell_unmatched(const struct kp_sink *out, const struct kp_display *d, const char *kernel_name,
                           struct kp_store *store, bool *unmatched, char **err);

/* Prints `n` stored sessions together in CSV or JSON. CSV is one table whose rows name their process; JSON is one
 * document that contains those of the sessions. */
int kp_page_print_stores(const struct kp_sink *out, const struct kp_display *d, struct kp_store *const *stores,
                         size_t n, char **err);

struct kp_summary;
/* Prints one of several sessions as text, like kp_page_print_store. Adds launches of the pages details or summary to
 * `summary`, which the caller prints in the end. NULL: the page has its own summary. */
int kp_page_part(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store,
                 struct kp_summary *summary, char **err);

#endif
