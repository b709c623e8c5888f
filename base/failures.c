#include "base/failures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const struct kp_failure_row kp_failure_rows[] = {
#define KP_FAILURE(id, status, name, text) [KP_FAILURE_##id] = {status, name, text},
#include "base/failures.def"
};

enum kp_failure kp_failure_find(const char *name)
{
    int f = 0;
    while (f < KP_FAILURES && strcmp(kp_failure_rows[f].name, name) != 0)
        f++;
    return (enum kp_failure)f;
}

enum kp_failure kp_failure_first(kp_failure_set set)
{
    int f = 0;
    while (f < KP_FAILURES && !(set >> f & 1))
        f++;
    return (enum kp_failure)f;
}

char *kp_failure_line(kp_failure_set set)
{
    enum kp_failure first = kp_failure_first(set);
    const struct kp_failure_row *row = &kp_failure_rows[first];
    char *line = NULL;
    size_t size;
    FILE *f = open_memstream(&line, &size);
    if (!f)
        return NULL;
    fprintf(f, "%s: %s", row->name, row->text);
    const char *before = " (also: ";
    for (int i = (int)first + 1; i < KP_FAILURES; i++)
        if (set >> i & 1) {
            fprintf(f, "%s%s", before, kp_failure_rows[i].name);
            before = ", ";
        }
    if (*before == ',')
        fputc(')', f);
    if (kp_text_end(f, &line)) {
        free(line);
        return NULL;
    }
    return line;
}
