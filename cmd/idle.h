/* Warns of flags without effect, because an option that they need is missing. One thread. */
#ifndef KP_CMD_IDLE_H
#define KP_CMD_IDLE_H

struct kp_option;
struct kp_options;

/* Notes that a flag was given. Variables and files of options are not noted: they may serve many runs. */
void kp_idle_note(const struct kp_option *row);

/* Warns on stderr, with a line each, of noted flags without effect under `o`. */
void kp_idle_tell(const struct kp_options *o);

#endif
