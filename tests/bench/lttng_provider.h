/*
 * tests/bench/lttng_provider.h: the tracepoints of the LTTng-UST peer: entry and exit of a call,
 * two fields each. Included several times by LTTng's own headers, hence the odd guard.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cuda_call

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"

#if !defined(LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(cuda_call, enter,
	LTTNG_UST_TP_ARGS(uint32_t, fn, uint64_t, stream),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint32_t, fn, fn)
		lttng_ust_field_integer_hex(uint64_t, stream, stream)))

LTTNG_UST_TRACEPOINT_EVENT(cuda_call, leave,
	LTTNG_UST_TP_ARGS(uint32_t, fn, uint32_t, result),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint32_t, fn, fn)
		lttng_ust_field_integer(uint32_t, result, result)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
