/*
 * shim/record/stream_names.c: what the files of a stream are called.
 */
#include <stdio.h>
#include "record/stream.h"

void spy_stream_tail_name(char *name, uint32_t slot)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u_tail", slot);
}

void spy_stream_packet_name(char *name, uint32_t slot, uint64_t seq)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u_%06llu", slot, (unsigned long long)seq);
}

void spy_stream_file_name(char *name, uint32_t slot, uint64_t number)
{
	if (number)
		spy_stream_packet_name(name, slot, number - 1);
	else
		snprintf(name, SPY_STREAM_NAME_BYTES, "stream_%04u", slot);
}
