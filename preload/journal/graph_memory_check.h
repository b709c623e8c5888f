/*
 * Memory that a graph of the window allocates: the launch of the graph has mapped it, and repetitions need it. The
 * calls that free it close the window first; the driver might also do so by itself if memory is short.
 */
#ifndef KP_PRELOAD_JOURNAL_GRAPH_MEMORY_CHECK_H
#define KP_PRELOAD_JOURNAL_GRAPH_MEMORY_CHECK_H

#include "preload/journal/state.h"

/* Notes that `exec`, which allocates memory, has been launched in the window. */
void kp_mapped_note(struct kp_journal *j, CUgraphExec exec);

/* Returns true if the memory is still there, as far as the driver reports. */
bool kp_mapped_still(const struct kp_journal *j);

#endif
