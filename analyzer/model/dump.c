/*
 * analyzer/model/dump.c: records as lines of text. Called by cmd_dump.c and by the golden tests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "dump.h"
#include "trace/names.h"
#include "base/lines.h"
#include "base/redact.h"
#include "base/suggest.h"

/* Writes one column of a record; the dump puts the blanks between them. */
typedef void field_fn(const struct dump *dump, const struct record *record);

struct dump_field {
	const char *name;
	bool is_time;
	field_fn *print;
};

/* ---- details: one function for each record type --------------------------------------------- */

/* Addresses and handles differ from run to run; the default streams' do not. */
static void print_handle(const struct dump *dump, const char *key, uint64_t value)
{
	if (dump->stable && value > 2)
		fprintf(dump->out, " %s=*", key);
	else
		fprintf(dump->out, " %s=0x%" PRIx64, key, value);
}

static void print_whole_text(const struct dump *dump, const char *text)
{
	while (*text) {
		size_t n = harmless_character(text);

		if (*text == '"' || *text == '\\')
			fprintf(dump->out, "\\%c", *text);
		else if (!n)
			fprintf(dump->out, "\\x%02x", (unsigned char)*text);
		else
			fwrite(text, 1, n, dump->out);
		text += n ?: 1;
	}
}

static void print_text(const struct dump *dump, const char *key, const char *text)
{
	char *left = redact_is_on() ? redacted(text) : NULL;

	fprintf(dump->out, " %s=\"", key);
	print_whole_text(dump, left ?: text);
	fputc('"', dump->out);
	free(left);
}

static void print_caller(const struct dump *dump, uint64_t caller)
{
	if (!dump->stable)
		fprintf(dump->out, " caller=0x%" PRIx64, caller);
}

static void print_head(const struct dump *dump, const struct spy_rec_head *head)
{
	if (head->device != SPY_DEVICE_NONE)
		fprintf(dump->out, " device=%u", head->device);
	if (head->context && !dump->stable)
		fprintf(dump->out, " context=%u", head->context);
}

static void print_nested(const struct dump *dump, const struct record *record)
{
	(void)dump;
	(void)record;
}

static void print_call(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_call *r = &record->raw->call;

	print_caller(dump, r->caller);
	if (r->flags)
		fprintf(dump->out, " flags=0x%x", r->flags);
}

static void print_op(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_op *r = &record->raw->op;

	print_caller(dump, r->caller);
	print_handle(dump, "stream", r->stream);
	print_handle(dump, "object", r->object);
	if (r->flags)
		fprintf(dump->out, " flags=0x%x", r->flags);
}

static void print_launch(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_launch *r = &record->raw->launch;
	uint32_t kernel = (uint32_t)r->kernel_hi << 16 | r->kernel_lo;
	const char *name = model_kernel(record->thread->process, kernel);

	print_caller(dump, r->caller);
	print_handle(dump, "stream", r->stream);
	if (name)
		print_text(dump, "kernel", name);
	else
		fprintf(dump->out, " kernel=%u", kernel);
}

static void print_copy(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_copy *r = &record->raw->copy;

	fprintf(dump->out, " direction=%s bytes=%" PRIu64 " src=%s dst=%s form=%s",
		name_direction(r->direction), (uint64_t)r->bytes, name_memory_kind(r->src_kind),
		name_memory_kind(r->dst_kind), name_copy_form(r->form));
	if (r->src_device != SPY_DEVICE_NONE)
		fprintf(dump->out, " src_device=%u", r->src_device);
	if (r->dst_device != SPY_DEVICE_NONE)
		fprintf(dump->out, " dst_device=%u", r->dst_device);
	if (copy_is_between_gpus(r))
		fprintf(dump->out, " src_access=%s dst_access=%s", name_access(r->src_access),
			name_access(r->dst_access));
	print_caller(dump, r->caller);
	print_handle(dump, "stream", r->stream);
	if (r->captured)
		fputs(" captured=1", dump->out);
}

static void print_memory(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_memory *r = &record->raw->memory;

	fprintf(dump->out, " op=%s kind=%s bytes=%" PRIu64, name_memory_op(r->op),
		name_memory_kind(r->kind), r->bytes);
	print_caller(dump, r->caller);
	print_handle(dump, "stream", r->stream);
	print_handle(dump, "address", r->address);
	if (r->pool)
		fputs(" pool=1", dump->out);
}

