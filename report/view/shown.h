/* The shown parts of a launch: its sections with their lines, and the messages of rules. */
#ifndef KP_REPORT_VIEW_SHOWN_H
#define KP_REPORT_VIEW_SHOWN_H

#include "report/define/source.h"
#include "report/judge/rules.h"
#include "report/view/display.h"
#include "report/view/lines.h"

struct kp_wanted {
    const struct kp_section **sections; /* to free() */
    size_t n;
    const char *metrics; /* comma list; not owned */
};

/* Finds the selected sections; `set` and `sections` are as in kp_sections_select(). Both were checked before, at the
 * start of the session or as options. Sections are left out if they came from a folder of section files that is no
 * longer loaded. 0 or -ENOMEM. */
int kp_find_wanted(const char *set, const char *sections, const char *metrics, struct kp_wanted *w);
/* Returns true if the launch has the counters of kp_section_quick() instead of the requested ones because it must not
 * be replayed. */
bool kp_has_quick_instead(const struct kp_view *v, const struct kp_wanted *asked);
/* Adds the lines of kp_lines_of_list, with the note of the launch. 0 or -ENOMEM; `out` must be empty. */
int kp_lines_of_metrics(const char *list, const struct kp_view *v, struct kp_lines *out);
/* The title of the section with the user's metrics. */
extern const char kp_metrics_title[];

struct kp_shown {
    struct kp_view view;
    struct kp_messages messages;     /* of the chosen rules, in the sections shown */
    struct kp_messages beyond;       /* if sections were chosen: of all sections of the session and of the choice */
    const struct kp_messages *gains; /* one of the two: a launch's possible gains do not depend on the display */
    struct kp_source_map source;
    const struct kp_section **sections; /* asked for when the session was made, or chosen for display */
    size_t n;
    const char *metrics; /* the user's list, shown after the sections */
    bool quick;          /* the first section is kp_section_quick(), which replaces the sections asked for */
};

/* Fills `out`. `out` and the arguments must stay in place until kp_shown_free. 0, or -ENOMEM with nothing to free. */
int kp_shown_of(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                struct kp_shown *out);
void kp_shown_free(struct kp_shown *s);
/* Returns true if the section at `at` was asked for. */
bool kp_shown_is_asked_for(const struct kp_shown *s, size_t at);
/* Returns the title of section `at`, and its lines by name: of header, bodies or both, though a body's rows may come
 * twice. The index after the last section stands for the user's metrics. 0 or -ENOMEM; `out` must be empty. */
const char *kp_shown_title(const struct kp_shown *s, size_t at);
int kp_shown_lines(const struct kp_shown *s, size_t at, enum kp_details details, struct kp_lines *out);

#endif
