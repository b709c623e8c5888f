/*
 * Every window ends in close.c: closed, given up, abandoned. window.h declares what other rooms call.
 */
#ifndef KP_PRELOAD_WINDOW_CLOSE_H
#define KP_PRELOAD_WINDOW_CLOSE_H

/* Ends the window without waiting for its launches, and reports none of them: the program goes on to do what the last
 * one waits for. */
void kp_window_abandon(void);

#endif
