/* LINK: -fsanitize=thread -lcuda */
/* A program built with ThreadSanitizer. */
#include "p_direct.c"