static void print_thread_record(const struct dump *dump, const struct record *record)
{
	char name[sizeof(record->raw->thread.name) + 1];

	if (!dump->stable)
		fprintf(dump->out, " tid=%u", record->raw->thread.tid);
	snprintf(name, sizeof(name), "%.*s", (int)sizeof(record->raw->thread.name),
		 record->raw->thread.name);
	print_text(dump, "name", name);
}

static void print_count(const struct dump *dump, const struct record *record)
{
	fprintf(dump->out, " function=%s count=%" PRIu64,
		dump->model->set->functions.all[record->fn].name, record->raw->count.count);
	if (!dump->stable)
		fprintf(dump->out, " tid=%u", record->raw->count.tid);
}

static void print_kernel(const struct dump *dump, const struct record *record)
{
	fprintf(dump->out, " number=%u", record->raw->kernel.kernel);
	print_text(dump, "name", record_text(record, 0));
}

static void print_module(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_module *r = &record->raw->module;

	if (!dump->stable)
		fprintf(dump->out, " base=0x%" PRIx64 " begin=0x%" PRIx64 " end=0x%" PRIx64,
			r->base, r->begin, r->end);
	if (r->gone)
		fputs(" gone=1", dump->out);
	if (!dump->stable)
		print_text(dump, "build_id", record_text(record, 0));
	print_text(dump, "path", record_text(record, 1));
}

static void print_gpu(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu *r = &record->raw->gpu;

	fprintf(dump->out, " device=%u cc=%u.%u bytes=%" PRIu64, r->device, r->cc_major,
		r->cc_minor, r->bytes);
	print_text(dump, "name", record_text(record, 0));
	if (!dump->stable) {
		print_text(dump, "uuid", record_text(record, 1));
		print_text(dump, "pci", record_text(record, 2));
	}
}

static void print_clock(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_clock *r = &record->raw->clock;

	if (!dump->stable)
		fprintf(dump->out, " monotonic_ns=%" PRIu64 " realtime_ns=%" PRIu64,
			r->monotonic_ns, r->realtime_ns);
}

static void print_note(const struct dump *dump, const struct record *record)
{
	fprintf(dump->out, " note=%s", name_note(record->raw->note.note));
	print_text(dump, "text", record_text(record, 0));
}

static const char *function_name(const struct dump *dump, const struct record *record, uint16_t fn)
{
	struct trace_set *set = dump->model->set;

	return set->functions.all[trace_function(set, record->stream->trace, fn)].name;
}

static void print_tid(const struct dump *dump, const char *key, uint32_t tid)
{
	if (dump->stable)
		fprintf(dump->out, " %s=%s", key, tid ? "*" : "0");
	else
		fprintf(dump->out, " %s=%u", key, tid);
}

/* Times in the trace's cycles, as everywhere below the columns. */
static void print_wait(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_wait *r = &record->raw->wait;

	fprintf(dump->out, " kind=%s in=%s of=%s", name_wait(r->kind),
		function_name(dump, record, r->fn), function_name(dump, record, r->outer_fn));
	print_handle(dump, "object", r->object);
	if (!dump->stable)
		fprintf(dump->out, " depth=%u count=%u waited_ns=%" PRIu64 " span_ns=%" PRIu64,
			r->depth, r->count,
			timeline_span_ns(&record->stream->trace->timeline, r->duration),
			timeline_span_ns(&record->stream->trace->timeline, r->span));
	if (r->device != SPY_DEVICE_NONE)
		fprintf(dump->out, " device=%u", r->device);
	if (r->flags)
		fprintf(dump->out, " flags=0x%x", (unsigned int)r->flags);
	if (!spy_wait_is_lock(r->kind))
		return;
	print_tid(dump, "holder", r->holder);
	if (!r->holder || r->flags & SPY_WAIT_IDLE_HOLDER)
		return;
	fprintf(dump->out, " holder_in=%s", function_name(dump, record, r->holder_fn));
	if (r->holder_device != SPY_DEVICE_NONE)
		fprintf(dump->out, " holder_device=%u", (unsigned int)r->holder_device);
	print_handle(dump, "holder_stream", r->holder_stream);
}

