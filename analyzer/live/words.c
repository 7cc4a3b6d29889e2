/*
 * analyzer/live/words.c: threads of a running program in words. Called by the verdict and by what shows it.
 */
#include <stdlib.h>
#include "base/lines.h"
#include "sections/sections.h"
#include "text/text.h"
#include "trace/names.h"
#include "words.h"

#define CHAIN_LINKS 8 /* of a chain that are told */

static bool same_lock(const struct live_lock *lock, const struct live_thread *t)
{
	return lock->process == t->process && lock->object == t->wait_object;
}

static void add_lock(struct live_words *w, const struct live_thread *t)
{
	struct live_lock *lock;
	size_t i;

	for (i = 0; i < w->n_locks && !same_lock(&w->locks[i], t); i++)
		;
	if (i == w->n_locks) {
		w->locks = grow(w->locks, w->n_locks, sizeof(*w->locks));
		w->locks[w->n_locks++] = (struct live_lock){
			.process = t->process, .object = t->wait_object, .kind = t->wait_kind};
	}
	lock = &w->locks[i];
	lock->waiters++;
	if (t->wait_ns != UNKNOWN_NS && t->wait_ns > lock->longest_ns)
		lock->longest_ns = t->wait_ns;
	if (t->holder)
		lock->holder = t->holder;
}

void live_words_init(struct live_words *w, const struct live *live, struct arena *texts)
{
	*w = (struct live_words){.live = live, .texts = texts, .symbols = symbolizer_new()};
	for (size_t i = 0; i < live->n_threads; i++)
		if (live->threads[i]->waits && spy_wait_is_lock(live->threads[i]->wait_kind))
			add_lock(w, live->threads[i]);
}

void live_words_release(struct live_words *w)
{
	symbolizer_free(w->symbols);
	free(w->locks);
	*w = (struct live_words){0};
}

/* The number of the lock the thread waits for, from 1 on. */
static size_t live_lock_number(const struct live_words *w, const struct live_thread *t)
{
	size_t i;

	for (i = 0; i < w->n_locks && !same_lock(&w->locks[i], t); i++)
		;
	return i + 1;
}

const char *live_time(const struct live_words *w, uint64_t ns)
{
	return ns == UNKNOWN_NS ? "an unknown time" : text_time(w->texts, ns);
}

/* ---- threads --------------------------------------------------------------------------------- */

static const char *own_name(const struct live_thread *t)
{
	if (t->model && t->model->given)
		return t->model->given;
	if (t->os.name[0])
		return t->os.name;
	return t->model ? t->model->name : "";
}

const char *live_thread_name(const struct live_words *w, const struct live_thread *t)
{
	const struct trace *trace = t->process->trace;
	const char *name = own_name(t), *rank = text_rank(w->texts, trace), *of = "", *device = "";
	bool is_named = *name && strncmp(name, trace->program, 15) != 0;

	if (rank)
		of = arena_printf(w->texts, " of %s", rank);
	else if (w->live->n_processes > 1)
		of = arena_printf(w->texts, " of %s", text_program(w->texts, trace));
	if (t->device != SPY_DEVICE_NONE && t->slot)
		device = text_where_runs(w->texts, trace, t->device);
	return arena_printf(w->texts, "thread %u%s%.31s%s%s%s", t->tid, is_named ? " '" : "",
			    is_named ? name : "", is_named ? "'" : "", of, device);
}

const char *live_thread_short(const struct live_words *w, const struct live_thread *t)
{
	const char *name = own_name(t);
	bool is_named = *name && strncmp(name, t->process->trace->program, 15) != 0;

	return arena_printf(w->texts, "%u%s%.31s%s", t->tid, is_named ? " '" : "",
			    is_named ? name : "", is_named ? "'" : "");
}

const char *live_state_text(const struct live_words *w, const struct live_thread *t)
{
	const char *in = t->os.where[0] ? arena_printf(w->texts, " in %s", t->os.where) : "";

	switch (t->os.state) {
	case 'R':
		return "on a CPU, or ready for one";
	case 'S':
		return arena_printf(w->texts, "asleep%s", in);
	case 'D':
		return arena_printf(w->texts, "in an uninterruptible wait in the kernel%s", in);
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "ended";
	case 0:
		return NULL;
	default:
		return arena_printf(w->texts, "state %c", t->os.state);
	}
}

