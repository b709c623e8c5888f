/* How the process ends; process.h has what the doors call. */
#ifndef KP_PRELOAD_PROCESS_ENDING_H
#define KP_PRELOAD_PROCESS_ENDING_H

/* Closes the last window, before the exit handlers of the driver and of CUPTI run; an exit handler itself. */
void kp_ending_at_exit(void);

#endif
