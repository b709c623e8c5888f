/* A section file, from its text to the section and the definitions that it makes. */
#include <stdlib.h>

#include "base/expr.h"
#include "report/define/section_tree.h"
#include "tests/fuzz/fuzz.h"

static void check_definitions(const struct kp_section_file *f)
{
    for (size_t i = 0; i < f->n_definitions; i++) {
        struct kp_expr *e = NULL;
        char *err = NULL;
        kp_fuzz_outcome(kp_expr_compile(f->definitions[i].expression, &e, &err), &err);
        kp_expr_free(e);
    }
    for (size_t i = 0; i < f->section.n_rows; i++)
        kp_fuzz_require(f->rows[i].metric && f->rows[i].label, "a row without a metric or a label");
}

static void read_tree(const char *text)
{
    struct kp_arena tree = {0};
    struct kp_section_reader reader = {.file = "x.section"};
    struct kp_section_file file = {0};
    const struct kp_field *root;
    char *err = NULL;
    int rc = kp_prototext_parse(&tree, text, &root, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc) {
        err = NULL;
        rc = kp_section_tree_read(&reader, root, &file, &err);
        kp_fuzz_outcome(rc, &err);
        if (!rc)
            check_definitions(&file);
    }
    kp_arena_free(&reader.arena);
    kp_arena_free(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kp_fuzz_text(data, size);
    read_tree(text);
    free(text);
    return 0;
}
