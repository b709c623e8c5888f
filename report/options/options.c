#include "report/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/path.h"
#include "base/pattern.h"
#include "base/text.h"
#include "report/define/section_files.h"
#include "report/define/sections.h"
#include "report/judge/rules.h"
#include "report/model/kernel_id.h"
#include "report/model/model.h"
#include "report/model/nvtx_expr.h"
#include "report/model/renames.h"
#include "report/model/vary.h"
#include "report/options/config.h"
#include "report/options/ncu.h"
#include "report/options/pages.h"
#include "report/options/range_filter.h"

static const char ENV_PREFIX[] = KP_OPTION_PREFIX;

#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help)
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)                                             \
    static const char *const words_##field[] = {values NULL};
#define KP_CHOICES         KP_CHOICE
#define KP_VALUE(id, word) word,
#include "report/options/options.def"

#define KP_ROW(field, flag, letter, kind, fallback, values, words, group, help)                                        \
    {flag, letter, kind, fallback, values, words, KP_OPT_##group, help, offsetof(struct kp_options, field)},
static const struct kp_option rows[] = {
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help)                                            \
    KP_ROW(field, flag, letter, KP_OPT_##kind, fallback, values, NULL, group, help)
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)                                             \
    KP_ROW(field, flag, letter, KP_OPT_CHOICE, fallback, "", words_##field, group, help)
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help)                                            \
    KP_ROW(field, flag, letter, KP_OPT_CHOICES, fallback, "", words_##field, group, help)
#include "report/options/options.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static const char *const switch_words[] = {"on", "off", "yes", "no", "true", "false", "1", "0", NULL};

const struct kp_option *kp_option_rows(size_t *n)
{
    *n = N_ROWS;
    return rows;
}

const struct kp_option *kp_option_row(size_t offset)
{
    const struct kp_option *row = rows;
    while (row->offset != offset)
        row++;
    return row;
}

void kp_option_env_name(const struct kp_option *row, char out[KP_OPTION_NAME_MAX])
{
    snprintf(out, KP_OPTION_NAME_MAX, "%s%s", ENV_PREFIX, row->flag);
    kp_option_env_spell(out);
}

static int read_choice(const struct kp_option *row, const char *value, unsigned *out, char **err)
{
    for (*out = 0; row->words[*out]; ++*out)
        if (!strcmp(row->words[*out], value))
            return 0;
    return kp_error_choice(err, "unknown value", value, row->words);
}

static int read_choices(const struct kp_option *row, const char *list, struct kp_choices *out, char **err)
{
    const char *item;
    size_t len;
    int rc = 0;
    out->n = 0;
    while (!rc && kp_list_next(&list, &item, &len)) {
        char *word = strndup(item, len);
        unsigned choice;
        rc = word ? read_choice(row, word, &choice, err) : -ENOMEM;
        if (!rc && out->n < KP_CHOICES_MAX)
            out->at[out->n++] = (unsigned char)choice;
        free(word);
    }
    return rc;
}

const char *kp_option_word(size_t offset, unsigned value)
{
    return kp_option_row(offset)->words[value];
}

static int read_switch(const char *value, bool *out, char **err)
{
    for (size_t i = 0; switch_words[i]; i++) {
        if (!strcasecmp(switch_words[i], value)) {
            *out = i % 2 == 0; /* the words alternate: yes, no */
            return 0;
        }
    }
    return kp_error_choice(err, "unknown value", value, switch_words);
}

static int read_count(const char *value, const char *lowest, uint64_t *out, char **err)
{
    char *end;
    errno = 0;
    *out = strtoull(value, &end, 10);
    /* strtoull would accept blanks and a sign, with which it wraps around */
    if (errno == ERANGE)
        return kp_error(err, "%s is too large", value);
    if (!isdigit((unsigned char)*value) || *end)
        return kp_error(err, "'%s' is not a whole number of 0 or more", value);
    if (*out < strtoull(lowest, NULL, 10))
        return kp_error(err, "%s is too small; the lowest value is %s", value, lowest);
    return 0;
}

static int read_auto_count(const char *value, const char *highest, int *out, char **err)
{
    uint64_t count;
    *out = KP_OPTION_AUTO;
    if (!strcmp(value, "auto"))
        return 0;
    int rc = read_count(value, "0", &count, err);
    if (!rc && count > strtoull(highest, NULL, 10))
        return kp_error(err, "%s is too large; the highest value is %s", value, highest);
    if (rc != -EINVAL || isdigit((unsigned char)*value)) {
        *out = rc ? KP_OPTION_AUTO : (int)count;
        return rc;
    }
    free(*err);
    return kp_error(err, "'%s' is neither auto nor a whole number from 0 to %s", value, highest);
}

static int read_size(const char *value, const char *lowest, uint64_t *out, char **err)
{
    uint64_t least = 0;
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    *out = strtoull(value, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!isdigit((unsigned char)*value) || end[unit != NULL])
        return kp_error(err, "'%s' is not a size; write a number, optionally with K, M or G, such as 512M", value);
    if (errno == ERANGE || *out > UINT64_MAX >> shift)
        return kp_error(err, "%s is too large", value);
    *out <<= shift;
    if (lowest && !read_size(lowest, NULL, &least, err) && *out < least)
        return kp_error(err, "%s is too small; the lowest value is %s", value, lowest);
    return 0;
}

static int not_a_time(const char *value, char **err)
{
    return kp_error(err, "'%s' is not a time; write a number of seconds, or one with ms, s or m, such as 500ms", value);
}

/* Reads a time without strtod, which uses the decimal point of the program's locale. */
static int read_time(const char *value, uint64_t *out, char **err)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", UINT64_C(1000000000)},
                 {"s", UINT64_C(1000000000)},
                 {"ms", UINT64_C(1000000)},
                 {"m", UINT64_C(60000000000)}};
    char *end;
    size_t u = 0;
    errno = 0;
    uint64_t whole = strtoull(value, &end, 10), part = 0;
    const char *fraction = *end == '.' ? end + 1 : NULL, *unit = fraction ? fraction : end;
    while (fraction && isdigit((unsigned char)*unit))
        unit++;
    while (u < sizeof units / sizeof *units && strcmp(units[u].name, unit))
        u++;
    if (!strcmp(value, "none")) {
        *out = 0;
        return 0;
    }
    if (!isdigit((unsigned char)*value) || fraction == unit || u == sizeof units / sizeof *units)
        return not_a_time(value, err);
    if (errno == ERANGE || whole > UINT64_MAX / units[u].ns - 1)
        return kp_error(err, "%s is too large", value);
    uint64_t place = units[u].ns;
    for (; fraction && fraction < unit; fraction++)
        part += (uint64_t)(*fraction - '0') * (place /= 10);
    *out = whole * units[u].ns + part;
    return 0;
}

