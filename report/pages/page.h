/*
 * A whole session as text, CSV or JSON: what the library prints at the end and what `kprof report` prints later.
 * Threads: one at a time for each store.
 */
#ifndef KP_REPORT_PAGES_PAGE_H
#define KP_REPORT_PAGES_PAGE_H

#include "base/sink.h"
#include "report/model/lookup.h"
#include "report/store/store.h"
#include "report/view/display.h"

struct kp_choice;
struct kp_writer;
/* Where the launches of a session are. */
struct kp_launches {
    /* Calls `fn` for each launch by ascending id, as kp_store_each_result does. Pages may call it more than once. */
    int (*each)(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err);
    void *from;
    struct kp_lookup lookup;        /* of what they name by id */
    const struct kp_choice *choice; /* set by `each` where it leaves launches out that were not chosen; else NULL */
};

/* Prints what `d` wants. Text begins with the process line and ends with the account and, for a session that is not
 * complete, with a line that says so; CSV is one page, JSON the whole session whatever the page, and neither has other
 * lines. Numbers do not depend on the program's locale. Returns 0, what `out` returned, -ENOMEM or an error of the
 * launches; *err is a malloc'ed line or NULL. */
int kp_page_print(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err);
/* The same with any writer, whose caller ends it: what `d` wants, but for its format. Of a format of rows one page. */
int kp_page_write(struct kp_writer *w, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err);
/* As kp_page_print for a stored session. */
int kp_page_print_store(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err);

/* Where `d` shows none of the launches that are stored: a line that says so and names the kernel nearest to
 * `kernel_name`, which d->kernel was made of, and the kernels of the session; *unmatched is set then. Nothing
 * otherwise. Returns as kp_page_print does. */
int kp_page_tell_unmatched(const struct kp_sink *out, const struct kp_display *d, const char *kernel_name,
                           struct kp_store *store, bool *unmatched, char **err);

/* `n` stored sessions together, as CSV or JSON: one table whose rows say of which process they are, or one document
 * that has those of the sessions. */
int kp_page_print_stores(const struct kp_sink *out, const struct kp_display *d, struct kp_store *const *stores,
                         size_t n, char **err);

struct kp_summary;
/* As kp_page_print_store, as text, for one of several sessions: the launches of the details page are added to
 * `summary`, which the caller prints in the end. NULL: the page has its own. */
int kp_page_part(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store,
                 struct kp_summary *summary, char **err);

#endif
