/*
 * The code of the kernels that find out which memory has changed, and that copy it. See scan.h.
 */
#ifndef KP_COLLECTORS_REPLAY_SCAN_CODE_H
#define KP_COLLECTORS_REPLAY_SCAN_CODE_H

enum {
    KP_SCAN_THREADS = 1024,
    KP_SCAN_UNITS = 4, /* of 16 byte that a thread reads of a block */
    KP_SCAN_LANES = 4, /* sums of 64 bit that make a digest */
    KP_SCAN_WORDS =
        22, /* of 32 bit of the key that a thread needs: one a word read, and two more for each later lane */
    KP_MOVE_THREADS = 256,
};

/* Returns the PTX of kprof_scan and kprof_move, malloc'ed, or NULL without memory. It uses no stack. */
char *kp_scan_code(void);

#endif