enum { MOST_DEVICES = 64 };

static int read_devices(const char *value, uint64_t *out, char **err)
{
    const char *item;
    size_t len;
    *out = 0;
    while (kp_list_next(&value, &item, &len)) {
        char *end;
        uint64_t device = strtoull(item, &end, 10);
        if (!isdigit((unsigned char)*item) || end != item + len)
            return kp_error(err, "'%.*s' is not the number of a device", (int)len, item);
        if (device >= MOST_DEVICES)
            return kp_error(err, "%.*s is too large; the highest device is %d", (int)len, item, MOST_DEVICES - 1);
        *out |= UINT64_C(1) << device;
    }
    return 0;
}

static int select_sections(const char *set, const char *list, char **err)
{
    const struct kp_section **chosen = NULL;
    size_t n;
    int rc = kp_sections_select(set, list, &chosen, &n, err);
    free(chosen);
    return rc;
}

static int check_set(const char *value, char **err)
{
    return select_sections(value, "", err);
}

static int check_sections(const char *value, char **err)
{
    return select_sections("", value, err);
}

static int check_rules(const char *value, char **err)
{
    kp_rule_choice rules;
    return kp_rules_select(value, &rules, err);
}

static int check_pattern(const char *value, char **err)
{
    struct kp_pattern *pattern = NULL;
    int rc = kp_pattern_new(value, &pattern, err);
    kp_pattern_free(pattern);
    return rc;
}

