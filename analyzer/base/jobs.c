/*
 * analyzer/base/jobs.c: how many threads read a trace set. Called by the verbs, and by those who read traces.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "jobs.h"
#include "util.h"

static unsigned int chosen; /* 0: not yet */

static unsigned int number_of(const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno || n > JOBS_MOST ? 0 : (unsigned int)n;
}

/* That this process may use: of a container or a job of a batch system, often not all. */
static unsigned int cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return n < 1 ? 1 : (unsigned int)n;
}

int jobs_choose(const char *option)
{
	const char *text = option ?: getenv("CUDASPY_JOBS");

	chosen = 0;
	if (!text || !*text)
		return 0;
	chosen = number_of(text);
	if (chosen)
		return 0;
	warn("%s=%s: not a number from 1 to %d", option ? "--jobs" : "CUDASPY_JOBS", text,
	     JOBS_MOST);
	return -EINVAL;
}

unsigned int jobs_now(void)
{
	if (!chosen)
		(void)jobs_choose(NULL);
	if (!chosen)
		chosen = cpus();
	return chosen;
}

void jobs_log(const char *format, ...)
{
	va_list ap;

	if (!getenv("CUDASPY_JOBS_TRACE"))
		return;
	va_start(ap, format);
	fputs("cudaspy: jobs: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* ---- where time goes -------------------------------------------------------------------------- */

struct usage {
	double wall_s, cpu_s;
	long faults, waits, preempted;
};

bool jobs_logs_phases(void)
{
	const char *trace = getenv("CUDASPY_JOBS_TRACE");

	return trace && !strcmp(trace, "phases");
}

static struct usage usage_now(void)
{
	struct timespec now;
	struct rusage r;

	clock_gettime(CLOCK_MONOTONIC, &now);
	getrusage(RUSAGE_SELF, &r);
	return (struct usage){
		.wall_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
		.cpu_s = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
			 (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6,
		.faults = r.ru_minflt + r.ru_majflt,
		.waits = r.ru_nvcsw,
		.preempted = r.ru_nivcsw,
	};
}

void jobs_phase(const char *name)
{
	static const char *current;
	static struct usage begin;
	struct usage now;

	if (!jobs_logs_phases())
		return;
	now = usage_now();
	if (current)
		jobs_log("%-15s %8.3f s, CPU %8.3f s, %ld faults, %ld waits, %ld preempted",
			 current, now.wall_s - begin.wall_s, now.cpu_s - begin.cpu_s,
			 now.faults - begin.faults, now.waits - begin.waits,
			 now.preempted - begin.preempted);
	current = name;
	begin = now;
}
