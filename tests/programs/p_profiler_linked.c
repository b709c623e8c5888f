/* LINK: -lcuda -lcupti -ldl -lpthread */
#define LINKED
#include "p_profiler.c"