/* Checks expressions only: names depend on the chip. Blanks separate names, too. */
static int check_names(const char *list, char **err)
{
    char *copy = kp_strdup(list), *save = NULL;
    int rc = copy ? 0 : -ENOMEM;
    char *name = copy ? strtok_r(copy, KP_BETWEEN_NAMES, &save) : NULL;
    for (; !rc && name; name = strtok_r(NULL, KP_BETWEEN_NAMES, &save))
        rc = check_pattern(name, err);
    free(copy);
    return rc;
}

static int check_patterns(const char *list, char **err)
{
    const char *item;
    size_t len;
    int rc = 0;
    while (!rc && kp_list_next(&list, &item, &len)) {
        char *pattern = strndup(item, len);
        rc = pattern ? check_pattern(pattern, err) : -ENOMEM;
        free(pattern);
    }
    return rc;
}

static int check_kernel_id(const char *value, char **err)
{
    struct kp_kernel_id *id = NULL;
    int rc = kp_kernelid_new(value, &id, err);
    kp_kernelid_free(id);
    return rc;
}

static int check_ranges(const char *value, char **err)
{
    struct kp_nvtx_filter *filter = NULL;
    int rc = kp_nvtx_filter_new(value, &filter, err);
    kp_nvtx_filter_free(filter);
    return rc;
}

static int check_numbers(const char *value, char **err)
{
    struct kp_range_filter f;
    int rc = kp_option_numbers_read(value, &f, err);
    if (!rc)
        kp_option_numbers_free(&f);
    return rc;
}

static int check_vary(const char *value, char **err)
{
    struct kp_vary *vary = malloc(sizeof *vary);
    int rc = vary ? kp_vary_read(value, vary, err) : -ENOMEM;
    free(vary);
    return rc;
}

static int check_path(const char *value, char **err)
{
    char *path = NULL;
    int rc = kp_expand_path(value, 0, "", &path, err);
    free(path);
    return rc;
}

/* Returns the next of several paths; malloc'ed, NULL at the end or without memory. */
static char *next_path(const char **list)
{
    *list += strspn(*list, ":");
    size_t len = strcspn(*list, ":");
    char *path = len ? strndup(*list, len) : NULL;
    *list += len;
    return path;
}

static int check_folders(const char *list, char **err)
{
    int rc = 0;
    for (char *path; !rc && (path = next_path(&list)); free(path))
        rc = kp_sections_load(path, err);
    return rc;
}

/* A name without a slash is looked for by the loader. */
static int check_paths(const char *list, char **err)
{
    int rc = 0;
    for (char *path; !rc && (path = next_path(&list)); free(path))
        if (strchr(path, '/') && access(path, F_OK))
            rc = kp_error(err, "cannot find '%s': %s", path, strerror(errno));
    return rc;
}

/* Checks by kind, for values stored as text; a kind without a row accepts any text. */
static int (*const checks[])(const char *value, char **err) = {
    [KP_OPT_SET] = check_set,
    [KP_OPT_SECTIONS] = check_sections,
    [KP_OPT_RULES] = check_rules,
    [KP_OPT_NAMES] = check_names,
    [KP_OPT_PATTERN] = check_pattern,
    [KP_OPT_PATTERNS] = check_patterns,
    [KP_OPT_KERNEL_ID] = check_kernel_id,
    [KP_OPT_RANGES] = check_ranges,
    [KP_OPT_NUMBERS] = check_numbers,
    [KP_OPT_VARY] = check_vary,
    [KP_OPT_PATH] = check_path,
    [KP_OPT_PATHS] = check_paths,
    [KP_OPT_FOLDER] = check_folders,
    [KP_OPT_RENAMES] = kp_renames_load,
    [KP_OPT_KINDS] = NULL,
};

