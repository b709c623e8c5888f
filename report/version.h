/* The one place of the version number. */
#ifndef KP_REPORT_VERSION_H
#define KP_REPORT_VERSION_H

#define KP_VERSION "0.1.0"

#endif
