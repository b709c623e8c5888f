/* Warns of flags without effect: an option that they need is missing, or what is written instead of pages does not have
 * what they choose. One thread. */
#ifndef KP_CMD_IDLE_H
#define KP_CMD_IDLE_H

#include <stdbool.h>
#include <stddef.h>

struct kp_option;
struct kp_options;
struct kp_query;

/* Notes that a flag was given. Variables and files of options are not noted: they may serve many runs. */
void kp_idle_note(const struct kp_option *row);

/* Returns true if a flag was noted: that of the field at `offset` of struct kp_options. */
bool kp_idle_has_noted(size_t offset);

/* Warns on stderr, with a line each, of noted flags without effect under `o`. */
void kp_idle_tell(const struct kp_options *o);

/* Returns true if a list of flags, NULL at the end, has one. */
bool kp_idle_heeds(const char *const *heeds, const char *flag);

/* Does the same for noted flags, and those of the queries in `q`, that do not affect the answer of a sub-command. */
void kp_idle_tell_answer(const char *command, const char *const *heeds, const struct kp_query *q);

/* Does the same for force-overwrite if nothing is `written` that it could replace. `writers`: the flags of the
 * sub-command that write files, such as `--html or --trace-json`. */
void kp_idle_tell_overwrite(const struct kp_options *o, bool written, const char *writers);

/* Does the same for the order and number of the kernels that `kprof diff` lists, if it has not `listed` any. */
void kp_idle_tell_lists(const struct kp_options *o, bool listed);

/* What `kprof report` writes in place of pages; bits. */
enum kp_instead {
    KP_INSTEAD_JSON = 1,
    KP_INSTEAD_HTML = 2,
    KP_INSTEAD_OPEN = 4, /* HTML that is shown, in a file that nobody named */
    KP_INSTEAD_TRACE = 8,
    KP_INSTEAD_FOLDED = 16,
};

/* Warns in the same way of noted flags that change none of what is written (bits of kp_instead; 0 is pages). */
void kp_idle_tell_instead(const struct kp_options *o, unsigned written);

#endif
