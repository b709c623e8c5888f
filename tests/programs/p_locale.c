/* LINK: -lcuda */
/* A program of its user's language: numbers have decimal commas where the locale says so, also in a thread's own
 * locale. */
#include "linked.h"

#include <locale.h>

int main(void)
{
    const char *set = setlocale(LC_ALL, "");
    int wrong;

    printf("locale: %s, %.3f\n", set ? set : "none", 1234567.125);
    wrong = run_scenario(&linked);
    uselocale(newlocale(LC_ALL_MASK, "", NULL));
    wrong |= run_scenario(&linked);
    printf("still: %.3f, %s\n", strtod("0,5", NULL) * 2, localeconv()->decimal_point);
    return wrong;
}