static void print_taken(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_taken *r = &record->raw->taken;

	fprintf(dump->out, " kind=%s in=%s of=%s", name_wait(r->kind),
		function_name(dump, record, r->fn), function_name(dump, record, r->outer_fn));
	print_handle(dump, "object", r->object);
}

static void print_held(const struct dump *dump, const struct record *record)
{
	const struct timeline *timeline = &record->stream->trace->timeline;
	const struct spy_rec_held *r = &record->raw->held;

	fprintf(dump->out, " kind=%s in=%s of=%s", name_wait(r->kind),
		function_name(dump, record, r->fn), function_name(dump, record, r->outer_fn));
	print_handle(dump, "object", r->object);
	if (dump->stable)
		return;
	fprintf(dump->out, " held_ns=%llu span_ns=%llu",
		(unsigned long long)timeline_span_ns(timeline, r->held),
		(unsigned long long)timeline_span_ns(timeline, (uint64_t)r->span * SPY_SPAN_UNIT));
}

static void print_sched(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_sched *r = &record->raw->sched;

	if (!dump->stable)
		fprintf(dump->out,
			" window_ns=%" PRIu64 " not_running_ns=%" PRIu64 " running_ns=%" PRIu64,
			timeline_span_ns(&record->stream->trace->timeline, r->window),
			r->not_running_ns, r->running_ns);
	if (!dump->stable && r->process_ran)
		fprintf(dump->out, " process_ran_ns=%" PRIu64,
			(uint64_t)r->process_ran * SPY_RAN_UNIT);
	if (!dump->stable && r->unknown)
		fprintf(dump->out, " unknown_ns=%u", r->unknown * SPY_UNKNOWN_UNIT);
}

/* A return address as module and offset: what is the same in another run. */
static void print_frame(const struct dump *dump, const struct record *record, uint64_t address)
{
	const struct module *module = model_module(record->thread->process, address, record->ns);
	char *name, *shown;

	if (!module) {
		fprintf(dump->out, "0x%" PRIx64, address);
		return;
	}
	name = redacted(path_basename(module->path));
	shown = visible(name);
	fprintf(dump->out, "%s+0x%" PRIx64, shown, address - module->base);
	free(shown);
	free(name);
}

static void print_outside(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_outside *r = &record->raw->outside;

	fprintf(dump->out, " kind=%s", name_wait(r->kind));
	if (r->file)
		fprintf(dump->out, " file=%s", name_file(r->file));
	if (!dump->stable)
		fprintf(dump->out, " count=%u waited_ns=%" PRIu64 " span_ns=%" PRIu64, r->count,
			timeline_span_ns(&record->stream->trace->timeline, r->duration),
			timeline_span_ns(&record->stream->trace->timeline, r->span));
	if (r->flags)
		fprintf(dump->out, " flags=0x%x", (unsigned int)r->flags);
	if (r->flags & SPY_WAIT_LATE)
		fprintf(dump->out, " ready=%u%s", (unsigned int)r->ready,
			r->at_once ? " at_once" : "");
	if (spy_wait_is_lock(r->kind) || r->kind == SPY_WAIT_JOIN)
		print_tid(dump, "holder", r->holder);
	print_handle(dump, "object", r->object);
	if (!dump->stable) {
		fputs(" caller=", dump->out);
		print_frame(dump, record, r->caller);
	}
}

static void print_host_function(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_host_function *r = &record->raw->host_function;

	fprintf(dump->out, " by=%s", function_name(dump, record, r->fn));
	print_tid(dump, "tid", r->tid);
	if (!dump->stable)
		fprintf(dump->out, " ran_ns=%" PRIu64,
			timeline_span_ns(&record->stream->trace->timeline, r->duration));
	print_handle(dump, "stream", r->stream);
	if (!dump->stable) {
		fputs(" runs=", dump->out);
		print_frame(dump, record, r->function);
		fputs(" caller=", dump->out);
		print_frame(dump, record, r->caller);
	}
}

