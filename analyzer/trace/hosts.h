/*
 * analyzer/trace/hosts.h: the machines that the traces of a set were made on, each between two
 * boots.
 *
 * Traces of one boot are of one host; without a boot id, those that name the same host are. A trace
 * that tells neither is taken to be of the only host there is, or else of one more, unknown host.
 */
#ifndef CUDASPY_HOSTS_H
#define CUDASPY_HOSTS_H

#include "base/util.h"

struct trace;
struct trace_set;

struct host {
	/* its name, with the boot if another one has the same; "boot:1234abcd"; "unknown" */
	char *label;
	const char *name, *boot; /* as metadata have them; NULL unknown */
	uint32_t index; /* among the set's hosts */
	uint64_t traces;
	uint64_t cpus; /* the fewest that any of its processes may use; 0 unknown */
	bool alone; /* there are no others in the set */
};

/* After the set's traces are in order: finds hosts, and gives the traces of each that count with
 * the same counter the timeline of the first of them. */
void hosts_find(struct trace_set *set);
void hosts_release(struct trace_set *set);

#endif
