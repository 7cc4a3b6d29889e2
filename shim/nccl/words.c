/*
 * shim/nccl/words.c: NCCL's words for functions, types, algorithms and protocols. Called where operations are submitted.
 */
#include <stddef.h>
#include <string.h>
#include "cudaspy/trace_format.h"
#include "nccl/words.h"

struct word {
	const char *text;
	uint8_t value;
};

/* The commonest first. */
static const struct word funcs[] = {{"AllReduce", SPY_NCCL_ALL_REDUCE},
				    {"AllGather", SPY_NCCL_ALL_GATHER},
				    {"ReduceScatter", SPY_NCCL_REDUCE_SCATTER},
				    {"Send", SPY_NCCL_SEND},
				    {"Recv", SPY_NCCL_RECV},
				    {"Broadcast", SPY_NCCL_BROADCAST},
				    {"Reduce", SPY_NCCL_REDUCE},
				    {"AlltoAll", SPY_NCCL_ALL_TO_ALL},
				    {"Gather", SPY_NCCL_GATHER},
				    {"Scatter", SPY_NCCL_SCATTER},
				    {NULL, SPY_NCCL_OTHER}};

static const struct word algorithms[] = {{"RING", SPY_NCCL_RING},
					 {"TREE", SPY_NCCL_TREE},
					 {"NVLS", SPY_NCCL_NVLS},
					 {"NVLS_TREE", SPY_NCCL_NVLS_TREE},
					 {"PAT", SPY_NCCL_PAT},
					 {"COLLNET_DIRECT", SPY_NCCL_COLLNET_DIRECT},
					 {"COLLNET_CHAIN", SPY_NCCL_COLLNET_CHAIN},
					 {NULL, SPY_NCCL_ALGORITHM_UNKNOWN}};

static const struct word protocols[] = {{"SIMPLE", SPY_NCCL_SIMPLE},
					{"LL", SPY_NCCL_LL},
					{"LL128", SPY_NCCL_LL128},
					{NULL, SPY_NCCL_PROTOCOL_UNKNOWN}};

static const struct word datatypes[] = {
	{"ncclFloat32", 4}, {"ncclBfloat16", 2}, {"ncclFloat16", 2},    {"ncclInt8", 1},
	{"ncclUint8", 1},   {"ncclInt32", 4},    {"ncclUint32", 4},     {"ncclInt64", 8},
	{"ncclUint64", 8},  {"ncclFloat64", 8},  {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
	{NULL, 0}};

static uint8_t value_of(const struct word *word, const char *text)
{
	while (text && word->text && strcmp(word->text, text) != 0)
		word++;
	return text ? word->value : 0;
}

uint8_t spy_nccl_func_named(const char *name)
{
	return value_of(funcs, name);
}

uint8_t spy_nccl_algorithm_named(const char *name)
{
	return value_of(algorithms, name);
}

uint8_t spy_nccl_protocol_named(const char *name)
{
	return value_of(protocols, name);
}

uint8_t spy_nccl_bytes_named(const char *datatype)
{
	return value_of(datatypes, datatype);
}

/* ---- the numbers of NCCL 2.23 ----------------------------------------------------------------- */

#define NUMBERED(table, number) ((number) < sizeof(table) ? (table)[number] : 0)

static const uint8_t func_numbers[] = {
	SPY_NCCL_BROADCAST,      SPY_NCCL_REDUCE,     SPY_NCCL_ALL_GATHER,
	SPY_NCCL_REDUCE_SCATTER, SPY_NCCL_ALL_REDUCE, SPY_NCCL_OTHER /* a pair of Send and Recv */,
	SPY_NCCL_SEND,           SPY_NCCL_RECV};
static const uint8_t algorithm_numbers[] = {SPY_NCCL_TREE,
					    SPY_NCCL_RING,
					    SPY_NCCL_COLLNET_DIRECT,
					    SPY_NCCL_COLLNET_CHAIN,
					    SPY_NCCL_NVLS,
					    SPY_NCCL_NVLS_TREE,
					    SPY_NCCL_PAT};
static const uint8_t protocol_numbers[] = {SPY_NCCL_LL, SPY_NCCL_LL128, SPY_NCCL_SIMPLE};
/* Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16 */
static const uint8_t datatype_numbers[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

uint8_t spy_nccl_func_numbered(unsigned int number)
{
	return NUMBERED(func_numbers, number);
}

uint8_t spy_nccl_algorithm_numbered(unsigned int number)
{
	return NUMBERED(algorithm_numbers, number);
}

uint8_t spy_nccl_protocol_numbered(unsigned int number)
{
	return NUMBERED(protocol_numbers, number);
}

uint8_t spy_nccl_bytes_numbered(unsigned int datatype)
{
	return NUMBERED(datatype_numbers, datatype);
}