static void print_non_cuda_thread(const struct dump *dump, const struct record *record)
{
	char name[sizeof(record->raw->non_cuda_thread.name) + 1];

	print_tid(dump, "tid", record->raw->non_cuda_thread.tid);
	snprintf(name, sizeof(name), "%.*s", (int)sizeof(record->raw->non_cuda_thread.name),
		 record->raw->non_cuda_thread.name);
	print_text(dump, "name", name);
}

static void print_mps(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_mps *r = &record->raw->mps;

	fprintf(dump->out, " initialised=%u", (unsigned int)r->initialised);
	if (!dump->stable)
		fprintf(dump->out, " uid=%" PRIu32, r->uid);
	print_tid(dump, "daemon", r->daemon);
	print_tid(dump, "server", r->server);
	if (r->server && !dump->stable)
		fprintf(dump->out, " server_uid=%" PRIu32, r->server_uid);
	print_text(dump, "pipe_directory", record_text(record, 0));
	print_text(dump, "active_thread_percentage", record_text(record, 1));
	print_text(dump, "memory_limit", record_text(record, 2));
	print_text(dump, "priority", record_text(record, 3));
}

static void print_share(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_share *r = &record->raw->share;

	fprintf(dump->out, " device=%u client=%s multiprocessors=%" PRIu32, (unsigned int)r->device,
		name_client(r->client), r->multiprocessors);
}

static void print_stack(const struct dump *dump, const struct record *record)
{
	static const char *const reasons[] = {"long", "pageable", "failed",
					      "made", "sampled",  "gap"};
	const struct spy_rec_stack *r = &record->raw->stack;
	const char *comma = "";

	fprintf(dump->out,
		" of=%s why=", r->fn == SPY_FN_NONE ? "-" : function_name(dump, record, r->fn));
	for (unsigned int i = 0; i < ARRAY_SIZE(reasons); i++)
		if (r->why >> i & 1) {
			fprintf(dump->out, "%s%s", comma, reasons[i]);
			comma = ",";
		}
	for (unsigned int i = 0; !dump->stable && i < r->count && i < SPY_STACK_MOST; i++) {
		fputs(i ? "," : " frames=", dump->out);
		print_frame(dump, record, r->frames[i]);
	}
}

static void print_python_code(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_python_code *r = &record->raw->python_code;

	fprintf(dump->out, " code=%" PRIu32 " first_line=%" PRIu32, r->code, r->first_line);
	print_text(dump, "file", record_text(record, 0));
	print_text(dump, "function", record_text(record, 1));
}

static void print_python_stack(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_python_stack *r = &record->raw->python_stack;

	fprintf(dump->out, " of=%s more=%u lines=",
		r->fn == SPY_FN_NONE ? "-" : function_name(dump, record, r->fn), r->more);
	for (unsigned int i = 0; i < r->count && i < SPY_PYTHON_MOST; i++)
		fprintf(dump->out, "%s%" PRIu32 ":%" PRIu32, i ? "," : "", r->codes[i],
			r->lines[i]);
}

static void print_place(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_place *r = &record->raw->place;
	const struct place_record place = decode_place(record);

	fprintf(dump->out, " place=%" PRIu32, r->place);
	for (unsigned int i = 0; i < place.n_python; i++)
		fprintf(dump->out, "%s%" PRIu32 ":%" PRIu32,
			i ? "," : " lines=", (uint32_t)(r->words[i] >> 32), (uint32_t)r->words[i]);
	for (unsigned int i = 0; !dump->stable && i < place.n_frames; i++) {
		fputs(i ? "," : place.in_c ? " in_c=" : " frames=", dump->out);
		print_frame(dump, record, r->words[place.n_python + i]);
	}
	if (place.in_c && !place.function)
		fputs(" in_c=unknown", dump->out);
	if (place.function && !dump->stable) {
		fputs(" function=", dump->out);
		print_frame(dump, record, place.function);
	}
}

static void print_sample(const struct dump *dump, const struct record *record)
{
	static const char *const states[] = {"ran", "blocked", "cut", "gc", "gil", "holder"};
	const struct spy_rec_sample *r = &record->raw->sample;
	const char *comma = " state=";

	fprintf(dump->out,
		" of=%" PRIu32 " place=%" PRIu32 " weight=%" PRIu32 " ago=%" PRIu32
		" holder=%" PRIu32,
		r->tid, r->place, r->weight, r->ago, r->holder);
	for (unsigned int i = 0; i < ARRAY_SIZE(states); i++)
		if (r->state >> i & 1) {
			fprintf(dump->out, "%s%s", comma, states[i]);
			comma = ",";
		}
}

