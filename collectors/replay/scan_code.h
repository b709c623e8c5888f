/*
 * The code of the kernels that find out which memory has changed, and that copy it. See scan.h.
 */
#ifndef KP_COLLECTORS_REPLAY_SCAN_CODE_H
#define KP_COLLECTORS_REPLAY_SCAN_CODE_H

enum {
    KP_SCAN_THREADS = 512, /* two thread blocks per multiprocessor: one reads while the other adds up */
    KP_SCAN_BLOCKS_PER_SM = 2,
    KP_SCAN_PARTS = 2, /* of a block of memory, which threads read one after the other */
    KP_SCAN_UNITS = 4, /* of 16 bytes, that a thread reads of a part */
    KP_SCAN_LANES = 4, /* sums of 64 bits that make a digest */
    KP_SCAN_WORDS =
        22, /* 32-bit words of the key that a thread needs for a part: one per word, two more for each later lane */
    KP_MOVE_THREADS = 256,
};

/* Returns the PTX of kprof_scan and kprof_move, malloc'ed, or NULL without memory. It uses no stack. */
char *kp_scan_code(void);

#endif