/* Reads a value that is not stored as text into its field. */
static int read_value(const struct kp_option *row, const char *value, void *field, char **err)
{
    switch (row->kind) {
    case KP_OPT_SWITCH:
        return read_switch(value, field, err);
    case KP_OPT_COUNT:
        return read_count(value, row->values, field, err);
    case KP_OPT_AUTO_COUNT:
        return read_auto_count(value, row->values, field, err);
    case KP_OPT_SIZE:
        return read_size(value, row->values, field, err);
    case KP_OPT_TIME:
        return read_time(value, field, err);
    case KP_OPT_DEVICES:
        return read_devices(value, field, err);
    case KP_OPT_CHOICE:
        return read_choice(row, value, field, err);
    case KP_OPT_CHOICES:
        return read_choices(row, value, field, err);
    default:
        return 0;
    }
}

static int check_value(const struct kp_option *row, const char *value, char **err)
{
    struct kp_options unused;
    return checks[row->kind] ? checks[row->kind](value, err)
                             : read_value(row, value, (char *)&unused + row->offset, err);
}

static bool is_list(enum kp_option_kind kind)
{
    return kind == KP_OPT_SECTIONS || kind == KP_OPT_RULES || kind == KP_OPT_NAMES || kind == KP_OPT_PATTERNS ||
           kind == KP_OPT_CHOICES || kind == KP_OPT_DEVICES;
}

int kp_option_check(const struct kp_option *row, const char *shown, const char *value, char **err)
{
    char *why = NULL;
    *err = NULL;
    /* Only separators would count as not given, or select nothing. */
    bool names_nothing = *value && is_list(row->kind) && !value[strspn(value, KP_BETWEEN_NAMES)];
    int rc = names_nothing ? kp_error(&why, "nothing is named in '%s'", value)
             : *value      ? check_value(row, value, &why)
                           : 0;
    if (rc == -EINVAL)
        rc = kp_error(err, "%s: %s", shown, why);
    free(why);
    return rc;
}

char *kp_option_absolute(const struct kp_option *row, const char *value)
{
    char *all = NULL, *path;
    if (row->kind == KP_OPT_RENAMES)
        return kp_renames_path(value);
    if (row->kind != KP_OPT_FOLDER && row->kind != KP_OPT_PATHS)
        return row->kind == KP_OPT_FILE && *value ? realpath(value, NULL) : kp_strdup(value);
    while ((path = next_path(&value))) {
        bool as_it_is = row->kind == KP_OPT_PATHS && !strchr(path, '/'); /* the loader looks for it */
        char *one = as_it_is ? strdup(path) : realpath(path, NULL),
             *longer = one ? kp_asprintf("%s%s%s", all ? all : "", all ? ":" : "", one) : NULL;
        free(path);
        free(one);
        free(all);
        if (!(all = longer))
            return NULL;
    }
    return all ? all : kp_strdup("");
}