static void print_gpu_look(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu_look *r = &record->raw->gpu_look;

	fprintf(dump->out,
		" gpu=%u busy=%u clock=%u clock_most=%u reasons=0x%" PRIx64 " power=%" PRIu32
		" power_limit=%" PRIu32 " temperature=%u others=%u other_pid=%" PRIu32
		" used_bytes=%" PRIu64 " others_bytes=%" PRIu64 " known=%" PRIu32
		" own_busy=%u others_busy=%u links=%u link_mbytes=%" PRIu32,
		r->device, r->busy, r->clock, r->clock_most, r->reasons, r->power, r->power_limit,
		r->temperature, r->others, r->other_pid, r->used_bytes, r->others_bytes, r->known,
		r->own_busy, r->others_busy, r->links, r->link_mbytes);
}

/* Times of CUPTI's clock are not the trace's. */
static void print_gpu_op(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu_op *r = &record->raw->gpu_op;

	fprintf(dump->out,
		" kind=%s gpu=%u correlation=%" PRIu32 " begin=%" PRIu64 " end=%" PRIu64
		" amount=%" PRIu64 " stream=%" PRIu32 " context=%" PRIu32,
		name_gpu_op(r->kind), r->device, r->correlation, r->begin_ns, r->end_ns, r->amount,
		r->stream, r->context);
	if (r->kind == SPY_GPU_KERNEL)
		fprintf(dump->out, " kernel=%" PRIu32 " threads=%u", r->kernel, r->threads);
	if (r->kind == SPY_GPU_COPY)
		fprintf(dump->out, " direction=%s", name_direction(r->direction));
	if (r->flags)
		fprintf(dump->out, " flags=%u", r->flags);
}

static void print_gpu_submit(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu_submit *r = &record->raw->gpu_submit;

	fprintf(dump->out,
		" correlation=%" PRIu32 " begin=%" PRIu64 " end=%" PRIu64 " tid=%" PRIu32,
		r->correlation, r->begin_ns, r->end_ns, r->tid);
}

static void print_gpu_clock(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu_clock *r = &record->raw->gpu_clock;

	fprintf(dump->out,
		" clock=%" PRIu64 " gpu_ns=%" PRIu64 " error=%" PRIu32 " dropped=%" PRIu64,
		r->clock, r->gpu_ns, r->error, r->dropped);
}

static void print_gpu_state(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_gpu_state *r = &record->raw->gpu_state;
	char text[sizeof(r->text) + 1] = "";

	memcpy(text, r->text, sizeof(r->text));
	fprintf(dump->out, " state=%s", name_gpu_state(r->state));
	print_text(dump, "text", text);
}

static void print_nccl_comm(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_nccl_comm *r = &record->raw->nccl_comm;
	char name[sizeof(r->name) + 1] = "";

	memcpy(name, r->name, sizeof(r->name));
	fprintf(dump->out,
		" comm=%" PRIu32 " interface=%u hash=0x%" PRIx64 " rank=%" PRIu32 " ranks=%" PRIu32
		" nodes=%" PRIu32 " tid=%" PRIu32 " device=%u",
		r->comm, r->interface, r->hash, r->rank, r->ranks, r->nodes, r->tid, r->device);
	print_text(dump, "name", name);
}

static void print_collective(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_collective *r = &record->raw->collective;

	fprintf(dump->out,
		" func=%s comm=%" PRIu32 " seq=%" PRIu64 " count=%" PRIu64
		" bytes_each=%u id=%" PRIu32 " peer=%" PRId32
		" algorithm=%s protocol=%s channels=%u flags=%u",
		name_nccl_func(r->func), r->comm, r->seq, r->count, r->bytes_each, r->id, r->peer,
		name_nccl_algorithm(r->algorithm), name_nccl_protocol(r->protocol), r->channels,
		r->flags);
}

