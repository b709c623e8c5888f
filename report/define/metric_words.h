/*
 * Says what a metric is, for those that no library describes.
 *
 * Threads: any.
 */
#ifndef KP_REPORT_DEFINE_METRIC_WORDS_H
#define KP_REPORT_DEFINE_METRIC_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes into text[0..size) what the metric is. Returns false if unknown, with the text untouched. */
bool kp_section_metric_words(const char *name, char *text, size_t size);

#endif
