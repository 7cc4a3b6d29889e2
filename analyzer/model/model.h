/*
 * analyzer/model/model.h: what the records so far have told about the processes: threads, kernels,
 * modules, GPUs, notes. Only model.c changes it.
 */
#ifndef CUDASPY_MODEL_H
#define CUDASPY_MODEL_H

#include "trace/decode.h"
#include "trace/merge.h"
#include "trace/position.h"
#include "places.h"
#include "range_names.h"
#include "base/hash.h"

/* A function of Python's. */
struct python_code {
	uint32_t number;
	char *file, *function;
	uint32_t first_line;
	UT_hash_handle hh;
};

struct kernel_name {
	uint32_t number;
	UT_hash_handle hh;
	char name[]; /* mangled */
};

/* Names of a process that differ in their numbers only. */
struct range_family {
	struct range_name *name; /* the family's; the key */
	uint32_t members; /* names of the process so far */
	bool many; /* the recorder has given up to tell them apart */
	UT_hash_handle hh;
};

/* What a process calls a name of NVTX's. */
struct range_number {
	uint32_t number;
	struct range_name *name;
	struct range_family *family; /* NULL: of none */
	UT_hash_handle hh;
};

/* What the name stands for in sums that are made while records are read: as range_shown, but by what the process itself
 * has named so far. */
static inline struct range_name *range_number_shown(const struct range_number *range)
{
	const struct range_family *family = range->family;

	return family && (family->many || family->members > RANGE_FAMILY_MOST) ? family->name
									       : range->name;
}

/* What the program itself calls a thread (NVTX). */
struct given_name {
	uint32_t tid;
	UT_hash_handle hh;
	char name[];
};

struct python_frame {
	uint32_t code; /* number in its process */
	uint32_t line; /* 0 unknown */
};

/* How the application came to a call: return addresses, innermost first. */
struct stack {
	const struct process *process;
	uint64_t ns; /* the call's end */
	uint64_t time; /* the same as the record has it, and ... */
	uint16_t fn; /* ... the function: the call it belongs to */
	uint8_t why; /* enum spy_stack_why, or-ed */
	uint8_t n, n_python;
	bool kept; /* while it is found out which are needed */
	bool pinned; /* who needs it is not asked: it is never forgotten */
	uint32_t held; /* atomic: so often others than the model's reading need it just now */
	enum spy_python_more more_python;
	/* Of samples of a thread that ran: the same in one function called by the same ones from the same places, and else
	 * another one; 0 unknown. */
	uint64_t function;
	/* Of samples of a thread that ran Python: what the innermost of its lines had called in C, behind the frames (stack_in_c). */
	enum stack_ran {
		STACK_RAN_UNSAID,
		STACK_RAN_KNOWN, /* nothing in C: the interpreter */
		STACK_RAN_UNKNOWN, /* code without tables for exceptions */
	} ran;
	uint8_t n_in_c;
	struct python_frame python[SPY_PYTHON_MOST]; /* the thread's in Python, innermost first */
	uint64_t frames[];
};

/* The functions by which it entered libraries, as return addresses in them, innermost first. */
static inline const uint64_t *stack_in_c(const struct stack *stack)
{
	return stack->frames + stack->n;
}

struct thread {
	struct process *process;
	struct stack *stack; /* the youngest; NULL: none */
	uint32_t tid; /* 0: the stream did not say */
	uint32_t index; /* among all threads of the model */
	struct reading_position created; /* when it came up */
	/* Its first record, and when its slot was another's, for it had ended: UINT64_MAX: the slot
	 * was not needed again. */
	uint64_t first_ns, exited_ns;
	/* The system may give its number to a thread of the same name: so it may be in several
	 * slots, and have been in none for so long. */
	uint32_t slots;
	uint64_t away_ns;
	char name[16];
	const char *given; /* what the program itself calls it; NULL: nothing */
	bool non_cuda; /* makes no calls: a thread of the driver, or one that we cannot see */
	bool many; /* stands for threads of its process that are not told apart */
	struct thread *next; /* of its process, in the order of index */
	uint64_t key; /* process and tid, for model_find_thread */
	UT_hash_handle hh;
};

/* An ELF object in a process, while it was there. */
struct module {
	uint64_t base, begin, end; /* as in spy_rec_module */
	uint64_t span_end; /* of all its segments; base: unknown */
	uint64_t unloaded_ns; /* UINT64_MAX: never */
	char *build_id; /* hex; may be empty; owned, with the path behind it */
	const char *path;
};

struct gpu {
	uint16_t device, cc_major, cc_minor;
	enum spy_client client; /* of MPS */
	uint32_t multiprocessors; /* that the process may use, 0 unknown */
	uint64_t bytes;
	char *name, *uuid, *pci;
};

/* What of MPS a process found: spy_rec_mps. */
struct mps {
	uint64_t ns; /* when; 0: never looked */
	uint32_t uid, daemon, server, server_uid;
	char *directory, *percentage, *memory_limit, *priority;
};

