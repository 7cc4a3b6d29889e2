/*
 * tests/sim/runtime.h: the inside of the simulated runtime, compiled once for each generation (RT_GEN is
 * 11, 12 or 13) and once more as the static archive. It reaches the driver only through pointers that
 * cuGetProcAddress_v2 gave it. Included by runtime_*.c.
 */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include "span.h"

#ifndef RT_GEN
#define RT_GEN 13
#endif

/* Generation 13 names the context when it synchronises or asks for the device. */
#if RT_GEN >= 13
#define RT_ELAPSED_VERSION 12080
#define RT_CTX_SYNC_VERSION 13000
#define RT_CTX_SYNC_PARAMS (void *)
#define RT_CTX_DEVICE_PARAMS (int *, void *)
#else
#define RT_ELAPSED_VERSION 2000
#define RT_CTX_SYNC_VERSION 2000
#define RT_CTX_SYNC_PARAMS (void)
#define RT_CTX_DEVICE_PARAMS (int *)
#endif

struct rt_driver {
#define DRIVER(name, version, params) int(*name) params;
#include "runtime_driver.def"
#undef DRIVER
};

extern struct rt_driver rt_drivers[2]; /* [1]: for per-thread default streams */
extern const struct sim_private *rt_private;
extern int rt_device_cnt;
extern bool rt_ready;
extern void *rt_primary[16];

struct rt_thread {
	int device;
	int last_error;
	struct sim_thread *self;
};
extern __thread struct rt_thread rt_thread;

/* What a call needs before it can do its work. */
enum rt_need { RT_NOTHING, RT_DRIVER, RT_CONTEXT };
int rt_prepare(enum rt_need need);
int rt_fail(int rc); /* remembers the error for cudaGetLastError */
int rt_context(int device, void **ctx);

static inline bool rt_spans(void)
{
	return __builtin_expect(rt_private && *rt_private->spans_on, 0);
}

/* The very first call finds the driver, which it needs to write itself down: its beginning is set
 * afterwards. */
int rt_span_late(struct sim_span *span, enum sim_fn fn, uint64_t begin_ns);
uint64_t rt_now_ns(void);

#define RT_BODY(fn, need, call) \
	{ \
		struct sim_span span; \
		bool rt_open = rt_spans(); \
		uint64_t rt_since_ns = __builtin_expect(!rt_private, 0) ? rt_now_ns() : 0; \
		int rt_rc = rt_open ? rt_private->span_open(&span, FN_##fn) : SIM_OK; \
		if (!rt_rc) \
			rt_rc = rt_prepare(need); \
		if (__builtin_expect(rt_since_ns && rt_spans(), 0)) { \
			int injected = rt_span_late(&span, FN_##fn, rt_since_ns); \
			rt_open = true; \
			if (injected) \
				rt_rc = injected; \
		} \
		if (!rt_rc) \
			rt_rc = (call); \
		if (rt_open) \
			rt_rc = rt_private->span_close(&span, rt_rc); \
		return __builtin_expect(rt_rc, 0) ? rt_fail(rt_rc) : rt_rc; \
	}

/* RT_EXPORT: needs a context; RT_QUERY: only the driver; RT_PLAIN: nothing. drv is the driver. */
#define RT_EXPORT_AS(name, need, pt, params, call) \
	SIM_PUBLIC int name params; \
	SIM_PUBLIC int name params \
	{ \
		const struct rt_driver *const drv = &rt_drivers[pt]; \
		const bool per_thread = pt; \
		(void)drv; \
		(void)per_thread; \
		RT_BODY(name, need, call) \
	}
#define RT_EXPORT(name, params, call) RT_EXPORT_AS(name, RT_CONTEXT, 0, params, call)
#define RT_QUERY(name, params, call) RT_EXPORT_AS(name, RT_DRIVER, 0, params, call)
#define RT_PLAIN(name, params, call) RT_EXPORT_AS(name, RT_NOTHING, 0, params, call)
#define RT_PTSZ(name, params, call) \
	RT_EXPORT_AS(name, RT_CONTEXT, 0, params, call) \
	RT_EXPORT_AS(name##_ptsz, RT_CONTEXT, 1, params, call)
#define RT_PTDS(name, params, call) \
	RT_EXPORT_AS(name, RT_CONTEXT, 0, params, call) \
	RT_EXPORT_AS(name##_ptds, RT_CONTEXT, 1, params, call)

#define RT_ADDRESS(p) ((sim_ptr)(uintptr_t)(p))

/* ---- code registered by the program (runtime_code.c) ---- */
struct rt_function {
	const void *host;
	const char *name;
	struct rt_code *code;
	void *kernel; /* the driver's, once asked for */
	const void *origin; /* if host is a driver's kernel: the host stub it belongs to */
};

struct rt_variable {
	struct rt_variable *next;
	const void *host;
	void **pointer; /* a managed one's pointer on the host */
	const char *name;
	size_t bytes;
	struct rt_code *code;
};

int rt_kernel(void **kernel, const void *func);
void *rt_host_of(void *kernel);
int rt_symbol(sim_ptr *out, size_t *bytes, const void *symbol);
int rt_load_code(void);
void rt_unload_code(void);

/* ---- copies (runtime_copy.c) ---- */
int rt_memcpy3d(struct sim_memcpy3d *out, const struct sim_rt_memcpy3d *in);

#endif
