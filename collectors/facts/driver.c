#include "collectors/facts/driver.h"

#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
    int needed;
} entries[] = {
#define KP_DRIVER(name, type, symbol, needed) {symbol, offsetof(struct kp_driver, name), needed},
#include "collectors/facts/driver.def"
#undef KP_DRIVER
};

const char *kp_driver_fill(struct kp_driver *d, void *(*find)(const char *symbol))
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *sym = find(entries[i].symbol);
        if (!sym && entries[i].needed)
            return entries[i].symbol;
        memcpy((char *)d + entries[i].offset, &sym, sizeof(sym));
    }
    return NULL;
}

const char *kp_driver_error(const struct kp_driver *d, CUresult rc)
{
    const char *name = NULL;
    if (d->cuGetErrorName && d->cuGetErrorName(rc, &name) == CUDA_SUCCESS && name)
        return name;
    return "unknown CUDA error";
}
