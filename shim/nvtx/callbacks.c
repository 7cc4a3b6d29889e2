/*
 * shim/nvtx/callbacks.c: what NVTX's functions do when cudaspy records: each one three times, as
 * callbacks.h says. Called by the program, on any thread, and in any state that the program is in.
 *
 * A program may pass anything: an attribute structure of another version, no text. What is not
 * understood has no name.
 */
#include <string.h>
#include "nvtx/callbacks.h"
#include "record/range_names.h"
#include "nvtx/ranges.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

nvtx_function *spy_nvtx_next[SPY_NVTX_MODULES][SPY_NVTX_FUNCTIONS];

/* ---- what the arguments say ------------------------------------------------------------------ */

static inline struct spy_said say(const char *text)
{
	return (struct spy_said){.name = spy_range_number(0, text)};
}

static inline struct spy_said say_wide(const wchar_t *text)
{
	return (struct spy_said){.name = spy_range_number_wide(0, text)};
}

static inline bool is_narrow(int type)
{
	return type == SPY_PAYLOAD_U32 || type == SPY_PAYLOAD_I32 || type == SPY_PAYLOAD_FLOAT;
}

static inline uint32_t name_of(uint16_t domain, const struct nvtx_attributes *attributes)
{
	switch (attributes->message_type) {
	case NVTX_MESSAGE_TEXT:
		return spy_range_number(domain, attributes->message.text);
	case NVTX_MESSAGE_WIDE:
		return spy_range_number_wide(domain, attributes->message.wide);
	case NVTX_MESSAGE_HANDLE:
		return spy_string_of(attributes->message.handle);
	default:
		return spy_range_number(domain, "");
	}
}

static inline struct spy_said say_all(const void *handle, const struct nvtx_attributes *attributes)
{
	struct spy_said said = {.domain = spy_domain_of(handle)};

	if (!attributes || attributes->bytes < sizeof(*attributes))
		return said;
	said.name = name_of(said.domain, attributes);
	said.category = attributes->category;
	if (__builtin_expect(attributes->payload_type > SPY_PAYLOAD_NONE, 0) &&
	    attributes->payload_type < SPY_PAYLOADS) {
		said.payload_type = (uint8_t)attributes->payload_type;
		said.payload = is_narrow(said.payload_type) ? (uint32_t)attributes->payload
							    : attributes->payload;
	}
	return said;
}

/* ---- what is returned ------------------------------------------------------------------------ */

static inline int depth(enum spy_nvtx_mode mode, int theirs, int ours)
{
	return mode == SPY_NVTX_ALONE ? ours : mode == SPY_NVTX_CHAINED ? theirs : NVTX_NO_TRACKING;
}

/* Without an id the end is not known: no range. */
static inline uint64_t start(enum spy_nvtx_mode mode, uint64_t theirs, struct spy_said said)
{
	uint64_t id = mode == SPY_NVTX_ALONE ? spy_range_new_id() : theirs;

	if (id)
		spy_range_start(&said, id);
	return id;
}

static void *domain_handle(enum spy_nvtx_mode mode, void *theirs, uint16_t domain)
{
	if (mode == SPY_NVTX_ALONE)
		return spy_domain_handle(domain);
	spy_domain_learn(theirs, domain);
	return theirs;
}

static void *string_handle(enum spy_nvtx_mode mode, void *theirs, uint32_t name)
{
	if (mode == SPY_NVTX_ALONE)
		return spy_string_handle(name);
	spy_string_learn(theirs, name);
	return theirs;
}

static void name_wide(enum spy_nvtx_named what, uint64_t object, const wchar_t *wide)
{
	char text[SPY_DOMAIN_TEXT];

	spy_utf8_from_wide(text, sizeof(text), wide);
	spy_range_name_object(what, object, text);
}

static void name_text(enum spy_nvtx_named what, uint64_t object, const char *text)
{
	spy_range_name_object(what, object, text ? text : "");
}

/* "domain/name": categories of different domains have nothing in common. */
static void name_category(const void *handle, uint32_t category, const char *name)
{
	const char *domain = spy_domain_text(spy_domain_of(handle));
	size_t length = strnlen(domain, SPY_DOMAIN_TEXT - 2), rest;
	char text[SPY_DOMAIN_TEXT];

	memcpy(text, domain, length);
	if (length)
		text[length++] = '/';
	rest = name ? strnlen(name, sizeof(text) - 1 - length) : 0;
	memcpy(text + length, name ? name : "", rest);
	text[length + rest] = '\0';
	spy_range_name_object(SPY_NAMED_CATEGORY, category, text);
}