/* ---- places ---------------------------------------------------------------------------------- */

static const char *name_text(const struct live_words *w, const char *name)
{
	return w->name_columns && name ? arena_take(w->texts, shorten_to(name, w->name_columns))
				       : name;
}

static const char *words_of(const struct live_words *w, const struct place *place)
{
	const char *function = name_text(w, place->inner ?: place->function);

	if (function && place->file)
		return arena_printf(w->texts, "%s, %s:%d", function, path_basename(place->file),
				    place->line);
	if (function && place->path)
		return arena_printf(w->texts, "%s, %s+0x%llx", function, path_basename(place->path),
				    (unsigned long long)place->offset);
	if (place->path)
		return arena_printf(w->texts, "%s+0x%llx", path_basename(place->path),
				    (unsigned long long)place->offset);
	return NULL;
}

/* Where the program makes a call. Of a kernel's launch the call itself is in what nvcc makes of <<<>>>, and of others it may
 * be in a library: then by its stack; or by that of an earlier call from there, which is said. said: which kernel it is. */
static const char *place_by(const struct live_words *w, const struct live_process *process,
			    uint64_t caller, const struct stack *stack, bool said)
{
	const struct process *model = &w->live->model.processes[process->index];
	struct place place = {0}, entry;
	const char *words, *own;
	bool earlier = !stack;

	if (!caller || !w->live->open)
		return NULL;
	symbolize(w->symbols, model, caller, now_ns(), &place);
	if (!place_is_between(&place))
		return words_of(w, &place);
	if (place.library || !place.cudas)
		own = words_of(w, &place);
	else /* nvcc's own code says nothing but which kernel it is, if it does */
		own = said || !place.kernel
			      ? NULL
			      : arena_printf(w->texts, "launch of %s", name_text(w, place.kernel));
	stack = stack ?: recent_stack(&w->live->recent, process->index, caller);
	if (!stack || !symbolize_caller(w->symbols, stack, &place, &entry))
		return own;
	words = words_of(w, &place);
	if (!words || !earlier)
		return words ?: own;
	return own ? arena_printf(w->texts, "%s; before that from %s", own, words)
		   : arena_printf(w->texts, "an earlier one from %s", words);
}

static const char *live_place_of(const struct live_words *w, const struct live_process *process,
				 uint64_t caller)
{
	return place_by(w, process, caller, NULL, false);
}

const char *live_place(const struct live_words *w, const struct live_thread *t)
{
	return live_place_of(w, t->process,
			     t->in_call   ? t->call_caller
			     : t->outside ? t->wait_caller
					  : 0);
}

/* ---- calls and waits ------------------------------------------------------------------------- */

const char *live_call_text(const struct live_words *w, const struct live_thread *t)
{
	const struct trace_set *set = &w->live->set;
	const char *outer = text_function(set, t->fn), *inner = text_function(set, t->inner_fn);

	if (t->waits && t->wait_kind == SPY_WAIT_QUERY)
		return "asking over and over whether its work has ended";
	if (!t->in_call)
		return "between two CUDA calls";
	if (t->fn == t->inner_fn)
		return arena_printf(w->texts, "in %s", outer);
	return arena_printf(w->texts, "in %s (inside it %s)", outer, inner);
}

static const char *gpu_text(const struct live_words *w, const struct live_thread *t)
{
	return t->device == SPY_DEVICE_NONE ? "a GPU" : arena_printf(w->texts, "GPU %u", t->device);
}

