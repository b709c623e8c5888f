/*
 * The used part of NVTX's injection interface, version 3. Through it, a program's copy of the NVTX headers passes its
 * table of functions to the library that NVTX_INJECTION64_PATH names. NVTX's own header of these types cannot be
 * included alone, and is missing from some packages of CUDA's headers. This file has its frozen parts.
 * tests/unit/preload/test_preload_nvtx.c compares the two if NVTX's headers are installed.
 */
#ifndef KP_PRELOAD_WHO_NVTX_ABI_H
#define KP_PRELOAD_WHO_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define KP_NVTX_PATH_VARIABLE "NVTX_INJECTION64_PATH"

enum { KP_NVTX_VERSION = 3 };

/* Arguments of the program's getter. */
enum { KP_NVTX_TABLE_CALLBACKS = 1, KP_NVTX_TABLE_VERSION = 3 };
typedef const void *(*kp_nvtx_get_table)(uint32_t table);

/* slots[id] points to the program's pointer to function `id` of the module; NULL for none. */
typedef void (*kp_nvtx_function)(void);
struct kp_nvtx_callbacks {
    size_t struct_size;
    int (*functions_of)(int module, kp_nvtx_function ***slots, unsigned *n);
};

struct kp_nvtx_version {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_injection_version)(uint32_t version);
};

enum { KP_NVTX_MODULE_CORE = 1, KP_NVTX_MODULE_CUDA = 2, KP_NVTX_MODULE_CUDART = 4, KP_NVTX_MODULE_CORE2 = 5 };

/* Ids of the functions. */
enum {
    KP_NVTX_RangeStartEx = 4,
    KP_NVTX_RangeStartA,
    KP_NVTX_RangeStartW,
    KP_NVTX_RangeEnd,
    KP_NVTX_RangePushEx,
    KP_NVTX_RangePushA,
    KP_NVTX_RangePushW,
    KP_NVTX_RangePop,
    KP_NVTX_NameCategoryA,
    KP_NVTX_NameCategoryW,
    KP_NVTX_NameOsThreadA,
    KP_NVTX_NameOsThreadW,
};
enum { KP_NVTX_NameCuStreamA = 5, KP_NVTX_NameCuStreamW };
enum { KP_NVTX_NameCudaStreamA = 3, KP_NVTX_NameCudaStreamW };
enum {
    KP_NVTX_DomainRangeStartEx = 2,
    KP_NVTX_DomainRangeEnd,
    KP_NVTX_DomainRangePushEx,
    KP_NVTX_DomainRangePop,
    KP_NVTX_DomainResourceCreate,
    KP_NVTX_DomainResourceDestroy,
    KP_NVTX_DomainNameCategoryA,
    KP_NVTX_DomainNameCategoryW,
    KP_NVTX_DomainRegisterStringA,
    KP_NVTX_DomainRegisterStringW,
    KP_NVTX_DomainCreateA,
    KP_NVTX_DomainCreateW,
};

enum { KP_NVTX_MESSAGE_ASCII = 1, KP_NVTX_MESSAGE_UNICODE = 2, KP_NVTX_MESSAGE_REGISTERED = 3 };
union kp_nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered; /* the result of RegisterString */
};

enum {
    KP_NVTX_PAYLOAD_NONE = 0,
    KP_NVTX_PAYLOAD_U64,
    KP_NVTX_PAYLOAD_I64,
    KP_NVTX_PAYLOAD_DOUBLE,
    KP_NVTX_PAYLOAD_U32,
    KP_NVTX_PAYLOAD_I32,
    KP_NVTX_PAYLOAD_FLOAT,
};
union kp_nvtx_payload {
    uint64_t u64;
    int64_t i64;
    double real;
    uint32_t u32;
    int32_t i32;
    float single;
};

/* nvtxEventAttributes_t, in both its versions. */
struct kp_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    union kp_nvtx_payload payload;
    int32_t message_type;
    union kp_nvtx_message message;
};

/* nvtxResourceAttributes_t */
struct kp_nvtx_resource {
    uint16_t version, size;
    int32_t type;
    union {
        const void *pointer;
        uint64_t number;
    } id;
    int32_t message_type;
    union kp_nvtx_message message;
};

enum {
    KP_NVTX_RESOURCE_THREAD = 1 << 16 | 3,      /* the operating system's id */
    KP_NVTX_RESOURCE_CUDA_STREAM = 4 << 16 | 3, /* CUstream */
    KP_NVTX_RESOURCE_CUDART_STREAM = 5 << 16 | 1,
};

/* NVTX's "ranges are not tracked", returned instead of a level by push and pop. */
enum { KP_NVTX_NOT_TRACKED = -2 };

/* The door: NVTX looks for it in the library that the variable names, once for each copy of NVTX in the program.
 * Returns 1: NVTX uses our functions from now on; 0: the program's NVTX does nothing. */
int InitializeInjectionNvtx2(kp_nvtx_get_table get);

#endif
