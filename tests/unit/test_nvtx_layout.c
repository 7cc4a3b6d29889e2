/*
 * tests/unit/test_nvtx_layout.c: what shim/nvtx/nvtx_layout.h says of NVTX, against the headers that
 * are installed. Everything is checked by the compiler; without them there is nothing to check.
 */
#include <stdio.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>
#include "cudaspy/trace_format.h"
#include "nvtx/nvtx_layout.h"

#define AT(ours, theirs) \
	_Static_assert(offsetof(struct nvtx_attributes, ours) == \
			       offsetof(nvtxEventAttributes_t, theirs), \
		       #theirs); \
	_Static_assert(sizeof(((struct nvtx_attributes *)0)->ours) == \
			       sizeof(((nvtxEventAttributes_t *)0)->theirs), \
		       "size of " #theirs)
#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define CORE(name) VALUE(NVTX_CORE_##name, NVTX_CBID_CORE_##name)
#define CORE2(name) VALUE(NVTX_CORE2_##name, NVTX_CBID_CORE2_##name)
#define CUDA(name) VALUE(NVTX_CUDA_##name, NVTX_CBID_CUDA_##name)
#define CUDART(name) VALUE(NVTX_CUDART_##name, NVTX_CBID_CUDART_##name)

AT(version, version);
AT(bytes, size);
AT(category, category);
AT(color_type, colorType);
AT(color, color);
AT(payload_type, payloadType);
AT(reserved, reserved0);
AT(payload, payload);
AT(message_type, messageType);
AT(message, message);
_Static_assert(sizeof(struct nvtx_attributes) == sizeof(nvtxEventAttributes_t), "attributes");

VALUE(NVTX_MESSAGE_NONE, NVTX_MESSAGE_UNKNOWN);
VALUE(NVTX_MESSAGE_TEXT, NVTX_MESSAGE_TYPE_ASCII);
VALUE(NVTX_MESSAGE_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
VALUE(NVTX_MESSAGE_HANDLE, NVTX_MESSAGE_TYPE_REGISTERED);
VALUE(SPY_PAYLOAD_NONE, NVTX_PAYLOAD_UNKNOWN);
VALUE(SPY_PAYLOAD_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
VALUE(SPY_PAYLOAD_I64, NVTX_PAYLOAD_TYPE_INT64);
VALUE(SPY_PAYLOAD_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE);
VALUE(SPY_PAYLOAD_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
VALUE(SPY_PAYLOAD_I32, NVTX_PAYLOAD_TYPE_INT32);
VALUE(SPY_PAYLOAD_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
VALUE(NVTX_NO_TRACKING, NVTX_NO_PUSH_POP_TRACKING);

VALUE(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
VALUE(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
VALUE(NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
VALUE(NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
VALUE(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);

CORE(MarkEx);
CORE(MarkA);
CORE(MarkW);
CORE(RangeStartEx);
CORE(RangeStartA);
CORE(RangeStartW);
CORE(RangeEnd);
CORE(RangePushEx);
CORE(RangePushA);
CORE(RangePushW);
CORE(RangePop);
CORE(NameCategoryA);
CORE(NameCategoryW);
CORE(NameOsThreadA);
CORE(NameOsThreadW);
CORE2(DomainMarkEx);
CORE2(DomainRangeStartEx);
CORE2(DomainRangeEnd);
CORE2(DomainRangePushEx);
CORE2(DomainRangePop);
CORE2(DomainNameCategoryA);
CORE2(DomainNameCategoryW);
CORE2(DomainRegisterStringA);
CORE2(DomainRegisterStringW);
CORE2(DomainCreateA);
CORE2(DomainCreateW);
CORE2(DomainDestroy);
CORE2(Initialize);
CUDA(NameCuDeviceA);
CUDA(NameCuDeviceW);
CUDA(NameCuContextA);
CUDA(NameCuContextW);
CUDA(NameCuStreamA);
CUDA(NameCuStreamW);
CUDA(NameCuEventA);
CUDA(NameCuEventW);
CUDART(NameCudaDeviceA);
CUDART(NameCudaDeviceW);
CUDART(NameCudaStreamA);
CUDART(NameCudaStreamW);
CUDART(NameCudaEventA);
CUDART(NameCudaEventW);

_Static_assert(offsetof(struct nvtx_callbacks, bytes) ==
		       offsetof(NvtxExportTableCallbacks, struct_size),
	       "struct_size");
_Static_assert(offsetof(struct nvtx_callbacks, module) ==
		       offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable),
	       "GetModuleFunctionTable");
_Static_assert(sizeof(struct nvtx_callbacks) == sizeof(NvtxExportTableCallbacks), "callbacks");

int main(void)
{
	printf("NVTX's layouts are as the recorder takes them to be\n");
	return 0;
}
#else
int main(void)
{
	printf("no headers of NVTX here\n");
	return 0;
}
#endif