static void name_category_wide(const void *handle, uint32_t category, const wchar_t *name)
{
	char text[SPY_DOMAIN_TEXT];

	spy_utf8_from_wide(text, sizeof(text), name);
	name_category(handle, category, text);
}

/* ---- the functions --------------------------------------------------------------------------- */

/*
 * RETURNS(module, name, type, parameters, arguments, what is returned): `mode` and, of the other
 * tool, `theirs` are known to the last one. DOES: the same of functions that return nothing.
 */
#define P(...) (__VA_ARGS__)
/* clang-format off */
#define FUNCTIONS(RETURNS, DOES) \
	DOES(CORE, MarkEx, P(const struct nvtx_attributes *a), P(a), mark(say_all(NULL, a))) \
	DOES(CORE, MarkA, P(const char *m), P(m), mark(say(m))) \
	DOES(CORE, MarkW, P(const wchar_t *m), P(m), mark(say_wide(m))) \
	RETURNS(CORE, RangeStartEx, uint64_t, P(const struct nvtx_attributes *a), P(a), start(mode, theirs, say_all(NULL, a))) \
	RETURNS(CORE, RangeStartA, uint64_t, P(const char *m), P(m), start(mode, theirs, say(m))) \
	RETURNS(CORE, RangeStartW, uint64_t, P(const wchar_t *m), P(m), start(mode, theirs, say_wide(m))) \
	DOES(CORE, RangeEnd, P(uint64_t id), P(id), spy_range_end(id)) \
	RETURNS(CORE, RangePushEx, int, P(const struct nvtx_attributes *a), P(a), depth(mode, theirs, push(say_all(NULL, a)))) \
	RETURNS(CORE, RangePushA, int, P(const char *m), P(m), depth(mode, theirs, push(say(m)))) \
	RETURNS(CORE, RangePushW, int, P(const wchar_t *m), P(m), depth(mode, theirs, push(say_wide(m)))) \
	RETURNS(CORE, RangePop, int, P(void), P(), depth(mode, theirs, spy_range_pop(0))) \
	DOES(CORE, NameCategoryA, P(uint32_t c, const char *n), P(c, n), name_category(NULL, c, n)) \
	DOES(CORE, NameCategoryW, P(uint32_t c, const wchar_t *n), P(c, n), name_category_wide(NULL, c, n)) \
	DOES(CORE, NameOsThreadA, P(uint32_t t, const char *n), P(t, n), name_text(SPY_NAMED_THREAD, t, n)) \
	DOES(CORE, NameOsThreadW, P(uint32_t t, const wchar_t *n), P(t, n), name_wide(SPY_NAMED_THREAD, t, n)) \
	DOES(CORE2, DomainMarkEx, P(void *d, const struct nvtx_attributes *a), P(d, a), mark(say_all(d, a))) \
	RETURNS(CORE2, DomainRangeStartEx, uint64_t, P(void *d, const struct nvtx_attributes *a), P(d, a), start(mode, theirs, say_all(d, a))) \
	DOES(CORE2, DomainRangeEnd, P(void *d, uint64_t id), P(d, id), ((void)d, spy_range_end(id))) \
	RETURNS(CORE2, DomainRangePushEx, int, P(void *d, const struct nvtx_attributes *a), P(d, a), depth(mode, theirs, push(say_all(d, a)))) \
	RETURNS(CORE2, DomainRangePop, int, P(void *d), P(d), depth(mode, theirs, spy_range_pop(spy_domain_of(d)))) \
	DOES(CORE2, DomainNameCategoryA, P(void *d, uint32_t c, const char *n), P(d, c, n), name_category(d, c, n)) \
	DOES(CORE2, DomainNameCategoryW, P(void *d, uint32_t c, const wchar_t *n), P(d, c, n), name_category_wide(d, c, n)) \
	RETURNS(CORE2, DomainRegisterStringA, void *, P(void *d, const char *s), P(d, s), string_handle(mode, theirs, spy_range_number(spy_domain_of(d), s))) \
	RETURNS(CORE2, DomainRegisterStringW, void *, P(void *d, const wchar_t *s), P(d, s), string_handle(mode, theirs, spy_range_number_wide(spy_domain_of(d), s))) \
	RETURNS(CORE2, DomainCreateA, void *, P(const char *n), P(n), domain_handle(mode, theirs, spy_domain_number(n))) \
	RETURNS(CORE2, DomainCreateW, void *, P(const wchar_t *n), P(n), domain_handle(mode, theirs, spy_domain_number_wide(n))) \
	DOES(CUDA, NameCuDeviceA, P(int o, const char *n), P(o, n), name_text(SPY_NAMED_DEVICE, (uint64_t)o, n)) \
	DOES(CUDA, NameCuDeviceW, P(int o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_DEVICE, (uint64_t)o, n)) \
	DOES(CUDA, NameCuContextA, P(void *o, const char *n), P(o, n), name_text(SPY_NAMED_CONTEXT, (uintptr_t)o, n)) \
	DOES(CUDA, NameCuContextW, P(void *o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_CONTEXT, (uintptr_t)o, n)) \
	DOES(CUDA, NameCuStreamA, P(void *o, const char *n), P(o, n), name_text(SPY_NAMED_STREAM, (uintptr_t)o, n)) \
	DOES(CUDA, NameCuStreamW, P(void *o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_STREAM, (uintptr_t)o, n)) \
	DOES(CUDA, NameCuEventA, P(void *o, const char *n), P(o, n), name_text(SPY_NAMED_EVENT, (uintptr_t)o, n)) \
	DOES(CUDA, NameCuEventW, P(void *o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_EVENT, (uintptr_t)o, n)) \
	DOES(CUDART, NameCudaDeviceA, P(int o, const char *n), P(o, n), name_text(SPY_NAMED_DEVICE, (uint64_t)o, n)) \
	DOES(CUDART, NameCudaDeviceW, P(int o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_DEVICE, (uint64_t)o, n)) \
	DOES(CUDART, NameCudaStreamA, P(void *o, const char *n), P(o, n), name_text(SPY_NAMED_STREAM, (uintptr_t)o, n)) \
	DOES(CUDART, NameCudaStreamW, P(void *o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_STREAM, (uintptr_t)o, n)) \
	DOES(CUDART, NameCudaEventA, P(void *o, const char *n), P(o, n), name_text(SPY_NAMED_EVENT, (uintptr_t)o, n)) \
	DOES(CUDART, NameCudaEventW, P(void *o, const wchar_t *n), P(o, n), name_wide(SPY_NAMED_EVENT, (uintptr_t)o, n))