struct mps_server {
	uint32_t server, uid;
};

/* Did the server work for another user then? */
static inline bool mps_of_another(const struct mps *mps)
{
	return mps->ns && mps->server && mps->server_uid != mps->uid;
}

struct note {
	uint16_t note; /* enum spy_note */
	uint64_t count; /* of notes with the same text */
	UT_hash_handle hh;
	char text[];
};

/* A part of a recording, as far as it has been read. */
struct part_seen {
	uint32_t number;
	uint64_t begin_ns, end_ns; /* 0: with the recording; it goes on, or was cut off */
	uint64_t calls; /* records of them; unknown without an end */
};

struct process {
	struct trace *trace;
	struct module *modules; /* in the order of their records */
	size_t n_modules;
	struct places places; /* of the modules */
	struct gpu *gpus;
	size_t n_gpus;
	struct mps mps_before, mps; /* before cuInit, if there was a control pipe; after it */
	uint64_t init_ns; /* if there is mps_before: the end of the last cuInit before mps */
	struct note *notes; /* by text, in the order they came up */
	/* By number; hashed, for one record may name any number. What is known stays where it
	 * is. */
	struct kernel_name *kernels;
	struct python_code *python;
	struct range_number *ranges;
	struct range_family *families; /* of ranges */
	struct given_name *given_names; /* by thread */
	struct stack **stacks; /* in the order of their records */
	size_t n_stacks;
	/* Where samples were: by number, SPY_PLACES + 1 of them; NULL: none yet. And the one that the record behind it means. */
	struct stack **sampled;
	struct stack *sampled_once;
	uint32_t sampled_more; /* places without a number */
	struct thread *threads, *last_thread;
	struct thread *many; /* NULL: not asked for yet */
	uint64_t first_ns, last_ns; /* of its records; first_ns > last_ns: none */
	uint64_t records;
	/* Windows: SPY_EV_WINDOW */
	uint32_t windows; /* that it has had; 0: recording never was dormant */
	bool dormant;
	uint64_t dormant_since_ns, dormant_ns; /* in all, until it was opened last */
	struct dormant_time {
		uint64_t begin_ns, end_ns;
		uint64_t before_ns; /* the sum of the times before it */
	} * dormant_times; /* in order; DORMANT_MOST at most, the last one lasts to the last window */
	size_t n_dormant_times;
	uint64_t opened_ns; /* when the last window began; 0: with the recording */
	/* Cost windows in which calls were only counted: to all that looks at calls they were dormant. */
	uint64_t countings;
	uint32_t window; /* the number of the last one, as the recorder counts them */
	/* Parts: SPY_EV_PART */
	uint32_t part; /* the last one that has begun; 0: the first, or unknown */
	uint32_t part_ended; /* the last one that has ended; 0: none */
	uint64_t part_ended_ns;
	struct part_seen *parts_seen; /* in order; empty: there is one */
	size_t n_parts_seen;
	bool part_is_apart; /* the one before it is not here: what came between is unknown */
	uint32_t removed_parts; /* by the recorder: the first ones, up to this number */
	uint64_t removed_calls, removed_ns; /* records of calls in them; how long they lasted */
};

struct model {
	struct trace_set *set;
	struct stream **streams; /* that are read: the set's, or some of them; not owned */
	size_t n_streams;
	struct process *processes; /* as the set's traces */
	size_t n_processes;
	/* Of a part of a set: the processes that its streams are of, by index; NULL: all of them. */
	const uint32_t *own;
	size_t n_own;
	struct thread **threads;
	size_t n_threads;
	struct thread *by_tid; /* the youngest of each number */
	struct thread **owners; /* of the set's streams: the writer now; NULL: none yet */
	uint64_t first_ns, last_ns; /* of all records */
	uint64_t records;
	bool complete; /* no records are lost, as far as is known: set by who reports losses */
	size_t n_stacks; /* of all processes */
	struct range_names range_names;
	bool bare; /* of threads and GPUs alone: names, modules, notes and stacks are passed over */
};

#define DORMANT_MOST 65536
#define THREADS_MOST (1u << 18) /* are distinguished; all others of a process are one */

/* For how long of that time recording of the process was dormant; of what has been read. */
uint64_t process_dormant_ns(const struct process *process, uint64_t begin_ns, uint64_t end_ns);

/* After the last record: how long a thread that has called CUDA could do so, until it or its process ended. */
uint64_t thread_lived_ns(const struct thread *thread);

void model_init(struct model *model, struct trace_set *set);
void model_release(struct model *model);

/* For a part of a set, whose streams these are: processes and owners of streams are the whole's, each of them belongs to one
 * part. joined: threads are the whole's, too. */
void model_init_part(struct model *model, const struct model *whole, struct stream **streams,
		     size_t n_streams);
