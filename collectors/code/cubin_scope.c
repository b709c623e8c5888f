/* Finds what code shares with the host and other devices while it runs: memory operations of system scope. */
#include "collectors/code/cubin_internal.h"
#include "collectors/code/sass.h"

/*
 * KP_VENDOR: bits 77 to 80 of a load, store or atomic operation are its strength and scope: STRONG.SYS, MMIO.SYS. Bits
 * 76 to 78 of a MEMBAR are its scope. Found by compiling kernels with one such operation each (nvcc 13.0) for compute
 * capabilities 7.5, 8.0, 9.0, 10.0 and 12.0. Volatile accesses of global memory have system scope; plain accesses, and
 * atomic functions without _system, do not.
 */
enum { OPERATION = 0x1ff, MEMBAR = 0x192, MEMBAR_SYSTEM = 3, FIRST_SM = 75, FIRST_SM_OF_TABLE = 80 };

static const struct {
    uint16_t operation; /* bits 0 to 8 */
    unsigned does;
} shared[] = {
    {0x180, KP_WAITS_FOR_OTHERS},                 /* LD */
    {0x181, KP_WAITS_FOR_OTHERS},                 /* LDG */
    {0x185, KP_ONCE_POSTS},                       /* ST */
    {0x186, KP_ONCE_POSTS},                       /* STG */
    {0x18e, KP_ONCE_POSTS},                       /* RED */
    {0x1a6, KP_ONCE_POSTS},                       /* REDG */
    {0x18a, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOM */
    {0x18b, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOM.CAS */
    {0x1a2, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOM of packed numbers */
    {0x1a3, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOMG of packed numbers */
    {0x1a8, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOMG */
    {0x1a9, KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}, /* ATOMG.CAS */
};

static bool is_of_system(unsigned field, uint32_t sm)
{
    return sm < FIRST_SM_OF_TABLE ? field == 0xb || field == 0xf : field == 0xa || field == 0xc;
}

static unsigned does(const uint8_t *instruction, uint32_t sm)
{
    unsigned operation = kp_u32_at(instruction) & OPERATION, high = kp_u32_at(instruction + 8);
    if (operation == MEMBAR)
        return (high >> 12 & 7) == MEMBAR_SYSTEM ? KP_ONCE_POSTS : 0;
    if (!is_of_system(high >> 13 & 0xf, sm))
        return 0;
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
        if (shared[i].operation == operation)
            return shared[i].does;
    return 0;
}

unsigned kp_cubin_shares(const struct kp_cubin *c, uint32_t section, uint64_t begin, uint64_t size)
{
    Elf64_Shdr s;
    unsigned found = 0;
    const uint32_t sm = kp_cubin_sm(c);
    if (sm < FIRST_SM || !kp_cubin_section(c, section, &s))
        return 0;
    struct kp_bytes code = kp_cubin_bytes(c, &s);
    uint64_t end = begin + size < code.size ? begin + size : code.size;
    for (uint64_t at = begin; at + KP_SASS_SIZE <= end; at += KP_SASS_SIZE)
        found |= does(code.at + at, sm);
    return found;
}

unsigned kp_cubin_shares_any(const struct kp_cubin *c)
{
    Elf64_Shdr s;
    unsigned found = 0;
    for (uint32_t i = 1; kp_cubin_section(c, i, &s); i++)
        if (s.sh_type == SHT_PROGBITS && s.sh_flags & SHF_EXECINSTR)
            found |= kp_cubin_shares(c, i, 0, s.sh_size);
    return found;
}
