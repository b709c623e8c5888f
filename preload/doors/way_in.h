/* How doors enter the gate, which may close a window. Threads: any. */
#ifndef KP_PRELOAD_DOORS_WAY_IN_H
#define KP_PRELOAD_DOORS_WAY_IN_H

/* Enters the gate shared, as kp_gate_enter_shared does: at once if it is free, else as work (base/work.h). `symbol` is
 * the driver's function, static text. */
void kp_door_enter_shared(const char *symbol);

#endif
