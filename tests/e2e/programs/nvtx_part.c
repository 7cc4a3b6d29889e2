/*
 * tests/e2e/programs/nvtx_part.c: a library with an NVTX of its own, in the same process as that of nvtx.c.
 */
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

int part(void);

int part(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("part");
	nvtxEventAttributes_t work = {.version = NVTX_VERSION,
				      .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				      .messageType = NVTX_MESSAGE_TYPE_ASCII,
				      .message = {.ascii = "part's work"}};
	int pushed = nvtxDomainRangePushEx(domain, &work), popped = nvtxDomainRangePop(domain);

	nvtxMarkA("part's mark");
	nvtxDomainDestroy(domain);
	return pushed == popped ? pushed : -100;
}
#else
int part(void);

int part(void)
{
	return 0;
}
#endif
