/* LINK: -fsanitize=address -lcuda */
/* A program built with AddressSanitizer. */
#include "p_direct.c"
