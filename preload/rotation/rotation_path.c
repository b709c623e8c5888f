/* The NVTX path of a launch: the names of the push-pop ranges that are open on its thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "preload/rotation/rotation_state.h"
#include "report/model/launch_names.h"

static bool is_of_path(const struct kp_nvtx *n, const struct kp_nvtx_range *r)
{
    return r->kind == KP_NVTX_PUSH_POP && r->thread == n->thread;
}

/* Text ends are hashed, too, so that "a" with "bc" differs from "ab" with "c". */
uint64_t kp_rotation_path(const struct kp_nvtx *n)
{
    uint64_t hash = n->thread != 0;
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (!is_of_path(n, r))
            continue;
        hash = kp_hash(r->domain, strlen(r->domain) + 1, hash);
        for (const char *at = r->name; *at;) {
            char next[2];
            size_t len = kp_range_next(r->name, &at, next);
            hash = kp_hash(next, len, hash);
        }
        hash = kp_hash("", 1, hash);
    }
    return hash;
}

/* Adds the range to those of a path. 0 or -ENOMEM. */
static int add_range(struct kp_nvtx *path, const struct kp_nvtx_range *r)
{
    struct kp_nvtx_range named = *r;
    named.name = kp_range_without_numbers(r->name);
    if (!named.name)
        return -ENOMEM;
    named.category = named.payload = (char *)"";
    int rc = kp_nvtx_add(path, &named);
    free(named.name);
    return rc;
}

int kp_rotation_keep_path(struct kp_nvtx *n)
{
    struct kp_nvtx path = {.thread = n->thread};
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n_ranges; i++)
        if (is_of_path(n, &n->ranges[i]))
            rc = add_range(&path, &n->ranges[i]);
    path.thread_name = n->thread_name;
    path.stream_name = n->stream_name;
    n->thread_name = n->stream_name = NULL;
    kp_nvtx_free(n);
    *n = path;
    return rc;
}

char *kp_rotation_say_path(const struct kp_nvtx *n)
{
    char *text = NULL;
    size_t size;
    bool numbers = false;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs(!n->n_ranges ? "in no NVTX range" : n->n_ranges == 1 ? "in the NVTX range " : "in the NVTX ranges ", to);
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        fprintf(to, "%s%s%s%s", i ? " / " : "", r->domain, *r->domain ? "@" : "",
                *r->name ? r->name : kp_range_nameless);
        numbers |= kp_range_has_number(r->name);
    }
    fputs(numbers ? KP_KIND_NUMBERS : "", to);
    if (kp_text_end(to, &text)) {
        free(text);
        return NULL;
    }
    kp_blank_controls(text, strlen(text)); /* names may contain anything */
    return text;
}
