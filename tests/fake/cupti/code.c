/*
 * The functions that kernels ran, and their instructions, read from the cubins that the fake driver hands out; and what
 * names a cubin, its CRC.
 *
 * Like in the real library, the callback for CRCs is called in the loading thread, for modules loaded after it was
 * registered; earlier modules have CUPTI's own CRC.
 */
#include <elf.h>

enum { INSTRUCTION_BYTES = 16 };

/* Facts about an instruction beyond its opcode. */
enum {
    GLOBAL = 1 << 0,
    SHARED = 1 << 1,
    LOCAL = 1 << 2,
    LOAD = 1 << 3,
    STORE = 1 << 4,
    ATOMIC = 1 << 5,
    REDUCTION = 1 << 6,
    BRANCH = 1 << 7,
    PREDICATED = 1 << 8,
    UNPREDICATED = 1 << 9,
    NEVER = 1 << 10, /* no instruction */
};

enum stall {
    BARRIER,
    BRANCH_RESOLVING,
    DISPATCH_STALL,
    DRAIN,
    IMC_MISS,
    LG_THROTTLE,
    LONG_SCOREBOARD,
    MATH_PIPE_THROTTLE,
    MEMBAR,
    MIO_THROTTLE,
    MISC,
    NO_INSTRUCTIONS,
    NOT_SELECTED,
    SELECTED,
    SHORT_SCOREBOARD,
    SLEEPING,
    TEX_THROTTLE,
    WAIT,
    WARPGROUP_ARRIVE,
    N_STALLS
};

/* Operations, bits 0 to 8 of an instruction; what a warp mostly waits for there, and how much more than elsewhere. */
static const struct operation {
    uint16_t code, kinds;
    enum stall stall;
    uint16_t weight;
} operations[] = {
    {0x023, 0, LONG_SCOREBOARD, 16},               /* FFMA, of what was loaded */
    {0x11d, 0, BARRIER, 8},                        /* BAR */
    {0x144, BRANCH, BRANCH_RESOLVING, 1},          /* CALL */
    {0x147, BRANCH, BRANCH_RESOLVING, 2},          /* BRA */
    {0x14d, 0, DRAIN, 1},                          /* EXIT */
    {0x150, BRANCH, BRANCH_RESOLVING, 1},          /* RET */
    {0x181, GLOBAL | LOAD, LG_THROTTLE, 4},        /* LDG */
    {0x182, 0, IMC_MISS, 1},                       /* LDC */
    {0x183, LOCAL | LOAD, LG_THROTTLE, 4},         /* LDL */
    {0x184, SHARED | LOAD, MIO_THROTTLE, 4},       /* LDS */
    {0x186, GLOBAL | STORE, LG_THROTTLE, 4},       /* STG */
    {0x187, LOCAL | STORE, LG_THROTTLE, 4},        /* STL */
    {0x188, SHARED | STORE, MIO_THROTTLE, 4},      /* STS */
    {0x18c, SHARED | ATOMIC, SHORT_SCOREBOARD, 4}, /* ATOMS */
    {0x18e, GLOBAL | REDUCTION, LG_THROTTLE, 4},   /* REDG */
    {0x1a8, GLOBAL | ATOMIC, LONG_SCOREBOARD, 8},  /* ATOMG */
};
static const struct operation any_operation = {0, 0, WAIT, 1};

struct instruction {
    const struct operation *operation;
    uint32_t kinds; /* of the operation, and whether it is predicated */
};

/* Of one cubin. Never freed, because its address identifies it. */
struct code {
    const struct fake_cubin *cubin;
    const char *name;
    uint32_t symbol;
    struct instruction *instructions; /* up to the last EXIT */
    size_t n_instructions;            /* 0: the cubin lacks the function */
    bool launched, known, strange;    /* ever; to PC sampling for ever, and never */
    struct code *next;
};

/* --- reading a cubin --- */

static const Elf64_Shdr *section_of(const struct fake_cubin *cubin, size_t index)
{
    const Elf64_Ehdr *header = cubin->image;

    return (const Elf64_Shdr *)(const void *)((const char *)cubin->image + header->e_shoff) + index;
}

static const void *content_of(const struct fake_cubin *cubin, const Elf64_Shdr *section)
{
    return (const char *)cubin->image + section->sh_offset;
}