static int store_text(const struct kp_option *row, const char *value, char **text)
{
    char *copy = row->kind == KP_OPT_FILE ? kp_strdup(value) : kp_option_absolute(row, value);
    if (!copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

static bool is_text(enum kp_option_kind kind)
{
    switch (kind) {
    case KP_OPT_COUNT:
    case KP_OPT_AUTO_COUNT:
    case KP_OPT_SIZE:
    case KP_OPT_TIME:
    case KP_OPT_DEVICES:
    case KP_OPT_SWITCH:
    case KP_OPT_CHOICE:
    case KP_OPT_CHOICES:
        return false;
    default:
        return true;
    }
}

/* Stores a checked value. */
static int store(struct kp_options *o, const struct kp_option *row, const char *value)
{
    void *field = (char *)o + row->offset;
    char *err = NULL;
    return is_text(row->kind) ? store_text(row, value, field) : read_value(row, value, field, &err);
}

/* Defaults of the face ncu that differ from kprof's own. */
static const struct {
    size_t option;
    const char *fallback;
} of_face_ncu[] = {
    {offsetof(struct kp_options, face), "ncu"},          {offsetof(struct kp_options, replay_mode), "kernel"},
    {offsetof(struct kp_options, log_file), "stdout"},   {offsetof(struct kp_options, brief_above), "0"},
    {offsetof(struct kp_options, print_source), "sass"}, {offsetof(struct kp_options, check_exit_code), "yes"},
};

static int store_defaults(struct kp_options *o, bool as_ncu)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < N_ROWS; i++)
        rc = store(o, &rows[i], rows[i].fallback);
    for (size_t i = 0; !rc && as_ncu && i < sizeof of_face_ncu / sizeof *of_face_ncu; i++)
        rc = store(o, kp_option_row(of_face_ncu[i].option), of_face_ncu[i].fallback);
    return rc;
}

static const char *instead_of(const char *env_name)
{
    char name[KP_OPTION_NAME_MAX];
    size_t n;
    const struct kp_ncu_option *o = kp_ncu_options(&n);
    for (; n; n--, o++) {
        kp_option_env_name(&(struct kp_option){.flag = o->flag}, name);
        if (!strcmp(name, env_name))
            return kp_ncu_instead(o->flag);
    }
    return NULL;
}

static int unknown_name(const char *name, char **err)
{
    char names[N_ROWS][KP_OPTION_NAME_MAX];
    const char *list[N_ROWS + 1] = {0};
    size_t prefix = sizeof ENV_PREFIX - 1; /* skips the prefix, which would make all names look alike */
    for (size_t i = 0; i < N_ROWS; i++) {
        kp_option_env_name(&rows[i], names[i]);
        list[i] = names[i] + prefix;
    }
    const char *instead = instead_of(name), *near = kp_nearest(name + prefix, list);
    if (instead)
        return kp_error(err, "unknown %s; %s", name, instead);
    if (near)
        return kp_error(err, "unknown %s; did you mean %s%s?", name, ENV_PREFIX, near);
    return kp_error(err, "unknown %s; `kprof --help` lists the options", name);
}

/* Returns the row of a NAME=value of the environment, NULL when there is none. */
static const struct kp_option *find_row(const char *entry)
{
    char name[KP_OPTION_NAME_MAX];
    size_t len = strcspn(entry, "=");
    for (size_t i = 0; i < N_ROWS; i++) {
        kp_option_env_name(&rows[i], name);
        if (strlen(name) == len && !strncmp(name, entry, len))
            return &rows[i];
    }
    return NULL;
}

/* Options that say what is printed, and how: whoever gives one of them gets just that. */
static const size_t choosing[] = {
#define OF(field) offsetof(struct kp_options, field)
    OF(page),
    OF(csv),
    OF(json),
    OF(print_details),
    OF(print_metric_name),
    OF(print_units),
    OF(print_metric_instances),
    OF(print_summary),
    OF(print_source),
#undef OF
};

static bool is_choosing(const struct kp_option *row)
{
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
        if (choosing[i] == row->offset)
            return true;
    return false;
}

/* Stores one NAME=value of the environment, whose name has our prefix. */
static int take(struct kp_options *o, const struct kp_option *row, const char *entry, bool *set_given, char **err)
{
    const char *value = entry + strcspn(entry, "=");
    char *name = strndup(entry, (size_t)(value - entry));
    if (!name)
        return -ENOMEM;
    value += *value == '=';
    int rc = row ? kp_option_check(row, name, value, err) : unknown_name(name, err);
    if (!rc && *value) {
        rc = store(o, row, value);
        *set_given |= row->kind == KP_OPT_SET;
        o->as_it_comes &= !is_choosing(row);
    }
    free(name);
    return rc;
}

