/* An identifier of launches, context:stream:[regex:]name:invocation. */
#include <stdlib.h>

#include "report/model/kernel_id.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t numbers[] = {0, 1, 7, 13, 4294967296, UINT64_MAX};
    struct kp_kernel_id *id = NULL;
    char *err = NULL, *text = kp_fuzz_text(data, size);
    int rc = kp_kernelid_new(text, &id, &err);
    kp_fuzz_outcome(rc, &err);
    for (size_t i = 0; !rc && i < sizeof numbers / sizeof *numbers; i++) {
        bool matters = kp_kernelid_asks_place(id), there = kp_kernelid_place(id, numbers[i], numbers[i]);
        kp_fuzz_require(matters || there, "a place that does not matter is another one");
        kp_kernelid_name(id, i % 2 ? "void kernel<float>(int)" : "");
        kp_kernelid_invocation(id, numbers[i]);
    }
    kp_kernelid_free(id);
    free(text);
    return 0;
}
