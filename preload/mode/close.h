/*
 * Ends every window: closed, given up, or abandoned. window.h declares the functions for other rooms.
 */
#ifndef KP_PRELOAD_MODE_CLOSE_H
#define KP_PRELOAD_MODE_CLOSE_H

/* Ends the window without waiting for its launches, and reports none of them: the last one waits for the program to
 * go on. */
void kp_window_abandon(void);

#endif