/* Adds the place of a bad value to the message. */
static int say_where(const struct kp_config_file *c, const char *entry, char **err)
{
    size_t line = kp_options_file_line(c, entry);
    char *what = *err;
    if (!line)
        return -EINVAL;
    int rc = kp_error(err, "%s:%zu: %s", c->path, line, what);
    free(what);
    return rc;
}

/* Stores the entries that name a folder, or all others. */
static int take_all(struct kp_options *o, char *const *env, const struct kp_config_file *c, bool folders,
                    bool *set_given, char **err)
{
    int rc = 0;
    for (; !rc && *env; env++) {
        if (strncmp(*env, ENV_PREFIX, sizeof ENV_PREFIX - 1))
            continue;
        const struct kp_option *row = find_row(*env);
        if ((row && row->kind == KP_OPT_FOLDER) == folders)
            rc = take(o, row, *env, set_given, err);
        if (rc == -EINVAL)
            rc = say_where(c, *env, err);
    }
    return rc;
}

/* Returns the value of a variable, or NULL if unset or empty. */
static const char *value_of(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, len) && (*env)[len] == '=' && (*env)[len + 1])
            return *env + len + 1;
    return NULL;
}

/* Makes the environment with the entries of its file of options, in *all, to be freed; NULL without a file. */
static int add_config(char *const *env, struct kp_config_file *c, char ***all, char **err)
{
    const char *path = value_of(env, "KPROF_CONFIG");
    *c = (struct kp_config_file){.n = 0};
    *all = NULL;
    if (!path)
        return 0;
    int rc = kp_options_file_read(path, c, err);
    if (!rc && !(*all = kp_options_file_over(c, env)))
        rc = -ENOMEM;
    return rc;
}

char *kp_options_value(char *const *env, const char *name)
{
    struct kp_config_file c;
    char **all = NULL, *err = NULL;
    const char *value = NULL;
    if (!add_config(env, &c, &all, &err))
        value = value_of(all ? all : env, name);
    char *copy = value ? strdup(value) : NULL;
    free(err);
    free(all);
    kp_options_file_free(&c);
    return copy;
}

enum kp_face kp_options_face(char *const *env)
{
    const struct kp_option *row = kp_option_row(offsetof(struct kp_options, face));
    const char *value = value_of(env, "KPROF_FACE");
    return value && !strcmp(value, row->words[KP_FACE_NCU]) ? KP_FACE_NCU : KP_FACE_KPROF;
}

bool kp_options_want_application(char *const *env)
{
    const struct kp_option *row = kp_option_row(offsetof(struct kp_options, target_processes));
    char name[KP_OPTION_NAME_MAX];
    kp_option_env_name(row, name);
    char *value = kp_options_value(env, name);
    bool wanted = value && !strcmp(value, row->words[KP_TARGETS_APPLICATION]);
    free(value);
    return wanted;
}

bool kp_options_by_runs(const struct kp_options *o)
{
    return o->replay_mode == KP_REPLAY_APPLICATION || o->replay_mode == KP_REPLAY_APP_RANGE;
}

bool kp_options_by_ranges(const struct kp_options *o)
{
    return o->replay_mode == KP_REPLAY_RANGE || o->replay_mode == KP_REPLAY_APP_RANGE;
}

static const char *without_dots(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/'; path++)
            ;
    return path;
}

/* Returns true if a path is `-`, which stands for stdout. */
static bool is_dash(const char *path)
{
    return !strcmp(path, "-");
}

enum kp_log_target kp_options_log_target(const char *log_file)
{
    return !strcmp(log_file, "stderr")   ? KP_LOG_TO_STDERR
           : !strcmp(log_file, "stdout") ? KP_LOG_TO_STDOUT
           : is_dash(log_file)           ? KP_LOG_TO_STDOUT
                                         : KP_LOG_TO_FILE;
}

