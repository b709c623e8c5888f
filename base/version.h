/* The one place of the version number, and of the library's name. */
#ifndef KP_BASE_VERSION_H
#define KP_BASE_VERSION_H

#define KP_VERSION "0.1.0"

/* The file that is preloaded, and its DT_SONAME. */
#define KP_LIBRARY "libkprof.so"

#endif
