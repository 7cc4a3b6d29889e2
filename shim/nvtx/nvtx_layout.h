/*
 * shim/nvtx/nvtx_layout.h: what of NVTX's interface for tools the recorder needs, declared anew: it
 * is built without a CUDA toolkit, too. tests/unit/test_nvtx_layout.c checks it against the headers
 * that are installed (nvtx3/nvtxDetail/nvtxTypes.h, nvtx3/nvToolsExt.h).
 */
#ifndef CUDASPY_SHIM_NVTX_LAYOUT_H
#define CUDASPY_SHIM_NVTX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* Each object that contains NVTX has tables of its own, and gives them to the tool's function of
 * this name, once, before its first function does anything. */
#define NVTX_INIT_NAME "InitializeInjectionNvtx2"
#define NVTX_TOOL_VARIABLE "NVTX_INJECTION64_PATH"

#define NVTX_TABLE_CALLBACKS 1 /* for the function that such a function is given */

enum nvtx_module {
	NVTX_MODULE_CORE = 1,
	NVTX_MODULE_CUDA = 2,
	NVTX_MODULE_CUDART = 4,
	NVTX_MODULE_CORE2 = 5,
};

enum nvtx_core {
	NVTX_CORE_MarkEx = 1,
	NVTX_CORE_MarkA,
	NVTX_CORE_MarkW,
	NVTX_CORE_RangeStartEx,
	NVTX_CORE_RangeStartA,
	NVTX_CORE_RangeStartW,
	NVTX_CORE_RangeEnd,
	NVTX_CORE_RangePushEx,
	NVTX_CORE_RangePushA,
	NVTX_CORE_RangePushW,
	NVTX_CORE_RangePop,
	NVTX_CORE_NameCategoryA,
	NVTX_CORE_NameCategoryW,
	NVTX_CORE_NameOsThreadA,
	NVTX_CORE_NameOsThreadW,
	NVTX_CORE_END
};

enum nvtx_core2 {
	NVTX_CORE2_DomainMarkEx = 1,
	NVTX_CORE2_DomainRangeStartEx,
	NVTX_CORE2_DomainRangeEnd,
	NVTX_CORE2_DomainRangePushEx,
	NVTX_CORE2_DomainRangePop,
	NVTX_CORE2_DomainNameCategoryA = 8,
	NVTX_CORE2_DomainNameCategoryW,
	NVTX_CORE2_DomainRegisterStringA,
	NVTX_CORE2_DomainRegisterStringW,
	NVTX_CORE2_DomainCreateA,
	NVTX_CORE2_DomainCreateW,
	NVTX_CORE2_DomainDestroy,
	NVTX_CORE2_Initialize,
	NVTX_CORE2_END
};

enum nvtx_cuda {
	NVTX_CUDA_NameCuDeviceA = 1,
	NVTX_CUDA_NameCuDeviceW,
	NVTX_CUDA_NameCuContextA,
	NVTX_CUDA_NameCuContextW,
	NVTX_CUDA_NameCuStreamA,
	NVTX_CUDA_NameCuStreamW,
	NVTX_CUDA_NameCuEventA,
	NVTX_CUDA_NameCuEventW,
	NVTX_CUDA_END
};

enum nvtx_cudart {
	NVTX_CUDART_NameCudaDeviceA = 1,
	NVTX_CUDART_NameCudaDeviceW,
	NVTX_CUDART_NameCudaStreamA,
	NVTX_CUDART_NameCudaStreamW,
	NVTX_CUDART_NameCudaEventA,
	NVTX_CUDART_NameCudaEventW,
	NVTX_CUDART_END
};

/* What a push or a pop returns where no tool counts the ranges. */
#define NVTX_NO_TRACKING (-2)

enum nvtx_message_type {
	NVTX_MESSAGE_NONE,
	NVTX_MESSAGE_TEXT,
	NVTX_MESSAGE_WIDE,
	NVTX_MESSAGE_HANDLE, /* of a string that was registered */
};

/* nvtxEventAttributes_t. */
struct nvtx_attributes {
	uint16_t version;
	uint16_t bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type; /* enum spy_range_payload */
	int32_t reserved;
	uint64_t payload;
	int32_t message_type; /* enum nvtx_message_type */
	union {
		const char *text;
		const wchar_t *wide;
		const void *handle;
	} message;
};

/* Any function of NVTX's; a slot has one. */
typedef void nvtx_function(void);

typedef const void *nvtx_get_table(uint32_t table);
typedef int nvtx_initialize(nvtx_get_table *get);

/* What a table of callbacks is: it gives the slots of a module, by function number. */
struct nvtx_callbacks {
	size_t bytes;
	int (*module)(int module, nvtx_function ****slots, unsigned int *n);
};

#endif
