/*
 * tests/sim/waits.c: each wait inside a call as a line of waits.<pid>.tsv: locks (taken at once or not,
 * with the time they were held), waits for simulated GPU work, time in the kernel module. What is left
 * of a call is its own work. Written by truth.c, whose buffers hold the lines until then.
 */
#include "sim.h"

bool sim_waits_on;

/* end: of the wait; a lock is held from then until released. release: when that began. */
const char sim_waits_head[] =
	"#kind\ttid\tfunction\touter_function\tdevice\tlock\taddress\thow\tbegin_ns\tend_ns"
	"\trelease_ns\treleased_ns\n";

static const char *how(const struct sim_wait *wait)
{
	static const char *const locks[] = {"mutex", "read", "write", "spin"};
	static const char *const gpu[] = {"intended", "hidden", "queue"};

	return wait->kind == WAIT_LOCK  ? locks[wait->how]
	       : wait->kind == WAIT_GPU ? gpu[wait->how]
					: "-";
}

static void name_lock(const struct sim_wait *wait, char *name, size_t bytes)
{
	static const char *const names[] = {"process", "context", "staging", "pool"};

	if (wait->kind != WAIT_LOCK)
		snprintf(name, bytes, "-");
	else if (wait->lock == SIM_LOCK_SCRIPTED)
		snprintf(name, bytes, "%s", wait->name);
	else if (wait->lock == SIM_LOCK_INIT || wait->lock == SIM_LOCK_RUNTIME)
		snprintf(name, bytes, wait->lock == SIM_LOCK_INIT ? "init" : "runtime");
	else
		snprintf(name, bytes, "%s%d", names[wait->lock], wait->lock_dev);
}

void sim_waits_write(int fd, int tid, const struct sim_wait *waits, unsigned cnt)
{
	static const char *const kinds[] = {"lock", "gpu", "ioctl", "mps"};
	char text[32768];
	size_t at = 0;

	for (unsigned i = 0; i < cnt; i++) {
		const struct sim_wait *w = &waits[i];
		char name[160];

		name_lock(w, name, sizeof(name));
		at += (size_t)snprintf(
			text + at, sizeof(text) - at,
			"%s\t%d\t%s\t%s\t%d\t%s\t%#llx\t%s\t%llu\t%llu\t%llu\t%llu\n",
			kinds[w->kind], tid, sim_fn_name[w->fn], sim_fn_name[w->outer_fn], w->dev,
			name, (unsigned long long)(uintptr_t)w->address, how(w),
			(unsigned long long)w->begin_ns, (unsigned long long)w->end_ns,
			(unsigned long long)w->release_ns, (unsigned long long)w->released_ns);
		if (at > sizeof(text) - 512 || i + 1 == cnt) {
			for (size_t done = 0; done < at;) {
				long n = sim_syscall(SYS_write, fd, (long)(text + done),
						     (long)(at - done));

				if (n <= 0)
					return;
				done += (size_t)n;
			}
			at = 0;
		}
	}
}
