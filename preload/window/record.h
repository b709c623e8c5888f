/*
 * The window that is open: its context, its strategy, and the operations that it has recorded. Other files of this room
 * read and write it; none outside does.
 *
 * All functions are called inside the gate's exclusive section, under kp_guard.
 */
#ifndef KP_PRELOAD_WINDOW_RECORD_H
#define KP_PRELOAD_WINDOW_RECORD_H

#include <pthread.h>

#include "preload/window/snapshot.h"
#include "preload/window/window.h"

/* The most operations of a window, launches included: each is issued again for every pass. */
enum { KP_MOST_ITEMS = 1 << 16 };

/* The most host memory copied for the operations of one window, byte. */
#define KP_MOST_COPIED ((size_t)256 << 20)

struct kp_item {
    bool is_launch;
    unsigned epoch;  /* changes where the program has waited for something */
    struct kp_op op; /* real NULL: the driver refused it */
    uint64_t ticket;
    CUdeviceptr backup; /* of new memory, which the operation copies back */
    struct kp_launch launch;
    struct kp_graph graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_known_config config;      /* all 0 = not known */
    struct kp_result *result;           /* NULL: not wanted */
};

/* An event of the program's, and the one that stands for it when its records and waits are issued again. */
struct kp_twin {
    CUevent of, event;
};

struct kp_window {
    bool open;
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_strategy *strategy; /* how its launches are counted */
    enum kp_range_mode mode;
    const char *obstacle; /* why it is counted instead of replayed */
    struct kp_item *items;
    size_t n, cap;
    size_t launches, wanted, unwanted_in_a_row, copied;
    struct kp_snapshot host; /* host memory that its launches can reach */
    double opened_ns, ours_ns;
    bool has_per_thread;
    pthread_t per_thread;     /* whose default stream launches went to */
    bool hands_off;           /* the driver must not be called */
    bool hangs;               /* its launches did not end in time: nothing of the driver may be waited for */
    bool unsettled;           /* an operation was issued that may still run */
    bool has_stream, several; /* operations were issued into one stream; into more than one */
    CUstream stream;          /* the first */
    struct kp_twin *twins;
    size_t n_twins;
    size_t stuck; /* index + 1 of the launch that did not end when it was rehearsed, 0 = none */
};

extern struct kp_window kp_window;

/* A new last item, all 0; NULL without memory. */
struct kp_item *kp_record_new(void);
void kp_record_drop_last(void);

/* Takes the launch over, with the copy of its arguments, as the last item. False without memory: it stays the
 * caller's. */
bool kp_record_launch(struct kp_launch *l, const struct kp_candidate *what, struct kp_known_function *f);

/* Where the launch goes. */
CUstream kp_record_stream(const struct kp_launch *l);
bool kp_record_per_thread(const struct kp_launch *l);
/* Notes the stream of an operation that joins; each has to be told of. */
void kp_record_note_stream(CUstream stream);

/* The program's calls have all returned: takes out the operations that the driver refused. */
void kp_record_drop_refused(void);

/* Forgets the window; what was recorded is freed. The driver is not called. */
void kp_record_reset(void);

#endif