void model_release_part(struct model *model, bool joined);

/* The process's module of that number is the last one so far where it lies. */
void model_place_module(struct process *process, uint32_t number);

/* For model_apply: new threads; records that are not calls. */
struct thread *model_owner(struct model *model, const struct record *record);
void model_apply_other(struct model *model, struct record *record);

/* For model_apply: a call of a process whose cuInit has not succeeded yet. */
void model_see_init(struct model *model, const struct record *record);

/* How often objects at an address were unloaded: it may then mean another one. */
uint32_t model_gone(const struct process *process, uint64_t address);

/*
 * How long a call of the record's took. A thread makes one call at a time: whatever a record
 * claims, one of depth 0 began after the one before it, so that what a thread's calls took together
 * is no more than the time there was.
 */
static inline uint64_t model_duration_ns(const struct record *record)
{
	const struct stream *stream = record->stream;
	uint64_t ns = record_span_ns(record, record_cycles(record));

	if (record->depth)
		return ns;
	return min_u64(ns, record->ns - min_u64(stream->called_ns, record->ns));
}

/* Takes a record in, in time order, and fills in the thread and what it speaks of. */
static inline void model_apply(struct model *model, struct record *record)
{
	struct stream *stream = record->stream;
	struct process *process = &model->processes[record->process];
	struct thread *thread = model->owners[stream->index];

	if (unlikely(!thread) || unlikely(thread->tid != record->tid))
		thread = model_owner(model, record);
	record->thread = thread;
	if (record_is_call(record)) {
		record->fn = trace_function(model->set, stream->trace, record->trace_fn);
		record->contract = model->set->functions.all[record->fn].contract;
		record->duration_ns = model_duration_ns(record);
		if (!record->depth)
			stream->called_ns = record->ns;
		if (unlikely(process->mps_before.ns) && unlikely(!process->mps.ns))
			model_see_init(model, record);
	} else {
		model_apply_other(model, record);
	}
}

/* The thread of that number, named by another thread's record; made if it is new. */
struct thread *model_thread(struct model *model, struct process *process, uint32_t tid);

/* Forgets all stacks of its processes that are neither marked as kept nor pinned nor held, and takes the marks off the
 * others. */
void model_forget_stacks(struct model *model);

/* One that stands for several of the process, where they are too many to tell apart; it has no
 * number, nor calls. */
struct thread *model_many(struct model *model, struct process *process);

/* After the last record: sums up. */
void model_finish(struct model *model);

/* The stack of a call of that thread, whose record is the last one taken in; NULL: it has none. */
static inline const struct stack *model_stack_of(const struct thread *thread,
						 const struct record *call)
{
	const struct stack *stack = thread->stack;

	return stack && stack->fn == call->trace_fn && stack->time == record_time(call) ? stack
											: NULL;
}

static inline const struct stack *model_stack(const struct record *call)
{
	return model_stack_of(call->thread, call);
}

/* What a frame in Python is called; NULL unknown. */
/* Where a sample was that names that place; NULL: unknown. Once for each sample, in their order. */
const struct stack *model_sampled(struct process *process, uint32_t place);

const struct python_code *model_python(const struct stack *stack, const struct python_frame *frame);

/* The youngest thread of that number, or NULL. */
struct thread *model_find_thread(const struct model *model, const struct process *process,
				 uint32_t tid);

/* The object an address belonged to at that time; NULL unknown. */
const struct module *model_module(const struct process *process, uint64_t address, uint64_t ns);

/* The object in whose segments, code or data, an address was at that time; NULL: none we know. */
const struct module *model_module_of_data(const struct process *process, uint64_t address,
					  uint64_t ns);

/* The name of a range, by its number in the process; NULL: it was not told. */
const struct range_number *model_range_number(const struct process *process, uint32_t number);

/* What a thread is called; empty: unknown. */
static inline const char *thread_name(const struct thread *thread)
{
	return thread->given ?: thread->name;
}

/* Is it called so, by the program or by the system? */
static inline bool thread_is_called(const struct thread *thread, const char *name)
{
	return (thread->given && !strcmp(thread->given, name)) ||
	       !strncmp(thread->name, name, sizeof(thread->name));
}

/* Mangled name of a kernel, or NULL. */
const char *model_kernel(const struct process *process, uint32_t kernel);

/*
 * The MPS server that a process had to wait for in cuInit, because it worked for another user: the
 * one it found before; or, if there was none yet, that of another user's process which became a
 * client of the same daemon meanwhile. Known once cuInit has returned. False: it waited for none. What other processes
 * found the first reading has seen; now: of that only what was before; NULL: all of it.
 */
bool model_mps_in_the_way(const struct model *model, const struct process *process,
			  const struct reading_position *now, struct mps_server *server);

/* The process's GPU of that ordinal, or NULL. */
const struct gpu *model_gpu(const struct process *process, uint16_t device);

#endif
