/* Code, its source files, and the values by instruction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/html/parts.h"

/* --- code, which launches of a kernel share --- */

/* Marks the files that instructions of the function come from, with those that they are inlined into. */
static void mark_files(const struct kp_source_map *s, const struct kp_source_function *f, bool *used)
{
    for (size_t i = f->first; i < f->end; i++) {
        unsigned steps = 0;
        for (const struct kp_location *l = s->instructions[i].location; l; l = kp_location_parent(f->code, l, &steps))
            if (l->file < f->code->n_files)
                used[l->file] = true;
    }
}

/* Returns the number of the file's text; -1 if there is none. */
static long text_of(struct kp_data *d, struct kp_code_cache *cache, const struct kp_code *code, uint32_t file)
{
    struct kp_draft draft;
    const char *line;
    size_t len;
    if (!kp_codecache_has_file(cache, code, file) || !kp_draft_begin(d, &draft))
        return -1;
    for (uint32_t at = 1; (line = kp_codecache_line(cache, code, file, at, &len)); at++) {
        fwrite(line, 1, len, draft.to);
        fputc('\n', draft.to);
    }
    return (long)kp_draft_add(d, &draft, KP_DATA_STRINGS);
}

/* Writes path and text of each file; of an unused one, only the path. */
static void write_files(struct kp_data *d, FILE *to, const struct kp_source_map *s, const struct kp_source_function *f)
{
    bool *used = calloc(f->code->n_files + 1, sizeof *used);
    if (used)
        mark_files(s, f, used);
    for (uint32_t i = 0; i < f->code->n_files; i++)
        fprintf(to, "%s[%zu,%ld]", i ? "," : "", kp_data_string(d, f->code->files[i].path),
                used && used[i] ? text_of(d, s->cache, f->code, i) : -1L);
    free(used);
}

/* Returns the number of a name that is demangled by `how`. */
static size_t name_of(struct kp_data *d, const char *mangled, char *(*how)(const char *mangled))
{
    char *name = how(mangled ? mangled : "");
    size_t n = kp_data_string(d, name ? name : mangled);
    free(name);
    return n;
}

static void write_locations(struct kp_data *d, FILE *to, const struct kp_code *code)
{
    for (size_t i = 0; i < code->n_locations; i++) {
        const struct kp_location *l = &code->locations[i];
        fprintf(to, "%s[%" PRIu32 ",%" PRIu32 ",%ld,%zu]", i ? "," : "", l->file, l->line, (long)l->parent - 1,
                name_of(d, l->function, kp_demangle_base));
    }
}

static size_t code_of(struct kp_data *d, const struct kp_source_map *s, const struct kp_source_function *f)
{
    struct kp_draft draft;
    if (!kp_draft_begin(d, &draft))
        return 0;
    fprintf(draft.to, "{\"name\":%zu,\"files\":[", name_of(d, f->code ? f->code->function : "", kp_demangle));
    if (f->code)
        write_files(d, draft.to, s, f);
    fputs("],\"locations\":[", draft.to);
    if (f->code)
        write_locations(d, draft.to, f->code);
    fputs("],\"instructions\":[", draft.to);
    for (size_t i = f->first; i < f->end; i++) {
        const struct kp_source_instruction *at = &s->instructions[i];
        const char *text = at->code ? at->code->text : NULL;
        text = text && *text ? text : at->code ? at->code->opcode : NULL;
        fprintf(draft.to, "%s[%" PRIu32 ",%ld,%zu", i > f->first ? "," : "", at->offset,
                at->location ? (long)(at->location - f->code->locations) : -1L, kp_data_string(d, text));
        if (at->code && f->code->n_ptx)
            fprintf(draft.to, ",%" PRIu32, at->code->ptx);
        fputc(']', draft.to);
    }
    fputs("],\"ptx\":[", draft.to);
    for (size_t i = 0; f->code && i < f->code->n_ptx; i++)
        fprintf(draft.to, "%s[%" PRIu32 ",%zu]", i ? "," : "", f->code->ptx[i].line,
                kp_data_string(d, f->code->ptx[i].text));
    fputs("]}", draft.to);
    return kp_draft_add(d, &draft, KP_DATA_CODES);
}

/* --- values --- */

/* A value of each instruction of a function. */
static uint64_t value_at(const struct kp_source_map *s, size_t i, enum kp_source_value what)
{
    struct kp_source_sums sums;
    kp_source_sums_of(s, &s->instructions[i], &sums);
    return sums.v[what];
}

static void write_values(FILE *to, const struct kp_source_map *s, const struct kp_source_function *f)
{
    static const char *const names[KP_AT_VALUES] = {
        [KP_AT_SAMPLES] = "samples",        [KP_AT_INSTRUCTIONS] = "instructions",    [KP_AT_DIVERGENT] = "divergent",
        [KP_AT_SECTORS_EXCESS] = "sectors", [KP_AT_WAVEFRONTS_EXCESS] = "wavefronts",
    };
    const char *gap = "";
    for (int what = 0; what < KP_AT_VALUES; what++) {
        if (!names[what] || !s->all.v[what])
            continue;
        fprintf(to, "%s\"%s\":[", gap, names[what]);
        for (size_t i = f->first; i < f->end; i++)
            fprintf(to, "%s%" PRIu64, i > f->first ? "," : "", value_at(s, i, (enum kp_source_value)what));
        fputc(']', to);
        gap = ",";
    }
}

/* Writes for each reason the instructions that wait for it, each followed by its samples. */
static void write_stalls(struct kp_data *d, FILE *to, const struct kp_source_map *s, const struct kp_source_function *f)
{
    const char *gap = "";
    for (size_t reason = 0; reason < KP_STALL_REASONS; reason++) {
        if (!s->all.stalls[reason])
            continue;
        fprintf(to, "%s[%zu", gap, kp_data_string(d, kp_stall_reasons[reason].state));
        for (size_t i = f->first; i < f->end; i++) {
            struct kp_source_sums sums;
            kp_source_sums_of(s, &s->instructions[i], &sums);
            if (sums.stalls[reason])
                fprintf(to, ",%zu,%" PRIu64, i - f->first, sums.stalls[reason]);
        }
        fputc(']', to);
        gap = ",";
    }
}

void kp_html_source(struct kp_data *d, FILE *to, const struct kp_source_map *source)
{
    for (size_t i = 0; i < source->n_functions; i++) {
        const struct kp_source_function *f = &source->functions[i];
        fprintf(to, "%s{\"code\":%zu,\"values\":{", i ? "," : "", code_of(d, source, f));
        write_values(to, source, f);
        fputs("},\"stalls\":[", to);
        write_stalls(d, to, source, f);
        fputs("]}", to);
    }
}