/* Refuses output files that would overwrite each other. `stdout` and `stderr` as log-file are not files. */
static int check_files(const struct kp_options *o, char **err)
{
    const bool to_file = kp_options_log_target(o->log_file) == KP_LOG_TO_FILE;
    const struct {
        const char *what, *path, *end;
    } files[] = {{"log-file", to_file ? o->log_file : "", ".txt"},
                 {"export", o->export_file, ".kprof"},
                 {"html", o->html_file, ".html"}};
    enum { FILES = sizeof files / sizeof *files };
    for (size_t i = 0; i < FILES; i++)
        for (size_t k = i + 1; k < FILES; k++)
            if (*files[i].path && *files[k].path && !strcmp(without_dots(files[i].path), without_dots(files[k].path)))
                return kp_error(err, "%s and %s are the same file '%s'; name another for %s, such as '%s%s'",
                                files[i].what, files[k].what, files[k].path, i ? files[k].what : "the report",
                                files[k].path, files[i ? k : i].end);
    return 0;
}

static int several_pages(const struct kp_choices *pages, char **err)
{
    char *names = NULL;
    size_t size;
    FILE *to = open_memstream(&names, &size);
    for (size_t i = 0; to && i < pages->n; i++)
        fprintf(to, "%s%s", i ? "," : "", kp_option_word(offsetof(struct kp_options, page), pages->at[i]));
    int rc = to && !kp_text_end(to, &names)
                 ? kp_error(err, "csv prints one page, not '%s'; a stored session can be printed page by page", names)
                 : -ENOMEM;
    free(names);
    return rc;
}

/* A series repeats a launch within the program, one launch at a time, and counts it each time in full. */
static int check_vary_with(const struct kp_options *o, char **err)
{
    if (*o->vary && o->replay_mode != KP_REPLAY_KERNEL && o->replay_mode != KP_REPLAY_AUTO)
        return kp_error(err, "vary needs replay-mode auto or kernel, not %s",
                        kp_option_word(offsetof(struct kp_options, replay_mode), o->replay_mode));
    if (*o->vary && !strcmp(o->set, "quick") && !*o->section && !*o->metrics)
        return kp_error(err, "vary repeats launches, which the set quick never does; use another set");
    return 0;
}

/* Refuses stdout for files that cannot go there. */
static int check_dashes(const struct kp_options *o, char **err)
{
    if (is_dash(o->export_file))
        return kp_error(err, "export needs a file name because a session is a database; write 'run.kprof', or './-'");
    if (is_dash(o->html_file))
        return kp_error(err, "html needs a file name because stdout is the program's; write 'run.html', or run `kprof "
                             "report --html - FILE` afterwards");
    return 0;
}

/* Checks values that are valid by themselves but not in combination. */
static int check_together(const struct kp_options *o, char **err)
{
    if (o->csv && o->json)
        return kp_error(err, "csv and json exclude each other; a stored session can be printed as both, one by one");
    if (o->csv && o->page.n > 1)
        return several_pages(&o->page, err);
    int rc = check_files(o, err);
    if (!rc)
        rc = check_dashes(o, err);
    return rc ? rc : check_vary_with(o, err);
}

static bool is_on(const char *value)
{
    char *err = NULL;
    bool on = false;
    on = !read_switch(value, &on, &err) && on;
    free(err);
    return on;
}

/* Returns true if an option's non-empty value has ranges recorded on the timeline. */
static bool needs_timeline(const struct kp_option *row, const char *value)
{
    return (row->offset == offsetof(struct kp_options, timeline) && is_on(value)) ||
           (row->offset == offsetof(struct kp_options, page) && kp_list_has(value, row->words[KP_PAGE_TIMELINE]));
}

