/* The gate's exclusive section in parts, for kp_gate_alone (gate.h) and tests. Threads: any. */
#ifndef KP_PRELOAD_GATE_EXCLUSIVE_H
#define KP_PRELOAD_GATE_EXCLUSIVE_H

#include <stdbool.h>

/* Enter it like kp_gate_alone and kp_gate_alone_beside, without the guard. Return false if a wait timed out. */
bool kp_gate_enter_exclusive(long owner_ms, long patience_ms);
bool kp_gate_enter_beside(long owner_ms);
void kp_gate_leave_exclusive(void);
void kp_gate_exclusive_to_shared(void);

#endif
