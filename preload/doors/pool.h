/* Trampolines for functions returned as pointers: one for each driver function and flavour. Read by gate.S too. */
#ifndef KP_PRELOAD_GATE_POOL_H
#define KP_PRELOAD_GATE_POOL_H

#define KP_GATE_POOL 1024

#endif
