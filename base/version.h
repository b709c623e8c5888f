/* Defines the version number and the library's name, once for all files. */
#ifndef KP_BASE_VERSION_H
#define KP_BASE_VERSION_H

#define KP_VERSION "0.1.0"

/* The name of the preloaded file, and its DT_SONAME. */
#define KP_LIBRARY "libkprof.so"

#endif
