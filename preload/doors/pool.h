/* Trampolines for functions handed out as pointers: one a driver function and flavour asked for. Read by gate.S too. */
#ifndef KP_PRELOAD_GATE_POOL_H
#define KP_PRELOAD_GATE_POOL_H

#define KP_GATE_POOL 1024

#endif
