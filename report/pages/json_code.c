#include "report/pages/json_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

/* Writes a word, "" if unknown. */
static void write_text(struct kp_json *j, const char *key, const char *word)
{
    kp_json_text(j, key, word ? word : "");
}

/* ---- ids ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int note(struct kp_json_ids *ids, uint64_t id)
{
    if (!id || (ids->n && bsearch(&id, ids->list, ids->n, sizeof id, compare_ids)))
        return 0;
    if (!KP_ROOM(ids->list, ids->n))
        return -ENOMEM;
    size_t at = ids->n++;
    for (; at && ids->list[at - 1] > id; at--)
        ids->list[at] = ids->list[at - 1];
    ids->list[at] = id;
    return 0;
}

void kp_page_json_code_free(struct kp_json_code *c)
{
    free(c->stacks.list);
    free(c->codes.list);
    *c = (struct kp_json_code){0};
}

/* ---- a launch ---- */

static void write_code_counts(struct kp_json *j, const struct kp_code_counts *c)
{
    kp_json_object(j, NULL, false);
    kp_json_count(j, "code", c->code);
    kp_json_array(j, "offsets", true);
    for (size_t i = 0; i < c->n_offsets; i++)
        kp_json_count(j, NULL, c->offsets[i]);
    kp_json_end(j);
    kp_json_array(j, "metrics", false);
    for (size_t m = 0; m < c->n_metrics; m++) {
        kp_json_object(j, NULL, true);
        kp_json_text(j, "name", c->metrics[m].name);
        kp_json_array(j, "values", true);
        for (size_t i = 0; i < c->n_offsets; i++)
            kp_json_count(j, NULL, c->metrics[m].values[i]);
        kp_json_end(j);
        kp_json_end(j);
    }
    kp_json_end(j);
    kp_json_end(j);
}

static void write_series(struct kp_json *j, const struct kp_series *s)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "name", s->name);
    kp_json_text(j, "unit", s->unit);
    kp_json_real(j, "start_ns", s->start_ns);
    kp_json_real(j, "interval_ns", s->interval_ns);
    kp_json_array(j, "values", true);
    for (size_t i = 0; i < s->n_values; i++)
        kp_json_real(j, NULL, s->values[i]);
    kp_json_end(j);
    kp_json_end(j);
}

int kp_page_json_launch_code(struct kp_json *j, struct kp_json_code *c, const struct kp_result *r)
{
    int rc = note(&c->stacks, r->launch.stack);
    if (r->launch.stack)
        kp_json_count(j, "stack", r->launch.stack);
    if (r->n_counts) {
        kp_json_array(j, "counts", false);
        for (size_t i = 0; i < r->n_counts; i++) {
            rc = rc ? rc : note(&c->codes, r->counts[i].code);
            write_code_counts(j, &r->counts[i]);
        }
        kp_json_end(j);
    }
    if (r->n_series) {
        kp_json_array(j, "series", false);
        for (size_t i = 0; i < r->n_series; i++)
            write_series(j, &r->series[i]);
        kp_json_end(j);
    }
    return rc;
}

/* ---- the document ---- */

static void write_frame(struct kp_json *j, const struct kp_frame *f)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "kind", f->kind == KP_FRAME_PYTHON ? "python" : "native");
    write_text(j, "function", f->function);
    write_text(j, "file", f->file);
    kp_json_count(j, "line", f->line);
    write_text(j, "module", f->module);
    kp_json_count(j, "offset", f->offset);
    kp_json_end(j);
}

static int write_stack(struct kp_json *j, const struct kp_lookup *lookup, uint64_t id)
{
    struct kp_stack s;
    int rc = kp_lookup_stack(lookup, id, &s);
    if (rc)
        return rc;
    kp_json_object(j, NULL, false);
    kp_json_count(j, "id", s.id);
    kp_json_array(j, "frames", false);
    for (size_t i = 0; i < s.n_frames; i++)
        write_frame(j, &s.frames[i]);
    kp_json_end(j);
    kp_json_end(j);
    kp_frames_free(&s);
    return 0;
}

static void write_location(struct kp_json *j, const struct kp_location *l)
{
    kp_json_object(j, NULL, true);
    kp_json_count(j, "file", l->file);
    kp_json_count(j, "line", l->line);
    if (l->parent)
        kp_json_count(j, "inlined_at", l->parent - 1);
    write_text(j, "function", l->function);
    kp_json_end(j);
}

