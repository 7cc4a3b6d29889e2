/*
 * tests/sim/nccl_math.c: what the look-alike's reductions compute, on the thread that finds their end has
 * come. Numbers of 16 bits are not computed.
 */
#include "nccl.h"

/* clang-format off */
#define TYPES(T) \
	T(NCCL_INT8, int8_t) T(NCCL_UINT8, uint8_t) T(NCCL_INT32, int32_t) T(NCCL_UINT32, uint32_t) \
	T(NCCL_INT64, int64_t) T(NCCL_UINT64, uint64_t) T(NCCL_FLOAT32, float) T(NCCL_FLOAT64, double)
/* clang-format on */

#define REDUCE(number, type) \
	static void reduce_##type(type *into, const type *from, size_t count, \
				  enum nccl_reduction reduction) \
	{ \
		for (size_t i = 0; i < count; i++) { \
			type a = into[i], b = from[i]; \
\
			into[i] = reduction == NCCL_PROD  ? (type)(a * b) \
				  : reduction == NCCL_MAX ? (a > b ? a : b) \
				  : reduction == NCCL_MIN ? (a < b ? a : b) \
							  : (type)(a + b); \
		} \
	} \
	static void divide_##type(type *values, size_t count, int by) \
	{ \
		for (size_t i = 0; i < count; i++) \
			values[i] = (type)(values[i] / (type)by); \
	}
TYPES(REDUCE)

bool nccl_can_reduce(enum nccl_type type)
{
	return type < NCCL_TYPES && type != NCCL_FLOAT16 && type != NCCL_BFLOAT16;
}

void nccl_reduce(void *into, const void *from, size_t count, enum nccl_type type,
		 enum nccl_reduction reduction)
{
	switch (type) {
#define CASE(number, name) \
	case number: \
		reduce_##name(into, from, count, reduction); \
		break;
		TYPES(CASE)
#undef CASE
	default:
		break;
	}
}

void nccl_divide(void *values, size_t count, enum nccl_type type, int by)
{
	switch (type) {
#define CASE(number, name) \
	case number: \
		divide_##name(values, count, by); \
		break;
		TYPES(CASE)
#undef CASE
	default:
		break;
	}
}
