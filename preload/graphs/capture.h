/*
 * A capture of our own: launches issued into its stream do not run, but form a graph.
 *
 * Threads: the context is current, and nobody else calls the driver meanwhile.
 */
#ifndef KP_PRELOAD_GRAPHS_CAPTURE_H
#define KP_PRELOAD_GRAPHS_CAPTURE_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"
#include "preload/program/launch.h"

/* Opens a capture on a new stream. Returns false if the driver cannot. */
bool kp_capture_begin(const struct kp_driver *d, CUstream *stream);
/* Issues `l` into the capture. Returns the driver's code. */
CUresult kp_capture_launch(CUstream stream, const struct kp_launch *l);
/* Ends the capture and its stream. Returns the graph, which the caller destroys; NULL if the capture failed. */
CUgraph kp_capture_end(const struct kp_driver *d, CUstream stream);

/* Launches `l`, on its stream, as the only node of a graph. Returns false if that cannot be made, or the driver refuses
 * it: then nothing was launched. */
bool kp_capture_run(const struct kp_driver *d, const struct kp_launch *l);

#endif
