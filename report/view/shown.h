/* What is shown of a launch: its sections with their lines, and the messages of rules. */
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

/* `set` and `sections` as kp_sections_select() takes them. They were checked when the session began, or when they were
 * given; what came from a folder of section files that is not at hand any more is left out. 0 or -ENOMEM. */
int kp_find_wanted(const char *set, const char *sections, const char *metrics, struct kp_wanted *w);
/* Whether the launch has the counters of the section of one pass instead of those asked for, as it must not be
 * replayed. */
bool kp_has_quick_instead(const struct kp_view *v, const struct kp_wanted *asked);
/* The lines of kp_lines_of_list, with the note of the launch. 0 or -ENOMEM; `out` must be empty. */
int kp_lines_of_metrics(const char *list, const struct kp_view *v, struct kp_lines *out);
/* The title of their section. */
extern const char kp_metrics_title[];

struct kp_shown {
    struct kp_view view;
    struct kp_messages messages; /* of the rules that were chosen, in the sections that are shown */
    struct kp_messages beyond; /* where sections were chosen: those of all sections of the session and of the choice */
    const struct kp_messages *gains; /* one of the two: what the launch could gain does not depend on what is shown */
    struct kp_source_map source;
    const struct kp_section **sections; /* asked for when the session was made, or chosen for display */
    size_t n;
    const char *metrics; /* the user's list, shown behind the sections */
    bool quick; /* the first section is kp_section_quick(), which the launch has instead of what was asked for */
};

/* Fills `out`, which must stay where it is until kp_shown_free, as must what is given. 0, or -ENOMEM with nothing to
 * free. */
int kp_shown_of(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                struct kp_shown *out);
void kp_shown_free(struct kp_shown *s);
/* Whether the section at `at` is one that was asked for. */
bool kp_shown_is_asked_for(const struct kp_shown *s, size_t at);
/* The title of section `at`, and its lines by name: of header, bodies or both, though a body's rows may come twice. The
 * one behind the last is that of the user's metrics. 0 or -ENOMEM; `out` must be empty. */
const char *kp_shown_title(const struct kp_shown *s, size_t at);
int kp_shown_lines(const struct kp_shown *s, size_t at, enum kp_details details, struct kp_lines *out);

#endif
