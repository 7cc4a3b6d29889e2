/*
 * analyzer/digest/make.h: digests of traces.
 */
#ifndef CUDASPY_DIGEST_MAKE_H
#define CUDASPY_DIGEST_MAKE_H

#include "digest.h"
#include "findings/analyzed.h"
#include "sections/sections.h"

/* What a rank's rows are made of. For the files of this folder. */
struct digest_builder {
	struct digest *digest;
	struct digest_data data;
	const struct analysis *a;
	struct symbolizer *symbols;
	struct arena texts;
	struct idle_writer words; /* of places */
	uint64_t begin_ns; /* of the analysis: its first record, or the first process's begin */
};

/* The text's number, redacted if that was asked for. */
uint64_t digest_text(struct digest_builder *m, const char *text);

/* Adds the rank, or the one process, of an analysis that is over: its set has no other traces. source: what to call it in
 * messages. 0 or -EEXIST, as digest_add. */
int digest_make(struct digest *digest, const struct analysis *a, struct symbolizer *symbols,
		const char *source);

/* ---- for the files of this folder ------------------------------------------------------------ */

void digest_make_calls(struct digest_builder *m); /* functions, roles, locks, edges, worst */
void digest_make_findings(struct digest_builder *m); /* sites, causes */
void digest_make_operations(struct digest_builder *m); /* comms, meetings, slow */
void digest_make_sharing(struct digest_builder *m); /* tenants */
void digest_make_parts(struct digest_builder *m); /* parts */

/* Its UUID. */
const char *digest_recording(struct digest_builder *m, const struct metadata *metadata);

/* What a thread is called, without numbers; the process's first one is "main". */
const char *digest_role(struct digest_builder *m, const struct thread *thread);

#endif
