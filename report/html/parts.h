/* What the files of the HTML writer share. */
#ifndef KP_REPORT_HTML_PARTS_H
#define KP_REPORT_HTML_PARTS_H

#include "report/html/data.h"
#include "report/view/launch_ranges.h"
#include "report/write/writer.h"

/* A launch that is written in full: the drafts of its parts, each the elements of an array. */
struct kp_full {
    bool open;
    struct kp_draft set, values; /* the metrics that it shows, each once, and their values */
    struct kp_draft sections;    /* numbers of sections */
    struct kp_draft blocks;      /* of the present section */
    struct kp_draft advice, roofs, series, verdict, source;
    size_t n_values, n_blocks;
    size_t title;  /* of the present section */
    size_t launch; /* its number among the launches */
    size_t *shown; /* by metric: the launch that showed it last, + 1 */
    size_t n_shown;
};

struct kp_html {
    struct kp_writer base;
    struct kp_data data;
    struct kp_full full;
    struct kp_draft facts;          /* of the present session */
    struct kp_launch_ranges ranges; /* of the present session */
    size_t n_full;
};

/* Writes a launch as an element of the list of all: script/launches.js names the fields. `full`: its number among those
 * in full, or -1. Returns its number. */
size_t kp_html_launch(struct kp_html *h, const struct kp_shown *s, long full);
/* Writes roofs and points of a roofline as an array. */
void kp_html_roofs(struct kp_data *d, FILE *to, const struct kp_lines *lines);
/* Writes the values by instruction of a launch, and the code that they belong to: elements of an array. */
void kp_html_source(struct kp_data *d, FILE *to, const struct kp_source_map *source);
/* Writes the session: its process, account and facts. */
void kp_html_session(struct kp_html *h, const struct kp_choice *choice);
/* Writes the timeline of the present session as a member of an object; nothing if there is none. */
void kp_html_timeline(struct kp_html *h, FILE *to);
/* Returns the number of a rule, with its section. */
size_t kp_html_rule(struct kp_data *d, const struct kp_rule *rule, const struct kp_section *section);

#endif
