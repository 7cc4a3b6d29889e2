/*
 * tests/bench/ways.c: switches what the recorder does, for a build of the recorder that tests/bench/bench_map compares with
 * itself (build/bench/libcudaspy_ways.so). Two runs of a program on one machine differ by more than what is measured, so the
 * ways take turns inside one. Called by one thread while the others are inside no call.
 */
#include <string.h>
#include "probe/probe.h"
#include "probe/waiters.h"
#include "process/options.h"
#include "state/session.h"

__attribute__((visibility("default"))) bool spy_bench_way(const char *name);

/* noprobes: waits are not looked at. all: each handoff of a contended lock is followed (--all-locks). bursts: as it is by
 * default. False: there is no such way. */
bool spy_bench_way(const char *name)
{
	bool no_probes = !strcmp(name, "noprobes"), all = !strcmp(name, "all");

	if (!no_probes && !all && strcmp(name, "bursts") != 0)
		return false;
	spy_probing = !no_probes;
	spy_options.all_locks = all ? "1" : NULL;
	spy_waiters_begin(spy_session->frequency);
	spy_waiters_forget();
	return true;
}