/* What it blocks in, where nobody holds it. */
static const char *other_wait(const struct live_words *w, const struct live_thread *t)
{
	switch (t->wait_kind) {
	case SPY_WAIT_CONDITION:
		return "a condition that another thread is to signal";
	case SPY_WAIT_SEMAPHORE:
		return "a semaphore that another thread is to post";
	case SPY_WAIT_FUTEX:
		return "a futex that another thread is to wake";
	case SPY_WAIT_IOCTL:
		return "the kernel module (ioctl)";
	case SPY_WAIT_SLEEP:
		return "the end of a sleep";
	case SPY_WAIT_TRANSFER:
		return arena_printf(w->texts, "a read or write of descriptor %llu",
				    (unsigned long long)t->wait_object);
	case SPY_WAIT_POLL:
	case SPY_WAIT_EPOLL:
		return "descriptors to be ready (poll)";
	case SPY_WAIT_ACCEPT:
		return "a connection";
	case SPY_WAIT_CHILD:
		return "the end of a process";
	default:
		return name_wait(t->wait_kind);
	}
}

const char *live_wait_text(const struct live_words *w, const struct live_thread *t)
{
	if (t->waits && spy_wait_is_lock(t->wait_kind))
		return arena_printf(w->texts, "lock L%zu", live_lock_number(w, t));
	if (t->waits && t->wait_kind == SPY_WAIT_JOIN)
		return t->holder ? arena_printf(w->texts, "the end of %s",
						live_thread_name(w, t->holder))
				 : "the end of a thread";
	if (t->doing == LIVE_GPU)
		return gpu_text(w, t);
	return t->waits ? other_wait(w, t) : NULL;
}

const char *live_doing_text(const struct live_words *w, const struct live_thread *t)
{
	const char *wait = live_wait_text(w, t), *place = live_place(w, t), *call;
	const char *state = live_state_text(w, t);
	uint64_t ns = t->in_call ? t->call_ns : t->waits ? t->wait_ns : UNKNOWN_NS;

	switch (t->doing) {
	case LIVE_GONE:
		return "is not there any more";
	case LIVE_GOES_ON:
		return "makes calls meanwhile";
	case LIVE_NO_CUDA:
		return state ? arena_printf(w->texts, "makes no CUDA calls and is %s", state)
			     : "makes no CUDA calls";
	case LIVE_UNSEEN:
		return state ? arena_printf(w->texts, "is not recorded now, and is %s", state)
			     : "is not recorded now";
	case LIVE_BETWEEN:
		return state ? arena_printf(w->texts, "is between two CUDA calls, %s", state)
			     : "is between two CUDA calls";
	default:
		break;
	}
	call = ns == UNKNOWN_NS ? arena_printf(w->texts, "is %s", live_call_text(w, t))
				: arena_printf(w->texts, "has been %s for %s", live_call_text(w, t),
					       live_time(w, ns));
	if (place)
		call = arena_printf(w->texts, "%s (%s)", call, place);
	if (wait)
		return arena_printf(w->texts, "%s and waits for %s", call, wait);
	return state ? arena_printf(w->texts, "%s, %s", call, state) : call;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

const char *live_stack_time(const struct live_words *w, const struct live_thread *t)
{
	const struct stack *stack = t->model ? t->model->stack : NULL;
	uint64_t first_ns;

	if (!stack)
		return NULL;
	first_ns = stack->process->first_ns;
	return arena_printf(w->texts, "t = %s",
			    text_time(w->texts, stack->ns - min_u64(stack->ns, first_ns)));
}

const char *live_python_line(const struct live_words *w, const struct live_thread *t)
{
	const struct stack *stack = t->model ? t->model->stack : NULL;
	const struct table *frames = stack ? report_stack(w->texts, w->symbols, stack, 0) : NULL;

	for (size_t i = 0; frames && i < frames->n_rows; i++) {
		const char *interpreted = table_text_at(frames, i, "interpreted");
		const char *file = table_text_at(frames, i, "file");
		uint64_t line = table_number_at(frames, i, "line");

		if (interpreted && !strcmp(interpreted, "yes") && file && line)
			return arena_printf(w->texts, "%s:%llu, at %s", path_basename(file),
					    (unsigned long long)line, live_stack_time(w, t));
	}
	return NULL;
}

/* ---- work of GPUs ---------------------------------------------------------------------------- */

/* Of a stream only, where the call names one and waits for no more than that. */
const struct recent_work *live_awaited_work(const struct live *live, const struct live_thread *t)
{
	uint8_t contract = live->set.functions.all[t->fn].contract;
	bool of_stream = contract == SPY_CONTRACT_STREAM || spy_contract_submits(contract);
	const struct recent_work *work = NULL;
	uint64_t ns;

	if (t->waits && t->wait_kind == SPY_WAIT_QUERY)
		return recent_asked(&live->recent, t->process->index, t->wait_object, t->model,
				    &ns);
	if (!t->in_call || t->device == SPY_DEVICE_NONE)
		return NULL;
	if (of_stream && t->call_stream)
		work = recent_find_work(&live->recent, t->process->index, t->device, t->call_stream,
					t->model);
	return work ?: recent_find_work(&live->recent, t->process->index, t->device, 0, t->model);
}

static const struct live_thread *thread_of(const struct live_process *process,
					   const struct thread *model)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (process->threads[i]->model == model)
			return process->threads[i];
	return NULL;
}

