/* What stacks.py calls: the walker as libkprof.so has it, in a library of its own that ctypes can open. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "preload/os/symbols.h"
#include "preload/who/python.h"

void *(*kp_real_dlsym)(void *handle, const char *name) = dlsym;

size_t walk(char *text, size_t size);
size_t walk_elsewhere(void (*callback)(void));
void walk_for(double seconds);
double walk_cost_ns(size_t frames, int times);

/* A line "function<TAB>file<TAB>line" for each frame into text[size]; the number of frames. */
size_t walk(char *text, size_t size)
{
    struct kp_python_frame frames[KP_PYTHON_FRAMES];
    size_t n = kp_python_frames(frames, KP_PYTHON_FRAMES);
    *text = '\0';
    for (size_t i = 0, at = 0; i < n; i++) {
        char *function, *file;
        if (kp_python_describe(&frames[i], &function, &file))
            return 0;
        int put = snprintf(text + at, size - at, "%s\t%s\t%u\n", function, file, frames[i].line);
        free(function);
        free(file);
        if (put < 0 || (size_t)put >= size - at)
            return 0;
        at += (size_t)put;
    }
    return n;
}

static void *count_frames(void *n)
{
    struct kp_python_frame frames[KP_PYTHON_FRAMES];
    *(size_t *)n = kp_python_frames(frames, KP_PYTHON_FRAMES);
    return NULL;
}

static struct elsewhere {
    void (*callback)(void);
    size_t frames;
} elsewhere;

static void *run_elsewhere(void *arg)
{
    struct elsewhere *e = arg;
    size_t before = 0, after = 0;
    count_frames(&before);
    e->callback();
    count_frames(&after);
    e->frames = before + after;
    return NULL;
}

/* Runs the callback, which is Python's, in a thread that Python knows only as long as that takes. Returns the frames
 * that the thread sees before and after. */
size_t walk_elsewhere(void (*callback)(void))
{
    pthread_t thread;
    elsewhere = (struct elsewhere){.callback = callback};
    if (pthread_create(&thread, NULL, run_elsewhere, &elsewhere))
        return SIZE_MAX;
    pthread_join(thread, NULL);
    return elsewhere.frames;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void walk_for(double seconds)
{
    size_t n;
    for (double end = now_ns() + seconds * 1e9; now_ns() < end;)
        count_frames(&n);
}

/* Mean time of a walk of at most `frames` frames. */
double walk_cost_ns(size_t frames, int times)
{
    struct kp_python_frame out[KP_PYTHON_FRAMES];
    double start = now_ns();
    for (int i = 0; i < times; i++)
        kp_python_frames(out, frames);
    return (now_ns() - start) / times;
}
