/*
 * Reads: copies to the host inside the open window. The program goes on from what it has read, so a repetition of the
 * window must read the same: otherwise it is not an execution that the program could have had. So each value is logged,
 * and compared in every repetition before the next operation is issued. The program keeps the memory of its own
 * execution.
 *
 * A read belongs to a site: the last kernel and the function called. At its first read of a site the window closes, so
 * that a value that differs from run to run costs no launches. It stays open at sites whose values came out equal, and
 * the more of them did, the more reads it accepts.
 */
#ifndef KP_PRELOAD_JOURNAL_READS_H
#define KP_PRELOAD_JOURNAL_READS_H

#include "preload/journal/state.h"

/* Returns true if the open window accepts the read `op`, about to be made by `symbol`; reserves room for what it
 * returns later. */
bool kp_reads_admit(struct kp_journal *j, const struct kp_op *op, const char *symbol);

/* Makes `i`, an operation just recorded, a read of the current site. */
void kp_reads_begin(struct kp_journal *j, struct kp_item *i, const char *symbol);

/* Logs what the program has read; a value that comes later, in its stream, after the program's copy. Returns false if
 * it could not be logged. Call it before anything can change the value. */
bool kp_reads_log(struct kp_journal *j, struct kp_item *i);

/* Returns true if reads of the item's site came out equal before, often enough for those of the open window. */
bool kp_reads_trusted(const struct kp_item *i);

/* Waits, in limited time, for values that may still be on their way to pinned memory, and for host functions. Returns
 * false if they have not arrived. */
bool kp_reads_arrive(struct kp_journal *j);

/* Collects the log once the window's work is done. Operations after a read that was not logged are not repeated. */
void kp_reads_collect(struct kp_journal *j);

/* Leaves the log's device memory to kp_defer_free. */
void kp_reads_leave_log(struct kp_journal *j);

/* Reads again, once earlier work is done, and compares. Returns KP_ISSUE_CUT, and sets j->cut, if the value differs. */
CUresult kp_reads_again(struct kp_journal *j, struct kp_item *i);

/* Learns from a repetition that went well, or from the read that ended it: j->cut. */
void kp_reads_learn(struct kp_journal *j, bool well);

#endif