static void write_instruction(struct kp_json *j, const struct kp_instruction *i)
{
    kp_json_object(j, NULL, true);
    kp_json_count(j, "offset", i->offset);
    if (i->location)
        kp_json_count(j, "location", i->location - 1);
    write_text(j, "opcode", i->opcode);
    write_text(j, "text", i->text);
    if (i->ptx)
        kp_json_count(j, "ptx", i->ptx);
    if (i->access_bits)
        kp_json_count(j, "access_bits", i->access_bits);
    kp_json_end(j);
}

/* The embedded files of the functions so far, each once. */
struct texts {
    struct kp_source_file *files;
    size_t n;
};

static bool has_text(const struct texts *t, const char *path)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->files[i].path, path))
            return true;
    return false;
}

/* Keeps the text of a new file, by taking it from `f`. */
static int keep_text(struct texts *t, struct kp_source_file *f)
{
    if (!f->text || has_text(t, f->path))
        return 0;
    if (!KP_ROOM(t->files, t->n))
        return -ENOMEM;
    t->files[t->n++] = *f;
    *f = (struct kp_source_file){0};
    return 0;
}

static void write_texts(struct kp_json *j, struct texts *t)
{
    kp_json_array(j, "source_files", false);
    for (size_t i = 0; i < t->n; i++) {
        kp_json_object(j, NULL, true);
        kp_json_text(j, "path", t->files[i].path);
        kp_json_text(j, "text", t->files[i].text);
        kp_json_end(j);
        free(t->files[i].path);
        free(t->files[i].text);
    }
    kp_json_end(j);
    free(t->files);
}

static void write_ptx(struct kp_json *j, const struct kp_code *c)
{
    kp_json_array(j, "ptx", false);
    for (size_t i = 0; i < c->n_ptx; i++) {
        kp_json_object(j, NULL, true);
        kp_json_count(j, "line", c->ptx[i].line);
        write_text(j, "text", c->ptx[i].text);
        kp_json_end(j);
    }
    kp_json_end(j);
}

static void write_code_body(struct kp_json *j, const struct kp_code *c)
{
    kp_json_object(j, NULL, false);
    kp_json_count(j, "id", c->id);
    write_text(j, "function", c->function);
    kp_json_count(j, "crc", c->crc);
    kp_json_array(j, "files", false);
    for (size_t i = 0; i < c->n_files; i++)
        kp_json_text(j, NULL, c->files[i].path);
    kp_json_end(j);
    kp_json_array(j, "locations", false);
    for (size_t i = 0; i < c->n_locations; i++)
        write_location(j, &c->locations[i]);
    kp_json_end(j);
    kp_json_array(j, "instructions", false);
    for (size_t i = 0; i < c->n_instructions; i++)
        write_instruction(j, &c->instructions[i]);
    kp_json_end(j);
    if (c->n_ptx)
        write_ptx(j, c);
    kp_json_end(j);
}

static int write_code(struct kp_json *j, const struct kp_lookup *lookup, uint64_t id, struct texts *texts)
{
    struct kp_code c;
    int rc = kp_lookup_code(lookup, id, &c);
    if (rc)
        return rc;
    write_code_body(j, &c);
    for (size_t i = 0; !rc && i < c.n_files; i++)
        rc = keep_text(texts, &c.files[i]);
    kp_code_free(&c);
    return rc;
}

static int or_nothing(int rc)
{
    return rc == -ENOENT ? 0 : rc;
}

int kp_page_json_all_code(struct kp_json *j, const struct kp_json_code *c, const struct kp_lookup *lookup)
{
    struct texts texts = {0};
    int rc = 0;
    kp_json_array(j, "stacks", false);
    for (size_t i = 0; !rc && i < c->stacks.n; i++)
        rc = or_nothing(write_stack(j, lookup, c->stacks.list[i]));
    kp_json_end(j);
    kp_json_array(j, "codes", false);
    for (size_t i = 0; !rc && i < c->codes.n; i++)
        rc = or_nothing(write_code(j, lookup, c->codes.list[i], &texts));
    kp_json_end(j);
    write_texts(j, &texts);
    return rc;
}
