/*
 * analyzer/model/threads.c: the threads of processes, their names, and which one a slot belongs to. Called by the readings
 * as records come, and by whoever asks.
 */
#include <string.h>
#include "apply.h"

#define GIVEN_MOST (1u << 16) /* threads of a process that have names of the program's */

static uint64_t thread_key(const struct process *process, uint32_t tid)
{
	return (uint64_t)process->trace->index << 32 | tid;
}

static struct thread *new_thread(struct model *model, struct process *process)
{
	struct thread *thread = xcalloc(1, sizeof(*thread));

	thread->process = process;
	thread->created = position_now();
	thread->index = (uint32_t)model->n_threads;
	thread->first_ns = thread->exited_ns = UINT64_MAX;
	*(process->threads ? &process->last_thread->next : &process->threads) = thread;
	process->last_thread = thread;
	model->threads = grow(model->threads, model->n_threads, sizeof(*model->threads));
	model->threads[model->n_threads++] = thread;
	return thread;
}

struct thread *model_many(struct model *model, struct process *process)
{
	if (!process->many) {
		process->many = new_thread(model, process);
		process->many->many = true;
	}
	return process->many;
}

/* The system may use a number again: the youngest thread of a number is the one to be found. */
static struct thread *add_thread(struct model *model, struct process *process, uint32_t tid)
{
	struct thread *thread, *older;

	if (model->n_threads >= THREADS_MOST)
		return model_many(model, process);
	thread = new_thread(model, process);
	thread->tid = tid;
	thread->key = thread_key(process, tid);
	HASH_REPLACE(hh, model->by_tid, key, sizeof(thread->key), thread, older);
	(void)older;
	return thread;
}

struct thread *model_find_thread(const struct model *model, const struct process *process,
				 uint32_t tid)
{
	uint64_t key = thread_key(process, tid);
	struct thread *thread;

	HASH_FIND(hh, model->by_tid, &key, sizeof(key), thread);
	return thread;
}

struct thread *model_thread(struct model *model, struct process *process, uint32_t tid)
{
	struct thread *thread = model_find_thread(model, process, tid);

	if (!thread) {
		thread = add_thread(model, process, tid);
		thread->non_cuda = true; /* until it writes a record of its own */
	}
	return thread;
}

/* From here on the slot is the thread's: its owner before has ended, unless a thread of that number
 * is in another slot. */
static void take_slot(struct model *model, const struct record *record, struct thread *thread)
{
	struct thread **owner = &model->owners[record->stream->index], *before = *owner;

	thread->first_ns = min_u64(thread->first_ns, record->ns);
	if (before == thread)
		return;
	if (before && !--before->slots)
		before->exited_ns = record->ns;
	if (thread->exited_ns != UINT64_MAX)
		thread->away_ns += record->ns - min_u64(record->ns, thread->exited_ns);
	thread->exited_ns = UINT64_MAX;
	thread->slots++;
	*owner = thread;
}

struct thread *model_owner(struct model *model, const struct record *record)
{
	struct process *process = &model->processes[record->process];
	uint32_t tid = record->tid;
	struct thread *thread = model_find_thread(model, process, tid);

	if (!thread)
		thread = add_thread(model, process, tid);
	thread->non_cuda = false;
	if (process->first_ns > record->ns)
		process->first_ns = record->ns;
	take_slot(model, record, thread);
	return thread;
}

/* The name that the program has given the thread of that number. */
static const char *given_to(const struct process *process, uint32_t tid)
{
	struct given_name *given;

	HASH_FIND(hh, process->given_names, &tid, sizeof(tid), given);
	return given ? given->name : NULL;
}

/* The thread itself says that the slot is its own: it has just begun to use CUDA. */
void model_apply_thread(struct model *model, struct record *record)
{
	struct thread *thread = record->thread;
	const char *name = record_thread(record)->name;

	if (thread->name[0] && strncmp(thread->name, name, sizeof(thread->name) - 1))
		thread = add_thread(model, thread->process, record_thread(record)->tid);
	memcpy(thread->name, name, sizeof(thread->name) - 1);
	thread->given = given_to(thread->process, thread->tid);
	take_slot(model, record, thread);
	record->thread = thread;
}

void model_apply_non_cuda_thread(struct model *model, struct record *record)
{
	const struct spy_rec_non_cuda_thread *of = record_non_cuda_thread(record);
	struct thread *thread = model_thread(model, record->thread->process, of->tid);

	if (!thread->name[0])
		memcpy(thread->name, of->name, sizeof(thread->name) - 1);
}

/* A later name of a thread is left out: threads hold the first one. */
void model_apply_nvtx_name(struct model *model, struct process *process,
			   const struct record *record)
{
	const char *name = record_text(record, 0);
	uint32_t tid = (uint32_t)record_nvtx_name(record)->object;
	struct given_name *given;
	struct thread *thread;

	if (record_nvtx_name(record)->what != SPY_NAMED_THREAD || !*name ||
	    given_to(process, tid) || HASH_COUNT(process->given_names) >= GIVEN_MOST)
		return;
	given = xcalloc(1, sizeof(*given) + strlen(name) + 1);
	given->tid = tid;
	strcpy(given->name, name);
	HASH_ADD(hh, process->given_names, tid, sizeof(given->tid), given);
	thread = model_find_thread(model, process, tid);
	if (thread)
		thread->given = given->name;
}

void model_apply_count(struct model *model, struct record *record)
{
	struct thread *thread;

	record->fn = trace_function(model->set, record->stream->trace, record_count(record)->fn);
	if (record_count(record)->tid == record->thread->tid)
		return;
	thread = model_find_thread(model, record->thread->process, record_count(record)->tid);
	if (thread)
		record->thread = thread;
}