static void print_collective_ran(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_collective_ran *r = &record->raw->collective_ran;

	fprintf(dump->out,
		" comm=%" PRIu32 " id=%" PRIu32 " begin_ns=%" PRIu64 " end_ns=%" PRIu64
		" seen=%" PRIu64 " channels=%u",
		r->comm, r->id, r->begin_ns, r->end_ns, r->seen, r->channels);
}

static void print_nccl_state(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_nccl_state *r = &record->raw->nccl_state;
	char text[sizeof(r->text) + 1] = "";

	memcpy(text, r->text, sizeof(r->text));
	fprintf(dump->out, " state=%s", name_nccl_state(r->state));
	print_text(dump, "text", text);
}

static void print_window(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_window *r = &record->raw->window;
	char text[sizeof(r->text) + 1] = "";

	memcpy(text, r->text, sizeof(r->text));
	fprintf(dump->out, " state=%s number=%" PRIu32 " since=%" PRIu64, name_window(r->state),
		r->number, r->since);
	print_text(dump, "text", text);
}

static void print_cost(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_cost *r = &record->raw->cost;

	fprintf(dump->out, " kind=%s", name_cost(r->kind));
	if (!dump->stable)
		fprintf(dump->out, " window=%" PRIu64 " place=%" PRIu64 " span_ns=%" PRIu64,
			r->window / 4, r->window % 4,
			timeline_span_ns(&record->stream->trace->timeline, r->end - r->begin));
	if (!dump->stable && r->delay_ns)
		fprintf(dump->out, " delay_ns=%" PRIu64, r->delay_ns);
	fprintf(dump->out, " calls=%u", r->calls);
	for (unsigned int i = 0; i < r->n && i < SPY_COST_FUNCTIONS; i++)
		fprintf(dump->out, " %s=%u", function_name(dump, record, r->fn[i]), r->count[i]);
}

static void print_part(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_part *r = &record->raw->part;

	fprintf(dump->out,
		" state=%s number=%" PRIu32 " since=%" PRIu64 " calls=%" PRIu64 " removed=%" PRIu32
		" removed_calls=%" PRIu64 " removed_until=%" PRIu64,
		name_part(r->state), r->number, r->since, r->calls, r->removed, r->removed_calls,
		r->removed_until);
}

static void print_range_of(const struct dump *dump, uint8_t what, uint32_t name)
{
	fprintf(dump->out, " what=%s", name_range_what(what));
	if (name || what != SPY_RANGE_END)
		fprintf(dump->out, " name=%" PRIu32, name);
}

static void print_range(const struct dump *dump, const struct record *record)
{
	print_range_of(dump, record->raw->range.what, record->raw->range.name);
}

/* Its bits are of that type. */
static void print_payload(const struct dump *dump, uint8_t type, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	double wide;
	float narrow;

	memcpy(&wide, &bits, sizeof(wide));
	memcpy(&narrow, &low, sizeof(narrow));
	if (type == SPY_PAYLOAD_DOUBLE)
		fprintf(dump->out, " %s=%g", name_payload(type), wide);
	else if (type == SPY_PAYLOAD_FLOAT)
		fprintf(dump->out, " %s=%g", name_payload(type), (double)narrow);
	else if (type == SPY_PAYLOAD_I64)
		fprintf(dump->out, " %s=%" PRId64, name_payload(type), (int64_t)bits);
	else if (type == SPY_PAYLOAD_I32)
		fprintf(dump->out, " %s=%" PRId32, name_payload(type), (int32_t)low);
	else
		fprintf(dump->out, " %s=%" PRIu64, name_payload(type), bits);
}

static void print_range_value(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_range_value *r = &record->raw->range_value;

	print_range_of(dump, r->what, r->name);
	if (r->what == SPY_RANGE_START || r->what == SPY_RANGE_END)
		fprintf(dump->out, " id=%" PRIu64, r->id);
	if (r->payload_type)
		print_payload(dump, r->payload_type, r->payload);
	if (r->category)
		fprintf(dump->out, " category=%" PRIu32, r->category);
}

static void print_range_name(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_range_name *r = &record->raw->range_name;

	fprintf(dump->out, " number=%" PRIu32 "%s", r->name, r->folded ? " folded=1" : "");
	print_text(dump, "domain", record_text(record, 0));
	print_text(dump, "name", record_text(record, 1));
}