/* clang-format on */

static inline void mark(struct spy_said said)
{
	spy_range_mark(&said);
}

static inline int push(struct spy_said said)
{
	return spy_range_push(&said);
}

#define NUMBER(module, name) NVTX_##module##_##name
#define NEXT(module, name) spy_nvtx_next[NVTX_MODULE_##module][NUMBER(module, name)]

/* The other tool's function is called first: what it returns may be what ours is about. */
#define DEFINE_RETURNS(module, name, type, parameters, arguments, result) \
	static type alone_##name parameters \
	{ \
		const enum spy_nvtx_mode mode = SPY_NVTX_ALONE; \
		type theirs __attribute__((unused)) = 0; \
\
		return result; \
	} \
	static type chained_##name parameters \
	{ \
		const enum spy_nvtx_mode mode = SPY_NVTX_CHAINED; \
		type theirs = ((type(*) parameters)NEXT(module, name))arguments; \
\
		return result; \
	} \
	static type mute_##name parameters \
	{ \
		const enum spy_nvtx_mode mode = SPY_NVTX_MUTE; \
		type theirs __attribute__((unused)) = 0; \
\
		return result; \
	}

#define DEFINE_DOES(module, name, parameters, arguments, action) \
	static void alone_##name parameters \
	{ \
		action; \
	} \
	static void chained_##name parameters \
	{ \
		((void(*) parameters)NEXT(module, name)) arguments; \
		action; \
	}

FUNCTIONS(DEFINE_RETURNS, DEFINE_DOES)

#define ROW_RETURNS(module, name, type, parameters, arguments, result) \
	[NVTX_MODULE_##module][NUMBER(module, name)] = {(nvtx_function *)alone_##name, \
							(nvtx_function *)chained_##name, \
							(nvtx_function *)mute_##name},
#define ROW_DOES(module, name, parameters, arguments, action) \
	[NVTX_MODULE_##module][NUMBER(module, name)] = {(nvtx_function *)alone_##name, \
							(nvtx_function *)chained_##name, \
							(nvtx_function *)alone_##name},

static nvtx_function *const callbacks[SPY_NVTX_MODULES][SPY_NVTX_FUNCTIONS][3] = {
	FUNCTIONS(ROW_RETURNS, ROW_DOES)};

nvtx_function *spy_nvtx_callback(int module, unsigned int function, enum spy_nvtx_mode mode)
{
	return module < SPY_NVTX_MODULES && function < SPY_NVTX_FUNCTIONS
		       ? callbacks[module][function][mode]
		       : NULL;
}