/* Returns true if an option's non-empty value needs NVTX. */
static bool needs_nvtx(const struct kp_option *row, const char *value)
{
    switch (row->offset) {
    case offsetof(struct kp_options, nvtx):
        return is_on(value);
    case offsetof(struct kp_options, print_nvtx_rename):
        return !strcmp(value, row->words[KP_NVTX_RENAME_KERNEL]);
    case offsetof(struct kp_options, print_summary):
        return !strcmp(value, row->words[KP_GROUPING_NVTX]);
    case offsetof(struct kp_options, rotate_key):
        return !strcmp(value, row->words[KP_ROTATE_BY_NVTX]);
    default:
        return row->kind == KP_OPT_RANGES;
    }
}

static bool want(char *const *env, bool (*needs)(const struct kp_option *row, const char *value))
{
    bool wanted = false;
    for (; *env && !wanted; env++) {
        const char *value = strchr(*env, '=');
        const struct kp_option *row =
            value && value[1] && !strncmp(*env, ENV_PREFIX, sizeof ENV_PREFIX - 1) ? find_row(*env) : NULL;
        wanted = row && needs(row, value + 1);
    }
    return wanted;
}

bool kp_options_want_nvtx(char *const *env)
{
    struct kp_config_file c;
    char **all, *err = NULL;
    add_config(env, &c, &all, &err);
    bool wanted = want(all ? all : env, needs_nvtx) || want(all ? all : env, needs_timeline);
    free(err);
    free(all);
    kp_options_file_free(&c);
    return wanted;
}

static bool has_ending(const char *path, const char *ending)
{
    size_t len = strlen(path), n = strlen(ending);
    return len >= n && !strcmp(path + len - n, ending);
}

/* Gives the session the ending of its kind if its name has none; as ncu does, any other extension is part of the name.
 */
static int end_export(struct kp_options *o, bool as_ncu)
{
    const char *path = o->export_file;
    bool complete = !*path || is_dash(path) || has_ending(path, KP_SESSION_ENDING) || has_ending(path, ".ncu-rep");
    char *whole = complete ? NULL : as_ncu ? kp_asprintf("%s%s", path, KP_SESSION_ENDING) : kp_path_with_ending(path);
    if (!whole)
        return complete ? 0 : -ENOMEM;
    free(o->export_file);
    o->export_file = whole;
    return 0;
}

/* Reads the options from the environment and its file of options. */
static int read_all(struct kp_options *o, char *const *env, const struct kp_config_file *c, char **err)
{
    bool set_given = false, as_ncu = kp_options_face(env) == KP_FACE_NCU;
    int rc = store_defaults(o, as_ncu);
    o->as_it_comes = true;
    if (!rc)
        rc = take_all(o, env, c, true, &set_given, err);
    if (!rc)
        rc = take_all(o, env, c, false, &set_given, err);
    if (!rc && !set_given && (*o->section || *o->metrics))
        *o->set = '\0';
    else if (!rc && !set_given && !(rc = kp_options_wants_trace(o)) && !(rc = kp_options_wants_timeline(o)))
        rc = kp_options_wants_page(o);
    if (!rc)
        rc = end_export(o, as_ncu);
    if (!rc)
        rc = check_together(o, err);
    o->unprinted = as_ncu && *o->export_file && !value_of(env, "KPROF_PAGE");
    if (!rc && as_ncu && !*o->rename_kernels)
        rc = kp_renames_load(KP_RENAMES_ON, err);
    o->nvtx = !rc && want(env, needs_nvtx);
    o->timeline = !rc && want(env, needs_timeline);
    return rc;
}

int kp_options_from_env(struct kp_options *o, char *const *env, char **err)
{
    struct kp_config_file c;
    char **all;
    *err = NULL;
    *o = (struct kp_options){0};
    int rc = add_config(env, &c, &all, err);
    if (!rc)
        rc = read_all(o, all ? all : env, &c, err);
    if (rc)
        kp_options_free(o);
    free(all);
    kp_options_file_free(&c);
    return rc;
}

void kp_options_free(struct kp_options *o)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (is_text(rows[i].kind))
            free(*(char **)((char *)o + rows[i].offset));
    *o = (struct kp_options){0};
}