static void print_nvtx_name(const struct dump *dump, const struct record *record)
{
	const struct spy_rec_nvtx_name *r = &record->raw->nvtx_name;

	fprintf(dump->out, " what=%s", name_nvtx_named(r->what));
	if (r->what == SPY_NAMED_CATEGORY || r->what == SPY_NAMED_DEVICE)
		fprintf(dump->out, " object=%" PRIu64, r->object);
	else if (r->what == SPY_NAMED_THREAD)
		print_tid(dump, "object", (uint32_t)r->object);
	else
		print_handle(dump, "object", r->object);
	print_text(dump, "name", record_text(record, 0));
}

/* clang-format off */
static field_fn *const details[SPY_EV_COUNT_ALL] = {
	[SPY_EV_NESTED] = print_nested,
	[SPY_EV_CALL]   = print_call,
	[SPY_EV_OP]     = print_op,
	[SPY_EV_LAUNCH] = print_launch,
	[SPY_EV_COPY]   = print_copy,
	[SPY_EV_MEMORY] = print_memory,
	[SPY_EV_THREAD] = print_thread_record,
	[SPY_EV_COUNT]  = print_count,
	[SPY_EV_KERNEL] = print_kernel,
	[SPY_EV_MODULE] = print_module,
	[SPY_EV_GPU]    = print_gpu,
	[SPY_EV_CLOCK]  = print_clock,
	[SPY_EV_NOTE]   = print_note,
	[SPY_EV_WAIT]   = print_wait,
	[SPY_EV_TAKEN]  = print_taken,
	[SPY_EV_RELEASED] = print_taken,
	[SPY_EV_SCHED]  = print_sched,
	[SPY_EV_NON_CUDA_THREAD] = print_non_cuda_thread,
	[SPY_EV_MPS]    = print_mps,
	[SPY_EV_SHARE]  = print_share,
	[SPY_EV_STACK]  = print_stack,
	[SPY_EV_HELD]   = print_held,
	[SPY_EV_PYTHON_CODE] = print_python_code,
	[SPY_EV_PYTHON_STACK] = print_python_stack,
	[SPY_EV_RANGE] = print_range,
	[SPY_EV_RANGE_VALUE] = print_range_value,
	[SPY_EV_RANGE_NAME] = print_range_name,
	[SPY_EV_NVTX_NAME] = print_nvtx_name,
	[SPY_EV_OUTSIDE] = print_outside,
	[SPY_EV_GAP]    = print_sched,
	[SPY_EV_GPU_OP] = print_gpu_op,
	[SPY_EV_GPU_SUBMIT] = print_gpu_submit,
	[SPY_EV_GPU_CLOCK] = print_gpu_clock,
	[SPY_EV_GPU_STATE] = print_gpu_state,
	[SPY_EV_NCCL_COMM] = print_nccl_comm,
	[SPY_EV_COLLECTIVE] = print_collective,
	[SPY_EV_COLLECTIVE_RAN] = print_collective_ran,
	[SPY_EV_NCCL_STATE] = print_nccl_state,
	[SPY_EV_WINDOW] = print_window,
	[SPY_EV_COST] = print_cost,
	[SPY_EV_PART] = print_part,
	[SPY_EV_HOST_FUNCTION] = print_host_function,
	[SPY_EV_PLACE] = print_place,
	[SPY_EV_SAMPLE] = print_sample,
	[SPY_EV_GPU_LOOK] = print_gpu_look,
};
/* clang-format on */

/* ---- columns -------------------------------------------------------------------------------- */

static void print_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void field_time(const struct dump *dump, const struct record *record)
{
	print_seconds(dump->out, record->ns - dump->origin_ns);
}

static void field_thread(const struct dump *dump, const struct record *record)
{
	const struct process *process = record->thread->process;

	if (dump->stable)
		fprintf(dump->out, "P%u/T%u", process->trace->index, record->thread->index);
	else
		fprintf(dump->out, "%u/%u", process->trace->pid, record->thread->tid);
}

