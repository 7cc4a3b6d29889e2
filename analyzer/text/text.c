/*
 * analyzer/text/text.c: the words in which sentences are written. Called by detectors, findings
 * and the sections of a report.
 */
#include <string.h>
#include "text.h"
#include "base/format.h"
#include "trace/names.h"

const char *text_time(struct arena *texts, uint64_t ns)
{
	char text[32];

	format_ns(text, sizeof(text), ns);
	return arena_printf(texts, "%s", text);
}

const char *text_thread_time(struct arena *texts, uint64_t ns, uint64_t threads)
{
	char text[32], *unit;

	format_ns(text, sizeof(text), ns);
	unit = strchr(text, ' ');
	if (threads < 2 || !ns || !unit)
		return arena_printf(texts, "%s", text);
	*unit++ = '\0';
	return arena_printf(texts, "%s thread-%s", text, !strcmp(unit, "s") ? "seconds" : unit);
}

const char *text_count(struct arena *texts, uint64_t n, const char *what)
{
	char text[32];

	format_count(text, sizeof(text), n);
	return arena_printf(texts, "%s %s%s", text, what, n == 1 ? "" : "s");
}

const char *text_percent(struct arena *texts, double part, double whole)
{
	char text[32];

	format_percent(text, sizeof(text), part, whole);
	return arena_printf(texts, "%s", text);
}

const char *text_since(struct arena *texts, const struct model *model, uint64_t ns)
{
	return arena_printf(texts, "t = %s",
			    text_time(texts, ns > model->first_ns ? ns - model->first_ns : 0));
}

const char *text_function(const struct trace_set *set, uint32_t fn)
{
	return fn < set->functions.count ? set->functions.all[fn].name : NULL;
}

const char *text_result(const struct trace_set *set, uint32_t fn, unsigned int result)
{
	const char *function = text_function(set, fn);

	return name_error(result,
			  function && !strncmp(function, "cu", 2) && strncmp(function, "cuda", 4));
}

/* A thread's name says something where it is not the program's, which threads begin with. */
static const char *name_of(struct arena *texts, const struct thread *thread)
{
	size_t length = sizeof(thread->name) - 1;

	if (thread->given)
		return arena_printf(texts, " '%s'", thread->given);
	if (!thread->name[0] || !strncmp(thread->name, thread->process->trace->program, length))
		return "";
	return arena_printf(texts, " '%.15s'", thread->name);
}

const char *text_known_host(struct arena *texts, const struct host *host)
{
	return host && (host->name || host->boot) ? arena_printf(texts, "%s", host->label) : NULL;
}

const char *text_host(struct arena *texts, const struct trace *trace)
{
	return trace->host->alone ? "" : arena_printf(texts, "@%s", trace->host->label);
}

const char *text_program(struct arena *texts, const struct trace *trace)
{
	return arena_printf(texts, "%s.%u%s", trace->program, trace->pid, text_host(texts, trace));
}

const char *text_ordinal(struct arena *texts, uint64_t n)
{
	static const char *const ends[] = {"th", "st", "nd", "rd"};
	bool teen = n / 10 % 10 == 1;

	return arena_printf(texts, "%llu%s", (unsigned long long)n,
			    ends[teen || n % 10 > 3 ? 0 : n % 10]);
}

const char *text_rank(struct arena *texts, const struct trace *trace)
{
	const struct metadata *m = &trace->metadata;

	if (!m->has_rank)
		return NULL;
	if (!m->restarts)
		return arena_printf(texts, "rank %u", m->rank);
	return arena_printf(texts, "rank %u, %s start", m->rank,
			    text_ordinal(texts, (uint64_t)m->restarts + 1));
}

const char *text_where_runs(struct arena *texts, const struct trace *trace, uint8_t device)
{
	const char *host = trace->host->alone ? "" : trace->host->label;

	if (device == SPY_DEVICE_NONE)
		return *host ? arena_printf(texts, " (%s)", host) : "";
	return arena_printf(texts, " (%s%sGPU %u)", host, *host ? ", " : "", device);
}

const char *text_process(struct arena *texts, const struct trace *trace)
{
	const char *rank = text_rank(texts, trace), *program = text_program(texts, trace);

	return rank ? arena_printf(texts, "%s, %s", rank, program) : program;
}

const char *text_thread(struct arena *texts, const struct thread *thread, uint8_t device)
{
	const char *host, *rank;

	if (!thread)
		return "an unknown thread";
	if (thread->many)
		return "one of many threads";
	if (thread->non_cuda && !strncmp(thread->name, "cuda", 4)) /* as it calls its own */
		return arena_printf(texts, "the driver's own thread %.15s (%u)", thread->name,
				    thread->tid);
	if (thread->non_cuda && thread->name[0])
		return arena_printf(texts, "a thread without calls, %.15s (%u)", thread->name,
				    thread->tid);
	if (thread->non_cuda)
		return arena_printf(texts, "a thread without calls (%u)", thread->tid);
	rank = text_rank(texts, thread->process->trace);
	if (rank)
		return arena_printf(texts, "thread %u%s of %s%s", thread->tid,
				    name_of(texts, thread), rank,
				    text_where_runs(texts, thread->process->trace, device));
	host = text_host(texts, thread->process->trace);
	if (device == SPY_DEVICE_NONE)
		return arena_printf(texts, "thread %u%s%s", thread->tid, host,
				    name_of(texts, thread));
	return arena_printf(texts, "thread %u%s%s (GPU %u)", thread->tid, host,
			    name_of(texts, thread), device);
}

const char *text_in_function(struct arena *texts, const struct trace_set *set, uint32_t fn)
{
	const char *name = text_function(set, fn);

	return name ? arena_printf(texts, " in %s", name) : "";
}
