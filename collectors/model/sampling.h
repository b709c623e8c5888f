/* The sampling interval of warps. */
#ifndef KP_COLLECTORS_MODEL_SAMPLING_H
#define KP_COLLECTORS_MODEL_SAMPLING_H

enum {
    KP_PCSAMP_INTERVAL_AUTO = -1,
    KP_PCSAMP_INTERVAL_BASE = 5, /* intervals are 2^exponent cycles; this is the lowest exponent */
    KP_PCSAMP_INTERVAL_MAX = 31 - KP_PCSAMP_INTERVAL_BASE,
};

#endif