static void field_depth(const struct dump *dump, const struct record *record)
{
	if (record_is_call(record))
		fprintf(dump->out, "%u", record->depth);
	else
		fputc('-', dump->out);
}

static void field_function(const struct dump *dump, const struct record *record)
{
	if (record_is_call(record))
		fputs(dump->model->set->functions.all[record->fn].name, dump->out);
	else
		fprintf(dump->out, "[%s]", record_layouts[record->event].name);
}

static void field_duration(const struct dump *dump, const struct record *record)
{
	if (record_is_call(record))
		print_seconds(dump->out, record->duration_ns);
	else
		fputc('-', dump->out);
}

static void field_result(const struct dump *dump, const struct record *record)
{
	if (record_is_call(record) && record->result != SPY_RESULT_NONE)
		fprintf(dump->out, "%u", record->result);
	else
		fputc('-', dump->out);
}

static void field_details(const struct dump *dump, const struct record *record)
{
	fputs(record_layouts[record->event].name, dump->out);
	if (record_is_call(record))
		print_head(dump, &record->raw->call_head);
	details[record->event](dump, record);
}

/* clang-format off */
static const struct dump_field all_fields[] = {
	{"time",     true,  field_time},
	{"thread",   false, field_thread},
	{"depth",    false, field_depth},
	{"function", false, field_function},
	{"duration", true,  field_duration},
	{"result",   false, field_result},
	{"details",  false, field_details},
};
/* clang-format on */

static const struct dump_field *find_field(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(all_fields); i++)
		if (strlen(all_fields[i].name) == length &&
		    !strncmp(all_fields[i].name, name, length))
			return &all_fields[i];
	return NULL;
}

static int unknown_field(const char *name, size_t length)
{
	char *word = xstrndup(name, length), text[SUGGEST_TEXT];
	struct suggest suggest = {.word = word};

	for (size_t i = 0; i < ARRAY_SIZE(all_fields); i++)
		suggest_try(&suggest, all_fields[i].name);
	warn("dump: there is no column '%s' (there are " DUMP_FIELDS ")%s", word,
	     suggest_text(&suggest, text));
	free(word);
	return -EINVAL;
}

int dump_init(struct dump *dump, FILE *out, const char *fields, bool no_times, bool stable)
{
	const char *list = fields;

	*dump = (struct dump){.out = out, .separator = ' ', .stable = stable};
	for (fields = fields ?: DUMP_FIELDS; *fields;) {
		size_t length = strcspn(fields, ",");
		const struct dump_field *field = find_field(fields, length);

		if (!field)
			return unknown_field(fields, length);
		if (dump->n_fields == DUMP_FIELDS_MAX) {
			warn("dump: more than %d columns in '%s'", DUMP_FIELDS_MAX, list);
			return -EINVAL;
		}
		if (!field->is_time || !(no_times || stable))
			dump->fields[dump->n_fields++] = field;
		fields += length + (fields[length] == ',');
	}
	if (dump->n_fields)
		return 0;
	warn("dump: no column is left of '%s'", list ?: DUMP_FIELDS);
	return -EINVAL;
}

void dump_header(struct dump *dump)
{
	for (size_t i = 0; i < dump->n_fields; i++) {
		if (i)
			fputc(dump->separator, dump->out);
		fputs(dump->fields[i]->name, dump->out);
	}
	fputc('\n', dump->out);
}

static void print_line(const struct dump *dump, const struct record *record)
{
	for (size_t i = 0; i < dump->n_fields; i++) {
		if (i)
			fputc(dump->separator, dump->out);
		dump->fields[i]->print(dump, record);
	}
	fputc('\n', dump->out);
}

int dump_all(struct dump *dump, struct trace_set *set)
{
	struct model model;
	struct merge merge;
	struct record record;
	bool first = true;

	model_init(&model, set);
	merge_init(&merge, set, true);
	dump->model = &model;
	while (merge_next(&merge, &record) && !ferror(dump->out)) {
		model_apply(&model, &record);
		if (first)
			dump->origin_ns = record.ns;
		first = false;
		if (!dump->skip || !dump->skip(dump->skip_data, &model, &record))
			print_line(dump, &record);
	}
	merge_release(&merge);
	model_release(&model);
	dump->model = NULL;
	return finish_output(dump->out);
}
