/*
 * Events that stand in for the program's when its records and waits are issued again, so that the program's events keep
 * the state of its own execution.
 */
#ifndef KP_PRELOAD_JOURNAL_EVENT_TWINS_H
#define KP_PRELOAD_JOURNAL_EVENT_TWINS_H

#include "preload/journal/state.h"

/* Make events that replace the program's when records and waits are issued again, and destroy them. Call them in the
 * window's context. Returns false if an event lacks one that several streams need. */
bool kp_event_twins_make(struct kp_journal *j);
void kp_event_twins_free(struct kp_journal *j);

/* Substitutes such events for those that a launch records by its attributes, after the program's own launch: the
 * program may destroy its events from then on. Without such an event the launch records none. Call it in the window's
 * context, on the record's launch. */
void kp_event_twins_take(struct kp_journal *j, struct kp_launch *l);

/* Returns the twin of an event; NULL: it has none. */
CUevent kp_event_twin(const struct kp_journal *j, uint64_t event);

#endif