/* What waits behind it in the stream and may be what does not end. */
static const char *host_function(const struct live_words *w, const struct live_process *process,
				 const struct recent_work *work)
{
	const char *place;

	if (!work->host_caller || work->host_caller == work->last.caller)
		return "";
	place = live_place_of(w, process, work->host_caller);
	return arena_printf(w->texts, "; behind it a function on the host%s%s%s", place ? " (" : "",
			    place ?: "", place ? ")" : "");
}

const char *live_piece_text(const struct live_words *w, const struct live_process *process,
			    const struct recent_piece *piece)
{
	const struct process *model = &w->live->model.processes[process->index];
	const char *kernel = piece->kernel ? model_kernel(model, piece->kernel) : NULL;
	const struct live_thread *by = thread_of(process, piece->thread);
	const char *what = kernel ? arena_printf(w->texts, "kernel %s, launched",
						 name_text(w, demangle(w->symbols, kernel)))
				  : arena_printf(w->texts, "work handed over in %s",
						 text_function(&w->live->set, piece->fn));
	const char *place = place_by(w, process, piece->caller, piece->stack, kernel);
	uint64_t now = timeline_ns(&process->trace->timeline, process->now);

	return arena_printf(w->texts, "%s %s ago by %s%s%s%s", what,
			    live_time(w, now - min_u64(now, piece->ns)),
			    by ? live_thread_name(w, by)
			       : arena_printf(w->texts, "thread %u", piece->thread->tid),
			    place ? " (" : "", place ?: "", place ? ")" : "");
}

const char *live_work_text(const struct live_words *w, const struct live_process *process,
			   const struct recent_work *work)
{
	return arena_printf(w->texts, "%s%s", live_piece_text(w, process, &work->last),
			    host_function(w, process, work));
}

/* ---- chains ---------------------------------------------------------------------------------- */

const char *live_chain_text(const struct live_words *w, const struct live_thread *t)
{
	const char *text =
		arena_printf(w->texts, "%s %s", live_thread_name(w, t), live_doing_text(w, t));
	const struct live_thread *into =
		t->cycle ? t : NULL; /* where the chain runs into a cycle */
	const struct recent_work *work;
	unsigned int links = 0;

	while (t->holder && links++ < CHAIN_LINKS) {
		bool join = t->doing == LIVE_JOIN;

		t = t->holder;
		if (t == into)
			return arena_printf(w->texts, "%s%s: a deadlock", text,
					    join ? ""
						 : arena_printf(w->texts, ", held by %s",
								live_thread_name(w, t)));
		if (!into && t->cycle)
			into = t;
		text = arena_printf(w->texts, "%s%s%s, which %s", text, join ? "" : ", held by ",
				    join ? "" : live_thread_name(w, t), live_doing_text(w, t));
	}
	work = t->doing == LIVE_GPU ? live_awaited_work(w->live, t) : NULL;
	if (work)
		text = arena_printf(w->texts, "%s: %s", text, live_work_text(w, t->process, work));
	return text;
}
