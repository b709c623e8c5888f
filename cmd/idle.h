/* Flags that do nothing, as what they need is not asked for. One thread. */
#ifndef KP_CMD_IDLE_H
#define KP_CMD_IDLE_H

struct kp_option;
struct kp_options;

/* Notes that a flag was given. Variables and files of options are no mistake: they may hold for many runs. */
void kp_idle_note(const struct kp_option *row);

/* Warns on stderr, with a line each, of the flags noted that have no effect with `o`. */
void kp_idle_tell(const struct kp_options *o);

#endif
