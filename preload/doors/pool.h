/* Trampolines for functions returned as pointers: one for each driver function and flavour. Read by trampolines.S too.
 */
#ifndef KP_PRELOAD_DOORS_POOL_H
#define KP_PRELOAD_DOORS_POOL_H

#define KP_GATE_POOL 1024

#endif
