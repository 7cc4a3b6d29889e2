/*
 * analyzer/report/report_words.c: the words in which the sections about waits are written. Called
 * by report_waits.c, report_victims.c, report_blame.c and report_accounts.c.
 */
#include <string.h>
#include "report_words.h"
#include "base/format.h"
#include "trace/names.h"

const char *const bucket_names[BUCKET_COUNT] = {
#define BUCKET(name, key, text) text,
	BUCKETS(BUCKET)
#undef BUCKET
};

const char *const cause_keys[CAUSE_COUNT] = {
#define CAUSE(name, key, text) key,
	CAUSES(CAUSE)
#undef CAUSE
};

const char *const cause_names[CAUSE_COUNT] = {
#define CAUSE(name, key, text) text,
	CAUSES(CAUSE)
#undef CAUSE
};

const char *word_time(struct report *report, uint64_t ns)
{
	char text[32];

	format_ns(text, sizeof(text), ns);
	return report_text(report, "%s", text);
}

const char *word_count(struct report *report, uint64_t n, const char *what)
{
	char text[32];

	format_count(text, sizeof(text), n);
	return report_text(report, "%s %s%s", text, what, n == 1 ? "" : "s");
}

const char *word_percent(struct report *report, double part, double whole)
{
	char text[32];

	format_percent(text, sizeof(text), part, whole);
	return report_text(report, "%s", text);
}

const char *word_since(struct report *report, const struct analysis *a, uint64_t ns)
{
	return word_time(report, ns > a->model.first_ns ? ns - a->model.first_ns : 0);
}

const char *word_function(const struct analysis *a, uint32_t fn)
{
	return fn < a->set->functions.count ? a->set->functions.all[fn].name : NULL;
}

const char *word_result(const struct analysis *a, uint32_t fn, unsigned int result)
{
	const char *function = word_function(a, fn);

	return name_error(result,
			  function && !strncmp(function, "cu", 2) && strncmp(function, "cuda", 4));
}

/* A thread's name says something where it is not the program's, which threads begin with. */
static const char *name_of(struct report *report, const struct thread *thread)
{
	size_t length = sizeof(thread->name) - 1;

	if (!thread->name[0] || !strncmp(thread->name, thread->process->trace->program, length))
		return "";
	return report_text(report, " '%.15s'", thread->name);
}

const char *word_known_host(struct report *report, const struct host *host)
{
	return host && (host->name || host->boot) ? report_text(report, "%s", host->label) : NULL;
}

const char *word_host(struct report *report, const struct trace *trace)
{
	return trace->host->alone ? "" : report_text(report, "@%s", trace->host->label);
}

const char *word_thread(struct report *report, const struct thread *thread, uint8_t device)
{
	const char *host;

	if (!thread)
		return "a thread nobody knows";
	if (thread->many)
		return "one of many threads";
	if (thread->stranger && !strncmp(thread->name, "cuda", 4)) /* as it calls its own */
		return report_text(report, "the driver's own thread %.15s (%u)", thread->name,
				   thread->tid);
	if (thread->stranger && thread->name[0])
		return report_text(report, "a thread without calls, %.15s (%u)", thread->name,
				   thread->tid);
	if (thread->stranger)
		return report_text(report, "a thread without calls (%u)", thread->tid);
	host = word_host(report, thread->process->trace);
	if (device == SPY_DEVICE_NONE)
		return report_text(report, "thread %u%s%s", thread->tid, host,
				   name_of(report, thread));
	return report_text(report, "thread %u%s%s (GPU %u)", thread->tid, host,
			   name_of(report, thread), device);
}

const struct thread *edge_thread(const struct analysis *a, uint32_t index)
{
	return index ? a->model.threads[index - 1] : NULL;
}

bool subject_is_lock(const struct subject *s, const struct lock *lock)
{
	return lock->key.address == s->lock.address && lock->key.process == s->lock.process;
}

bool subject_has_edge(const struct analysis *a, const struct subject *s, const struct blame_key *k)
{
	switch (s->kind) {
	case SUBJECT_THREAD:
		return (k->waiter && edge_thread(a, k->waiter)->tid == s->tid) ||
		       (k->holder && edge_thread(a, k->holder)->tid == s->tid);
	case SUBJECT_CALL:
		return k->waiter_fn == s->fn || k->holder_fn == s->fn;
	case SUBJECT_LOCK:
		return k->lock && subject_is_lock(s, a->accounts.locks.all[k->lock - 1]);
	case SUBJECT_DEVICE:
		return k->waiter_device == s->device || k->holder_device == s->device;
	default:
		return true;
	}
}

const char *word_in_function(struct report *report, const struct analysis *a, uint32_t fn)
{
	const char *name = word_function(a, fn);

	return name ? report_text(report, " in %s", name) : "";
}

/* "main", "main, app.c:12", "copy, app.c:12, inlined in main"; NULL: neither function nor line is known. */
static const char *function_words(struct report *report, const struct place *place)
{
	const char *name = place->inner ?: place->function, *source = "", *around = "";

	if (!name && !place->file)
		return NULL;
	if (place->file)
		source = report_text(report, "%s%s:%d", name ? ", " : "", last_part(place->file),
				     place->line);
	if (place->inner && place->function)
		around = report_text(report, ", inlined in %s", place->function);
	return report_text(report, "%s%s%s", name ?: "", source, around);
}

const char *word_place(struct report *report, const struct place *place)
{
	const char *module, *words;

	if (!place->path)
		return place->offset ? report_text(report, " at 0x%llx, in no known module",
						   (unsigned long long)place->offset)
				     : "";
	module = report_text(report, "%s+0x%llx", last_part(place->path),
			     (unsigned long long)place->offset);
	if (place->kernel)
		return report_text(report, " of %s (%s)", place->kernel, module);
	words = function_words(report, place);
	return words ? report_text(report, " in %s (%s)", words, module)
		     : report_text(report, " in %s", module);
}

/* Who calls the library: by the source, or else by the address. */
static const char *library_caller(struct report *report, const struct place *place)
{
	const char *function = place->function ? report_text(report, "%s, ", place->function) : "";

	if (!place->path)
		return place->function ?: "code in no known module";
	if (place->file)
		return function_words(report, place);
	return report_text(report, "%s%s+0x%llx", function, last_part(place->path),
			   (unsigned long long)place->offset);
}

const char *word_place_for(struct report *report, const struct place *entry,
			   const struct place *place)
{
	const char *library = last_part(entry->path), *called = library;

	if (entry->function)
		called = report_text(report, "%s (%s)", entry->function, library);
	return report_text(report, " in %s, for %s", called, library_caller(report, place));
}

const char *word_python(struct report *report, const struct python_line *line)
{
	const char *file = line->code ? last_part(line->code->file) : NULL;

	if (!line->code)
		return NULL;
	if (!line->line)
		return report_text(report, "%s in %s", file, line->code->function);
	return report_text(report, "%s:%u in %s", file, line->line, line->code->function);
}