/* The symbol of function `name`; NULL: there is none. */
static const Elf64_Sym *find_symbol(const struct fake_cubin *cubin, const char *name, uint32_t *index)
{
    const Elf64_Ehdr *header = cubin->image;
    const Elf64_Shdr *table;
    const Elf64_Sym *symbols;
    const char *names;
    size_t i = 0;

    while (i < header->e_shnum && section_of(cubin, i)->sh_type != SHT_SYMTAB)
        i++;
    if (i == header->e_shnum)
        return NULL;
    table = section_of(cubin, i);
    symbols = content_of(cubin, table);
    names = content_of(cubin, section_of(cubin, table->sh_link));
    for (i = 0; i < table->sh_size / sizeof(*symbols); i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && !strcmp(names + symbols[i].st_name, name)) {
            *index = (uint32_t)i;
            return &symbols[i];
        }
    return NULL;
}

static struct instruction decode(uint64_t word)
{
    enum { OPERATION = 0x1ff, PREDICATE = 0xf << 12, ALWAYS_TRUE = 7 << 12 };
    struct instruction result = {&any_operation, 0};

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (operations[i].code == (word & OPERATION))
            result.operation = &operations[i];
    result.kinds = result.operation->kinds | ((word & PREDICATE) == ALWAYS_TRUE ? UNPREDICATED : PREDICATED);
    return result;
}

static void read_instructions(struct code *code)
{
    enum { EXIT = 0x14d };
    const Elf64_Sym *symbol = find_symbol(code->cubin, code->name, &code->symbol);
    const char *text;

    if (!symbol)
        return;
    text = (const char *)content_of(code->cubin, section_of(code->cubin, symbol->st_shndx)) + symbol->st_value;
    code->instructions = calloc(symbol->st_size / INSTRUCTION_BYTES + 1, sizeof(*code->instructions));
    if (!code->instructions)
        fake_misuse("out of host memory");
    for (size_t i = 0; i < symbol->st_size / INSTRUCTION_BYTES; i++) {
        uint64_t word;

        memcpy(&word, text + i * INSTRUCTION_BYTES, sizeof(word));
        code->instructions[i] = decode(word);
        if (code->instructions[i].operation->code == EXIT)
            code->n_instructions = i + 1;
    }
}

static struct code *code_of(const struct fake_launch *launch)
{
    static struct code *codes;
    struct code *code;

    for (code = codes; code; code = code->next)
        if (code->cubin == launch->cubin && !strcmp(code->name, launch->name))
            return code;
    code = calloc(1, sizeof(*code));
    if (!code)
        fake_misuse("out of host memory");
    code->cubin = launch->cubin;
    code->name = launch->name;
    read_instructions(code);
    code->next = codes;
    codes = code;
    return code;
}

/* --- CRCs --- */

static CUpti_ComputeCrcCallbackFunc compute_crc;

struct crc {
    const struct fake_cubin *cubin;
    uint64_t value;
    struct crc *next;
};

/* In buckets, because the code loaded before each launch is another cubin each time. */
enum { CRC_BUCKETS = 1 << 14 };
static struct crc *crcs[CRC_BUCKETS];

static struct crc **crcs_like(const struct fake_cubin *cubin)
{
    return &crcs[(uintptr_t)cubin / sizeof(*cubin) % CRC_BUCKETS];
}

static uint32_t crc32_of(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint32_t crc = ~0u;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static struct crc *new_crc(const struct fake_cubin *cubin)
{
    struct crc *c = calloc(1, sizeof(*c));

    if (!c)
        fake_misuse("out of host memory");
    c->cubin = cubin;
    c->next = *crcs_like(cubin);
    *crcs_like(cubin) = c;
    return c;
}

static uint64_t crc_of(const struct fake_cubin *cubin)
{
    struct crc *c = *crcs_like(cubin);

    while (c && c->cubin != cubin)
        c = c->next;
    if (!c) {
        c = new_crc(cubin);
        c->value = crc32_of(cubin->image, cubin->size);
    }
    return c->value;
}

static void on_module(const struct fake_cubin *cubin, void *data)
{
    (void)data;
    if (compute_crc) /* it has not left the driver alone */
        compute_crc(cubin->image, cubin->size, &new_crc(cubin)->value);
}

/* Without the driver the real one gives this error. */
CUptiResult cuptiRegisterComputeCrcCallback(CUpti_ComputeCrcCallbackFunc fn)
{
    COUNT_CALL();
    LOCKED();
    if (!fn)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!fake_driver())
        return CUPTI_ERROR_UNKNOWN;
    take_into_use();
    compute_crc = fn;
    fake_driver()->set_module_hook(on_module, NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCubinCrc(CUpti_GetCubinCrcParams *params)
{
    COUNT_CALL();
    if (!params || params->size != CUpti_GetCubinCrcParamsSize || !params->cubin || !params->cubinSize)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->cubinCrc = crc32_of(params->cubin, params->cubinSize);
    return CUPTI_SUCCESS;
}
