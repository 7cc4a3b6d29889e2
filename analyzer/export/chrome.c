/*
 * analyzer/export/chrome.c: the JSON of chrome://tracing, which speedscope reads, too ("Trace Event Format"). Called for each
 * call, in the order in which they return.
 */
#include <stdlib.h>
#include "bytes.h"
#include "export.h"
#include "text/text.h"
#include "trace/model.h"

struct chrome {
	const struct export_job *job;
	struct listener listener;
	uint64_t zero_ns;
	bool *named_processes, *named_threads; /* by index: metadata is written */
	size_t n_processes, n_threads;
	char **functions; /* names as JSON, by the set's number; owned */
	size_t n_functions;
	bool any; /* an event is written */
	struct bytes bytes;
};

static void begin_event(struct chrome *c)
{
	bytes_text(&c->bytes, c->any ? ",\n" : "\n");
	c->any = true;
}

/* Marks an element of an array that grows; was it marked before? */
static bool mark(bool **array, size_t *n, size_t i)
{
	bool was;

	while (*n <= i) {
		*array = grow(*array, *n, sizeof(bool));
		(*array)[(*n)++] = false;
	}
	was = (*array)[i];
	(*array)[i] = true;
	return was;
}

static void put_json(struct chrome *c, const char *text)
{
	char *json = bytes_json(text);

	bytes_text(&c->bytes, json);
	free(json);
}

static void put_name(struct chrome *c, const char *what, uint64_t pid, uint64_t tid,
		     const char *name)
{
	begin_event(c);
	bytes_text(&c->bytes, "{\"ph\":\"M\",\"name\":\"");
	bytes_text(&c->bytes, what);
	bytes_text(&c->bytes, "\",\"pid\":");
	bytes_number(&c->bytes, pid);
	bytes_text(&c->bytes, ",\"tid\":");
	bytes_number(&c->bytes, tid);
	bytes_text(&c->bytes, ",\"args\":{\"name\":");
	put_json(c, name);
	bytes_text(&c->bytes, "}}");
}

static void name_thread(struct chrome *c, const struct thread *thread)
{
	struct arena texts = {0};
	const struct trace *trace = thread->process->trace;
	const char *name = thread_name(thread);

	if (!mark(&c->named_processes, &c->n_processes, trace->index))
		put_name(c, "process_name", trace->pid, 0, text_process(&texts, trace));
	if (!mark(&c->named_threads, &c->n_threads, thread->index) && *name)
		put_name(c, "thread_name", trace->pid, thread->tid, name);
	arena_release(&texts);
}

static const char *function(struct chrome *c, uint32_t fn)
{
	while (c->n_functions <= fn) {
		c->functions = grow(c->functions, c->n_functions, sizeof(*c->functions));
		c->functions[c->n_functions++] = NULL;
	}
	if (!c->functions[fn])
		c->functions[fn] = bytes_json(text_function(c->job->shown->set, fn) ?: "?");
	return c->functions[fn];
}

static void put_call(struct chrome *c, const char *category, const struct thread *thread,
		     uint32_t fn, uint64_t begin_ns, uint64_t end_ns)
{
	struct bytes *b = &c->bytes;

	name_thread(c, thread);
	begin_event(c);
	bytes_text(b, "{\"ph\":\"X\",\"cat\":\"");
	bytes_text(b, category);
	bytes_text(b, "\",\"name\":");
	bytes_text(b, function(c, fn));
	bytes_text(b, ",\"pid\":");
	bytes_number(b, thread->process->trace->pid);
	bytes_text(b, ",\"tid\":");
	bytes_number(b, thread->tid);
	bytes_text(b, ",\"ts\":");
	bytes_us(b, begin_ns - min_u64(c->zero_ns, begin_ns));
	bytes_text(b, ",\"dur\":");
	bytes_us(b, end_ns - begin_ns);
	bytes_text(b, "}");
}

static void on_call(void *data, const struct record *record, const struct completed_call *call)
{
	put_call(data, "call", record->thread, call->fn, call->begin_ns, call->end_ns);
}

static void on_nested(void *data, const struct record *record)
{
	put_call(data, "nested call", record->thread, record->fn,
		 record->ns - min_u64(record->duration_ns, record->ns), record->ns);
}

void *chrome_begin(const struct export_job *job)
{
	struct chrome *c = xcalloc(1, sizeof(*c));

	c->job = job;
	c->zero_ns = job->known->model.first_ns;
	c->listener = (struct listener){.data = c, .on_call = on_call, .on_nested = on_nested};
	c->bytes.out = job->out;
	bytes_text(&c->bytes, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	return c;
}

const struct listener *chrome_listener(void *state)
{
	struct chrome *c = state;

	return &c->listener;
}

int chrome_end(void *state, int err)
{
	struct chrome *c = state;
	size_t i;

	bytes_text(&c->bytes, "\n]}\n");
	if (!err)
		bytes_flush(&c->bytes);
	for (i = 0; i < c->n_functions; i++)
		free(c->functions[i]);
	free(c->functions);
	free(c->named_processes);
	free(c->named_threads);
	free(c);
	return 0;
}
