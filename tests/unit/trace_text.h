/*
 * tests/unit/trace_text.h: makes trace directories from a readable log, for the golden tests and
 * for the seeds of the fuzzer.
 *
 *   # a comment
 *   trace app.100 pid=100 program="/bin/app"   directory; the rest goes into env (see below) but
 *                                              packet=BYTES, bounded=1 (keep-the-last), version=N, and
 *                                              of=NAME: a part of that recording (its number: part=N)
 *   clock offset_s=5 frequency=1000000000      optional; else these values
 *   board ended=0 lost=3 looked=9s             optional; else ended=1 lost=0 looked=0
 *   slot 1 tid=101                             the lines below are this slot's; gpu=1: it has GPU times;
 *                                              packet=N: the number of its first packet, in a later part
 *   10us copy cudaMemcpyAsync duration=2us direction=h2d src=pageable dst=device bytes=4096
 *   discarded 5                                records this slot has lost so far
 *   inflight tid=101 function=cudaStreamSynchronize depth=1 since=20us wait=mutex holder=102
 *   inflight tid=101 depth=0 since=20us outside=mutex object=0x10 holder=102    a wait between calls
 *   counter cudaGetDevice 12                   on the board, not in a record
 *
 * Times are cycles; with a unit (ns, us, ms, s) they assume 1 GHz. An env value that is all digits
 * is a number. A record is: time, type, function if it is a call, then fields as in trace_format.h;
 * enums by name; texts in quotes. What is not said is 0.
 */
#ifndef CUDASPY_TESTS_TRACE_TEXT_H
#define CUDASPY_TESTS_TRACE_TEXT_H

#include <ctype.h>
#include "trace_writer.h"

#define TT_WORDS 40

struct tt_line {
	char *words[TT_WORDS];
	unsigned int count;
};

struct tt_state {
	struct tw_trace w;
	struct tw_metadata metadata;
	char env[4096];
	const char *parent;
	const char *log; /* for messages */
	unsigned int line;
	unsigned int slot;
	bool open;
};

#define TT_NAME(number, text) [number] = text,
static const char *const tt_kinds[] = {SPY_MEMORY_KINDS(TT_NAME) NULL};
static const char *const tt_accesses[] = {SPY_ACCESSES(TT_NAME) NULL};
static const char *const tt_directions[] = {SPY_DIRECTIONS(TT_NAME) NULL};
static const char *const tt_forms[] = {SPY_COPY_FORMS(TT_NAME) NULL};
static const char *const tt_ops[] = {SPY_MEMORY_OPS(TT_NAME) NULL};
static const char *const tt_notes[] = {SPY_NOTES(TT_NAME) NULL};
#define TT_EVENT(number, type, name, texts) [number] = #name,
static const char *const tt_windows[] = {SPY_WINDOW_NAMES(TT_NAME) NULL};
static const char *const tt_costs[] = {SPY_COST_NAMES(TT_NAME) NULL};
static const char *const tt_parts[] = {SPY_PART_NAMES(TT_NAME) NULL};
static const char *const tt_waits[] = {SPY_WAIT_NAMES(TT_NAME) NULL};
static const char *const tt_files[] = {SPY_FILE_NAMES(TT_NAME) NULL};
static const char *const tt_ranges[] = {SPY_RANGE_WHAT_NAMES(TT_NAME) NULL};
static const char *const tt_payloads[] = {SPY_PAYLOAD_NAMES(TT_NAME) NULL};
static const char *const tt_named[] = {SPY_NAMED_NAMES(TT_NAME) NULL};
static const char *const tt_clients[] = {SPY_CLIENTS(TT_NAME) NULL};
static const char *const tt_gpu_ops[] = {SPY_GPU_OP_NAMES(TT_NAME) NULL};
static const char *const tt_gpu_states[] = {SPY_GPU_STATE_NAMES(TT_NAME) NULL};
static const char *const tt_nccl_funcs[] = {SPY_NCCL_FUNC_NAMES(TT_NAME) NULL};
static const char *const tt_nccl_algorithms[] = {SPY_NCCL_ALGORITHM_NAMES(TT_NAME) NULL};
static const char *const tt_nccl_protocols[] = {SPY_NCCL_PROTOCOL_NAMES(TT_NAME) NULL};
static const char *const tt_nccl_states[] = {SPY_NCCL_STATE_NAMES(TT_NAME) NULL};
static const char *const tt_events[] = {SPY_EVENTS(TT_EVENT) NULL};
static const char *const tt_functions[] = {
#define ENTRY(name, layer, record, contract, inspector) #name,
#include "cudaspy/entrypoints.def"
	NULL};
static const uint8_t tt_counted[] = {
#define TRANSPARENT SPY_TRANSPARENT
#define COUNTED SPY_COUNTED
#define INSTANT SPY_COUNTED
#define TRACED SPY_TRACED
#define ENTRY(name, layer, record, contract, inspector) record,
#include "cudaspy/entrypoints.def"
#undef TRANSPARENT
#undef COUNTED
#undef INSTANT
#undef TRACED
};

static void tt_fail(const struct tt_state *s, const char *what, const char *word)
{
	fprintf(stderr, "%s:%u: %s '%s'\n", s->log, s->line, what, word ? word : "");
	exit(3);
}

/* Splits in place at blanks outside quotes. */
static void tt_split(struct tt_line *line, char *text)
{
	bool quoted = false;

	line->count = 0;
	while (line->count < TT_WORDS) {
		text += strspn(text, " \t\n");
		if (!*text)
			return;
		line->words[line->count++] = text;
		for (; *text && (quoted || !isspace((unsigned char)*text)); text++)
			quoted ^= *text == '"';
		if (*text)
			*text++ = '\0';
	}
}

static uint64_t tt_number(const struct tt_state *s, const char *word)
{
	char *unit;
	uint64_t value = strtoull(word, &unit, 0);

	if (!strcmp(unit, "s"))
		return value * 1000000000;
	if (!strcmp(unit, "ms"))
		return value * 1000000;
	if (!strcmp(unit, "us"))
		return value * 1000;
	if (*unit && strcmp(unit, "ns"))
		tt_fail(s, "not a number", word);
	return value;
}

/* Value of key=value, without quotes, or NULL. The quotes are removed in place. */
static const char *tt_text(const struct tt_line *line, const char *key)
{
	size_t n = strlen(key), length;
	unsigned int i;

	for (i = 0; i < line->count; i++) {
		char *value = line->words[i] + n + 1;

		if (strncmp(line->words[i], key, n) || line->words[i][n] != '=')
			continue;
		length = strlen(value);
		if (length > 1 && value[0] == '"') {
			value[length - 1] = '\0';
			memmove(value, value + 1, length - 1);
		}
		return value;
	}
	return NULL;
}

static uint64_t tt_value(const struct tt_state *s, const struct tt_line *line, const char *key,
			 uint64_t otherwise)
{
	const char *value = tt_text(line, key);

	return value ? tt_number(s, value) : otherwise;
}

static unsigned int tt_find(const struct tt_state *s, const char *const *names, const char *word)
{
	unsigned int i;

	for (i = 0; names[i]; i++)
		if (word && !strcmp(names[i], word))
			return i;
	tt_fail(s, "unknown name", word);
	return 0;
}

static unsigned int tt_name(const struct tt_state *s, const struct tt_line *line, const char *key,
			    const char *const *names)
{
	const char *word = tt_text(line, key);

	return word ? tt_find(s, names, word) : 0;
}

/* ---- records -------------------------------------------------------------------------------- */

static void tt_call(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		    uint64_t time)
{
	struct spy_rec_head head = {
		.time = time,
		.event = event,
		.fn = (uint16_t)tt_find(s, tt_functions, l->count > 2 ? l->words[2] : NULL),
		.result = (uint16_t)tt_value(s, l, "result", 0),
		.device = (uint8_t)tt_value(s, l, "device", 0),
		.depth = (uint8_t)tt_value(s, l, "depth", 0),
		.duration = tt_value(s, l, "duration", 0),
		.context = tt_value(s, l, "context", 0) & 0xffff,
	};
	uint64_t caller = tt_value(s, l, "caller", 0), stream = tt_value(s, l, "stream", 0);
	uint64_t flags = tt_value(s, l, "flags", 0) & 0xffff;
	uint64_t bytes = tt_value(s, l, "bytes", 0);

	if (event == SPY_EV_NESTED) {
		tw_record(&s->w, s->slot, &head, sizeof(head));
	} else if (event == SPY_EV_CALL) {
		struct spy_rec_call r = {.head = head, .caller = caller, .flags = flags};

		tw_record(&s->w, s->slot, &r, sizeof(r));
	} else if (event == SPY_EV_OP) {
		struct spy_rec_op r = {.head = head,
				       .caller = caller,
				       .flags = flags,
				       .stream = stream,
				       .object = tt_value(s, l, "object", 0)};

		tw_record(&s->w, s->slot, &r, sizeof(r));
	} else if (event == SPY_EV_LAUNCH) {
		uint64_t kernel = tt_value(s, l, "kernel", 0);
		struct spy_rec_launch r = {.head = head,
					   .caller = caller,
					   .stream = stream,
					   .kernel_lo = kernel & 0xffff,
					   .kernel_hi = kernel >> 16};

		tw_record(&s->w, s->slot, &r, sizeof(r));
	} else if (event == SPY_EV_COPY) {
		struct spy_rec_copy r = {
			.head = head,
			.caller = caller,
			.src_device = tt_value(s, l, "src_device", SPY_DEVICE_NONE) & 0xff,
			.dst_device = tt_value(s, l, "dst_device", SPY_DEVICE_NONE) & 0xff,
			.stream = stream,
			.direction = tt_name(s, l, "direction", tt_directions) & 7,
			.captured = tt_value(s, l, "captured", 0) & 1,
			.form = tt_name(s, l, "form", tt_forms) & 15,
			.src_kind = tt_name(s, l, "src", tt_kinds) & 15,
			.dst_kind = tt_name(s, l, "dst", tt_kinds) & 15,
			.bytes = bytes & 0xfffffffffffffff,
			.src_access = tt_name(s, l, "src_access", tt_accesses) & 3,
			.dst_access = tt_name(s, l, "dst_access", tt_accesses) & 3,
		};

		tw_record(&s->w, s->slot, &r, sizeof(r));
	} else {
		struct spy_rec_memory r = {
			.head = head,
			.caller = caller,
			.op = tt_name(s, l, "op", tt_ops) & 0xff,
			.kind = tt_name(s, l, "kind", tt_kinds) & 15,
			.pool = tt_value(s, l, "pool", 0) & 1,
			.stream = stream,
			.address = tt_value(s, l, "address", 0),
			.bytes = bytes,
		};

		tw_record(&s->w, s->slot, &r, sizeof(r));
	}
}

/* A wait: 5us wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=2us object=0x10 holder=102 …
 * count is 1 and span the duration unless said otherwise. */
static void tt_wait(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		    uint64_t time)
{
	const char *fn = tt_text(l, "fn"), *outer = tt_text(l, "outer_fn");
	const char *holder = tt_text(l, "holder_fn");
	uint16_t number = (uint16_t)tt_find(s, tt_functions, fn ? fn : outer);
	uint16_t outer_number = (uint16_t)tt_find(s, tt_functions, outer ? outer : fn);
	uint64_t duration = tt_value(s, l, "duration", 0);
	struct spy_rec_wait wait = {
		.time = time,
		.event = event,
		.kind = tt_name(s, l, "kind", tt_waits) & 0xff,
		.depth = (uint8_t)tt_value(s, l, "depth", 0),
		.fn = number,
		.outer_fn = outer_number,
		.duration = duration,
		.device = tt_value(s, l, "device", SPY_DEVICE_NONE) & 0xff,
		.flags = tt_value(s, l, "flags", 0) & 0xff,
		.object = tt_value(s, l, "object", 0),
		.count = (uint32_t)tt_value(s, l, "count", 1),
		.holder = (uint32_t)tt_value(s, l, "holder", 0),
		.holder_since = tt_value(s, l, "holder_since", 0),
		.holder_stream = tt_value(s, l, "holder_stream", 0),
		.holder_device = tt_value(s, l, "holder_device", SPY_DEVICE_NONE) & 0xff,
		.span = tt_value(s, l, "span", duration),
		.holder_fn = holder ? (uint16_t)tt_find(s, tt_functions, holder) : 0,
	};
	struct spy_rec_taken taken = {.time = time,
				      .event = event,
				      .kind = wait.kind,
				      .depth = wait.depth,
				      .fn = number,
				      .outer_fn = outer_number,
				      .object = wait.object};
	struct spy_rec_held held = {.time = time,
				    .event = event,
				    .kind = wait.kind,
				    .depth = wait.depth,
				    .fn = number,
				    .outer_fn = outer_number,
				    .object = wait.object,
				    .span = tt_value(s, l, "span", 0) / SPY_SPAN_UNIT & 0xffff,
				    .held = tt_value(s, l, "held", 0) & 0xffffffffffff};

	if (event == SPY_EV_WAIT)
		tw_record(&s->w, s->slot, &wait, sizeof(wait));
	else if (event == SPY_EV_HELD)
		tw_record(&s->w, s->slot, &held, sizeof(held));
	else
		tw_record(&s->w, s->slot, &taken, sizeof(taken));
}

/* How GPUs are shared. */
static void tt_sharing(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		       uint64_t time)
{
	static const char *const keys[] = {"pipe_directory", "active_thread_percentage",
					   "memory_limit", "priority"};
	struct spy_rec_other head = {time, (uint16_t)event};
	struct spy_rec_mps mps = {.head = head,
				  .initialised = (uint16_t)tt_value(s, l, "initialised", 1),
				  .uid = (uint32_t)tt_value(s, l, "uid", 0),
				  .daemon = (uint32_t)tt_value(s, l, "daemon", 0),
				  .server = (uint32_t)tt_value(s, l, "server", 0),
				  .server_uid = (uint32_t)tt_value(s, l, "server_uid", 0)};
	struct spy_rec_share share = {.head = head,
				      .device = (uint16_t)tt_value(s, l, "device", 0),
				      .client = (uint16_t)tt_name(s, l, "client", tt_clients),
				      .multiprocessors =
					      (uint32_t)tt_value(s, l, "multiprocessors", 0)};
	const char *texts[4];
	int i;

	for (i = 0; i < 4; i++) {
		const char *text = tt_text(l, keys[i]);

		texts[i] = text ? text : "";
	}
	if (event == SPY_EV_MPS)
		tw_record_text(&s->w, s->slot, &mps, sizeof(mps), 4, texts);
	else
		tw_record(&s->w, s->slot, &share, sizeof(share));
}

static void tt_window(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_window window = {
		.head = {.time = time, .event = SPY_EV_WINDOW},
		.state = (uint16_t)tt_name(s, l, "state", tt_windows),
		.number = (uint32_t)tt_value(s, l, "number", 0),
	};

	tw_record(&s->w, s->slot, &window, sizeof(window));
}

/* Times of GPUs. */
static void tt_gpu(struct tt_state *s, const struct tt_line *l, enum spy_event event, uint64_t time)
{
	struct spy_rec_gpu_op op = {
		.time = time,
		.event = event,
		.kind = (uint8_t)tt_name(s, l, "kind", tt_gpu_ops),
		.device = (uint8_t)tt_value(s, l, "device", 0),
		.correlation = (uint32_t)tt_value(s, l, "correlation", 0),
		.begin_ns = tt_value(s, l, "begin", 0),
		.end_ns = tt_value(s, l, "end", 0),
		.amount = tt_value(s, l, "amount", 1000),
		.stream = 7,
		.context = 1,
		.kernel = (uint32_t)tt_value(s, l, "kernel", 0),
		.threads = 256,
	};
	struct spy_rec_gpu_submit submit = {
		.time = time,
		.event = event,
		.correlation = op.correlation,
		.begin_ns = op.begin_ns,
		.end_ns = op.end_ns,
		.tid = (uint32_t)tt_value(s, l, "tid", 0),
	};
	struct spy_rec_gpu_clock clock = {
		.time = time,
		.event = event,
		.error = (uint32_t)tt_value(s, l, "error", 10),
		.clock = tt_value(s, l, "clock", time),
		.gpu_ns = tt_value(s, l, "gpu", time),
		.dropped = tt_value(s, l, "dropped", 0),
	};
	struct spy_rec_gpu_state state = {.head = {time, (uint16_t)event}};
	const char *text = tt_text(l, "text");

	if (event == SPY_EV_GPU_OP) {
		tw_record(&s->w, s->slot, &op, sizeof(op));
	} else if (event == SPY_EV_GPU_SUBMIT) {
		tw_record(&s->w, s->slot, &submit, sizeof(submit));
	} else if (event == SPY_EV_GPU_CLOCK) {
		tw_record(&s->w, s->slot, &clock, sizeof(clock));
	} else {
		state.state = (uint16_t)tt_name(s, l, "state", tt_gpu_states);
		snprintf(state.text, sizeof(state.text), "%s", text ? text : "");
		tw_record(&s->w, s->slot, &state, sizeof(state));
	}
}

/* 70us stack fn=cudaMemcpyAsync why=2 frames=0x401040,0x401900: before the call, at its time. */
/* "-": a wait's stack is no call's. */
static uint16_t tt_fn(const struct tt_state *s, const struct tt_line *l)
{
	const char *fn = tt_text(l, "fn");

	return fn && !strcmp(fn, "-") ? SPY_FN_NONE : (uint16_t)tt_find(s, tt_functions, fn);
}

static void tt_stack(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_stack stack = {.time = time,
				      .event = SPY_EV_STACK,
				      .fn = tt_fn(s, l),
				      .why = (uint8_t)tt_value(s, l, "why", 0)};
	const char *frames = tt_text(l, "frames");

	while (frames && *frames && stack.count < SPY_STACK_MOST) {
		char *end;

		stack.frames[stack.count++] = strtoull(frames, &end, 0);
		frames = *end == ',' ? end + 1 : end;
	}
	tw_record(&s->w, s->slot, &stack, sizeof(stack));
}

/* 70us place place=1 lines=1:42,2:99 frames=0x401040 function=0x401001, and 71us sample of=7 place=1 state=1 weight=10000 ago=5us holder=9. */
static void tt_sample(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		      uint64_t time)
{
	struct {
		struct spy_rec_place place;
		uint64_t words[SPY_PLACE_MOST];
	} place = {.place = {.head = {time, (uint16_t)event},
			     .place = (uint32_t)tt_value(s, l, "place", 0)}};
	struct spy_rec_sample sample = {.head = {time, (uint16_t)event},
					.state = (uint16_t)tt_value(s, l, "state", 0),
					.tid = (uint32_t)tt_value(s, l, "of", 0),
					.place = (uint32_t)tt_value(s, l, "place", 0),
					.holder = (uint32_t)tt_value(s, l, "holder", 0),
					.weight = (uint32_t)tt_value(s, l, "weight", 10000),
					.ago = (uint32_t)tt_value(s, l, "ago", 0)};
	const char *lines = tt_text(l, "lines"), *frames = tt_text(l, "frames");
	char *end;

	if (event == SPY_EV_SAMPLE) {
		tw_record(&s->w, s->slot, &sample, sizeof(sample));
		return;
	}
	for (; lines && *lines && place.place.count < SPY_PLACE_MOST;
	     lines = *end == ',' ? end + 1 : end) {
		place.words[place.place.count] = (uint64_t)strtoul(lines, &end, 0) << 32;
		if (*end == ':')
			place.words[place.place.count] |= strtoul(end + 1, &end, 0);
		place.place.count++;
	}
	place.place.python = place.place.count;
	for (; frames && *frames && place.place.count < SPY_PLACE_MOST;
	     frames = *end == ',' ? end + 1 : end)
		place.words[place.place.count++] = strtoull(frames, &end, 0);
	if (tt_text(l, "function")) {
		place.place.python |= SPY_PLACE_FUNCTION;
		place.words[place.place.count++] = tt_value(s, l, "function", 0);
	}
	tw_record(&s->w, s->slot, &place,
		  sizeof(place.place) + place.place.count * sizeof(place.words[0]));
}

/* 70us gpu_look device=0 busy=12 clock=990 clock_most=1980 reasons=4 others=1 other_pid=9 others_bytes=1000
 * power=312000 power_limit=700000 temperature=64 own_busy=52 others_busy=48 links=18 link_mbytes=26562;
 * known=BITS: these instead of what the rest says. */
static void tt_gpu_look(struct tt_state *s, const struct tt_line *l, enum spy_event event,
			uint64_t time)
{
	struct spy_rec_gpu_look look = {.head = {time, (uint16_t)event},
					.device = (uint8_t)tt_value(s, l, "device", 0),
					.busy = (uint8_t)tt_value(s, l, "busy", 0),
					.clock = (uint16_t)tt_value(s, l, "clock", 0),
					.clock_most = (uint16_t)tt_value(s, l, "clock_most", 0),
					.reasons = tt_value(s, l, "reasons", 0),
					.power = (uint32_t)tt_value(s, l, "power", 0),
					.power_limit = (uint32_t)tt_value(s, l, "power_limit", 0),
					.temperature = (uint16_t)tt_value(s, l, "temperature", 0),
					.others = (uint16_t)tt_value(s, l, "others", 0),
					.other_pid = (uint32_t)tt_value(s, l, "other_pid", 0),
					.others_bytes = tt_value(s, l, "others_bytes", 0),
					.own_busy = (uint8_t)tt_value(s, l, "own_busy", 0),
					.others_busy = (uint8_t)tt_value(s, l, "others_busy", 0),
					.links = (uint16_t)tt_value(s, l, "links", 0),
					.link_mbytes = (uint32_t)tt_value(s, l, "link_mbytes", 0),
					.known = SPY_GPU_LOOK_REASONS | SPY_GPU_LOOK_PROCESSES};

	if (look.own_busy || look.others_busy)
		look.known |= SPY_GPU_LOOK_SHARES;
	if (look.link_mbytes)
		look.known |= SPY_GPU_LOOK_LINKS;
	look.known = (uint32_t)tt_value(s, l, "known", look.known);
	tw_record(&s->w, s->slot, &look, sizeof(look));
}

/* 70us python_code code=1 first_line=3 file="/home/user/train.py" function="step", and behind a stack
 * 70us python_stack fn=cudaMemcpyAsync more=0 lines=1:42,2:99: codes and their lines. */
static void tt_python(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		      uint64_t time)
{
	struct spy_rec_python_code code = {.head = {time, (uint16_t)event},
					   .code = (uint32_t)tt_value(s, l, "code", 0),
					   .first_line = (uint32_t)tt_value(s, l, "first_line", 0)};
	struct spy_rec_python_stack stack = {
		.time = time, .event = (uint16_t)event, .more = (uint8_t)tt_value(s, l, "more", 0)};
	const char *file = tt_text(l, "file"), *function = tt_text(l, "function");
	const char *lines = tt_text(l, "lines");

	if (event == SPY_EV_PYTHON_CODE) {
		tw_record_text(&s->w, s->slot, &code, sizeof(code), 3,
			       (const char *[]){file ? file : "", function ? function : "", ""});
		return;
	}
	stack.fn = tt_fn(s, l);
	while (lines && *lines && stack.count < SPY_PYTHON_MOST) {
		char *end;

		stack.codes[stack.count] = (uint32_t)strtoul(lines, &end, 0);
		if (*end == ':')
			stack.lines[stack.count] = (uint32_t)strtoul(end + 1, &end, 0);
		stack.count++;
		lines = *end == ',' ? end + 1 : end;
	}
	tw_record(&s->w, s->slot, &stack, sizeof(stack));
}

/* 1us range_name number=1 domain="layers" name="step 1", then 2us range what=push name=1, or
 * 2us range_value what=start name=1 id=7 payload_type=u64 payload=3; 3us nvtx_name what=thread object=101 name="a" */
static void tt_nvtx(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		    uint64_t time)
{
	static const char blanks[] = "       ";
	struct spy_rec_other head = {time, (uint16_t)event};
	struct spy_rec_range range = {
		.time = time,
		.event = event,
		.what = tt_name(s, l, "what", event == SPY_EV_NVTX_NAME ? tt_named : tt_ranges) &
			0xff};
	struct spy_rec_range_value value = {
		.time = time,
		.event = event,
		.what = range.what,
		.payload_type = tt_name(s, l, "payload_type", tt_payloads) & 0xff,
		.id = tt_value(s, l, "id", 0),
		.payload = tt_value(s, l, "payload", 0),
		.category = (uint32_t)tt_value(s, l, "category", 0)};
	struct spy_rec_range_name name = {.head = head,
					  .folded = tt_value(s, l, "folded", 0) & 0xffff,
					  .name = (uint32_t)tt_value(s, l, "number", 0)};
	struct spy_rec_nvtx_name named = {
		.head = head, .what = range.what, .object = tt_value(s, l, "object", 0)};
	const char *domain = tt_text(l, "domain"), *text = tt_text(l, "name");
	const char *texts[] = {domain ? domain : "", text ? text : "", blanks};

	if (event == SPY_EV_RANGE || event == SPY_EV_RANGE_VALUE)
		range.name = value.name = (uint32_t)tt_value(s, l, "name", 0);
	texts[2] += (sizeof(name) + strlen(texts[0]) + strlen(texts[1]) + 2) % 8;
	if (event == SPY_EV_RANGE)
		tw_record(&s->w, s->slot, &range, sizeof(range));
	else if (event == SPY_EV_RANGE_VALUE)
		tw_record(&s->w, s->slot, &value, sizeof(value));
	else if (event == SPY_EV_RANGE_NAME)
		tw_record_text(&s->w, s->slot, &name, sizeof(name), 3, texts);
	else
		tw_record_text(&s->w, s->slot, &named, sizeof(named), 1, &texts[1]);
}

/* 1us nccl_comm number=1 hash=0xab rank=0 ranks=2, then 2us collective func=AllReduce comm=1 seq=0 count=1024 id=7, and
 * 3us collective_ran comm=1 id=7 begin=… end=… seen=…; 1us nccl_state state=taken text="libnccl-profiler.so" */
static void tt_nccl(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		    uint64_t time)
{
	const char *name = tt_text(l, "name"), *text = tt_text(l, "text");
	struct spy_rec_nccl_comm comm = {.head = {time, (uint16_t)event},
					 .interface = tt_value(s, l, "interface", 5) & 0xffff,
					 .comm = (uint32_t)tt_value(s, l, "number", 1),
					 .hash = tt_value(s, l, "hash", 1),
					 .rank = (uint32_t)tt_value(s, l, "rank", 0),
					 .ranks = (uint32_t)tt_value(s, l, "ranks", 2),
					 .nodes = (uint32_t)tt_value(s, l, "nodes", 1),
					 .tid = (uint32_t)tt_value(s, l, "tid", 0),
					 .device = tt_value(s, l, "device", 0) & 0xff};
	struct spy_rec_collective op = {
		.time = time,
		.event = (uint16_t)event,
		.flags = tt_value(s, l, "flags", SPY_COLLECTIVE_RUN_FOLLOWS) & 0xff,
		.comm = (uint32_t)tt_value(s, l, "comm", 1),
		.seq = tt_value(s, l, "seq", 0),
		.count = tt_value(s, l, "count", 1),
		.id = (uint32_t)tt_value(s, l, "id", 0),
		.peer = (int32_t)tt_value(s, l, "peer", 0),
		.bytes_each = tt_value(s, l, "bytes_each", 4) & 0xff,
		.channels = tt_value(s, l, "channels", 1) & 0xff};
	struct spy_rec_collective_ran ran = {.time = time,
					     .event = (uint16_t)event,
					     .channels = op.channels,
					     .comm = op.comm,
					     .id = op.id,
					     .begin_ns = tt_value(s, l, "begin", 0),
					     .end_ns = tt_value(s, l, "end", 0),
					     .seen = tt_value(s, l, "seen", time)};
	struct spy_rec_nccl_state state = {.head = {time, (uint16_t)event}};

	switch (event) {
	case SPY_EV_NCCL_COMM:
		snprintf(comm.name, sizeof(comm.name), "%s", name ? name : "");
		tw_record(&s->w, s->slot, &comm, sizeof(comm));
		break;
	case SPY_EV_COLLECTIVE:
		op.func = tt_name(s, l, "func", tt_nccl_funcs) & 0xff;
		op.algorithm = tt_name(s, l, "algorithm", tt_nccl_algorithms) & 0xff;
		op.protocol = tt_name(s, l, "protocol", tt_nccl_protocols) & 0xff;
		tw_record(&s->w, s->slot, &op, sizeof(op));
		break;
	case SPY_EV_COLLECTIVE_RAN:
		tw_record(&s->w, s->slot, &ran, sizeof(ran));
		break;
	default:
		state.state = (uint16_t)tt_name(s, l, "state", tt_nccl_states);
		snprintf(state.text, sizeof(state.text), "%s", text ? text : "");
		tw_record(&s->w, s->slot, &state, sizeof(state));
	}
}

static void tt_outside(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_outside outside = {
		.time = time,
		.event = SPY_EV_OUTSIDE,
		.kind = (uint8_t)tt_name(s, l, "kind", tt_waits),
		.file = (uint8_t)tt_name(s, l, "file", tt_files),
		.count = (uint32_t)tt_value(s, l, "count", 1),
		.duration = tt_value(s, l, "duration", 0),
		.flags = tt_value(s, l, "flags", 0),
		.span = tt_value(s, l, "span", tt_value(s, l, "duration", 0)),
		.ready = tt_value(s, l, "ready", 0),
		.at_once = tt_value(s, l, "at_once", 0),
		.caller = tt_value(s, l, "caller", 0),
		.object = tt_value(s, l, "object", 0),
		.holder = (uint32_t)tt_value(s, l, "holder", 0)};

	tw_record(&s->w, s->slot, &outside, sizeof(outside));
}

/* 9us cost kind=all window=5 begin=… end=… delay=… calls=7 counted=cudaFree:3,cudaMalloc:4 */
static void tt_cost(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_cost cost = {
		.head = {time, SPY_EV_COST},
		.kind = (uint8_t)tt_name(s, l, "kind", tt_costs),
		.calls = (uint32_t)tt_value(s, l, "calls", 0),
		.begin = tt_value(s, l, "begin", 0),
		.end = tt_value(s, l, "end", time),
		.window = tt_value(s, l, "window", 0),
		.delay_ns = tt_value(s, l, "delay", 0),
	};
	char counted[256];
	char *save, *name;

	snprintf(counted, sizeof(counted), "%s", tt_text(l, "counted") ?: "");
	for (name = strtok_r(counted, ",", &save); name && cost.n < SPY_COST_FUNCTIONS;
	     name = strtok_r(NULL, ",", &save)) {
		char *calls = strchr(name, ':');

		if (!calls)
			tt_fail(s, "no number of", name);
		*calls++ = '\0';
		cost.fn[cost.n] = (uint16_t)tt_find(s, tt_functions, name);
		cost.count[cost.n++] = (uint32_t)tt_number(s, calls);
	}
	tw_record(&s->w, s->slot, &cost, sizeof(cost));
}

/* 9us part state=end number=2 since=… calls=… removed=1 removed_calls=… removed_until=… */
static void tt_part(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_part part = {
		.head = {time, SPY_EV_PART},
		.state = (uint16_t)tt_name(s, l, "state", tt_parts),
		.number = (uint32_t)tt_value(s, l, "number", 1),
		.since = tt_value(s, l, "since", 0),
		.calls = tt_value(s, l, "calls", 0),
		.removed = (uint32_t)tt_value(s, l, "removed", 0),
		.removed_calls = tt_value(s, l, "removed_calls", 0),
		.removed_until = tt_value(s, l, "removed_until", 0),
		.recording_began = tt_value(s, l, "recording_began", 0),
	};

	tw_record(&s->w, s->slot, &part, sizeof(part));
}

static void tt_host_function(struct tt_state *s, const struct tt_line *l, uint64_t time)
{
	struct spy_rec_host_function function = {
		.time = time,
		.event = SPY_EV_HOST_FUNCTION,
		.device = (uint8_t)tt_value(s, l, "device", 0),
		.tid = (uint32_t)tt_value(s, l, "tid", 0),
		.duration = tt_value(s, l, "duration", 0),
		.fn = (uint16_t)tt_find(s, tt_functions, tt_text(l, "by")),
		.function = tt_value(s, l, "function", 0),
		.stream = tt_value(s, l, "stream", 0),
		.handed = time - tt_value(s, l, "ago", 0),
		.caller = tt_value(s, l, "caller", 0)};

	tw_record(&s->w, s->slot, &function, sizeof(function));
}

static void tt_other(struct tt_state *s, const struct tt_line *l, enum spy_event event,
		     uint64_t time)
{
	const char *name = tt_text(l, "name"), *build_id = tt_text(l, "build_id");
	const char *path = tt_text(l, "path"), *uuid = tt_text(l, "uuid");
	const char *pci = tt_text(l, "pci"), *text = tt_text(l, "text");
	struct spy_rec_other head = {time, (uint16_t)event};
	struct spy_rec_thread thread = {.head = head, .tid = (uint32_t)tt_value(s, l, "tid", 0)};
	struct spy_rec_kernel kernel = {.head = head,
					.kernel = (uint32_t)tt_value(s, l, "kernel", 0)};
	struct spy_rec_module module = {.head = head,
					.gone = (uint16_t)tt_value(s, l, "gone", 0),
					.span_pages = (uint32_t)tt_value(s, l, "span_pages", 0),
					.base = tt_value(s, l, "base", 0),
					.begin = tt_value(s, l, "begin", 0),
					.end = tt_value(s, l, "end", 0)};
	struct spy_rec_gpu gpu = {.head = head,
				  .device = (uint16_t)tt_value(s, l, "device", 0),
				  .cc_major = (uint16_t)tt_value(s, l, "cc_major", 0),
				  .cc_minor = (uint16_t)tt_value(s, l, "cc_minor", 0),
				  .bytes = tt_value(s, l, "bytes", 0)};
	struct spy_rec_clock clock = {.head = head,
				      .monotonic_ns = tt_value(s, l, "monotonic_ns", 0),
				      .realtime_ns = tt_value(s, l, "realtime_ns", 0)};
	struct spy_rec_note note = {.head = head,
				    .note = (uint16_t)tt_name(s, l, "note", tt_notes)};
	struct spy_rec_count count = {.head = head,
				      .tid = (uint32_t)tt_value(s, l, "tid", 0),
				      .count = tt_value(s, l, "count", 0)};
	struct spy_rec_sched sched = {
		.time = time,
		.event = event,
		.unknown = (uint16_t)((tt_value(s, l, "unknown", 0) + SPY_UNKNOWN_UNIT - 1) /
				      SPY_UNKNOWN_UNIT),
		.process_ran = (uint32_t)(tt_value(s, l, "process_ran", 0) / SPY_RAN_UNIT),
		.window = tt_value(s, l, "window", 0),
		.not_running_ns = tt_value(s, l, "not_running", 0),
		.running_ns = tt_value(s, l, "running", 0)};
	struct spy_rec_non_cuda_thread non_cuda = {.head = head, .tid = thread.tid};

	if (event == SPY_EV_THREAD) {
		snprintf(thread.name, sizeof(thread.name), "%s", name);
		tw_record(&s->w, s->slot, &thread, sizeof(thread));
	} else if (event == SPY_EV_WAIT || event == SPY_EV_TAKEN || event == SPY_EV_RELEASED ||
		   event == SPY_EV_HELD) {
		tt_wait(s, l, event, time);
	} else if (event == SPY_EV_MPS || event == SPY_EV_SHARE) {
		tt_sharing(s, l, event, time);
	} else if (event == SPY_EV_WINDOW) {
		tt_window(s, l, time);
	} else if (event == SPY_EV_COST) {
		tt_cost(s, l, time);
	} else if (event == SPY_EV_PART) {
		tt_part(s, l, time);
	} else if (event == SPY_EV_STACK) {
		tt_stack(s, l, time);
	} else if (event == SPY_EV_PYTHON_CODE || event == SPY_EV_PYTHON_STACK) {
		tt_python(s, l, event, time);
	} else if (event >= SPY_EV_RANGE && event <= SPY_EV_NVTX_NAME) {
		tt_nvtx(s, l, event, time);
	} else if (event >= SPY_EV_NCCL_COMM && event <= SPY_EV_NCCL_STATE) {
		tt_nccl(s, l, event, time);
	} else if (event == SPY_EV_OUTSIDE) {
		tt_outside(s, l, time);
	} else if (event == SPY_EV_PLACE || event == SPY_EV_SAMPLE) {
		tt_sample(s, l, event, time);
	} else if (event == SPY_EV_GPU_LOOK) {
		tt_gpu_look(s, l, event, time);
	} else if (event == SPY_EV_HOST_FUNCTION) {
		tt_host_function(s, l, time);
	} else if (event >= SPY_EV_GPU_OP && event <= SPY_EV_GPU_STATE) {
		tt_gpu(s, l, event, time);
	} else if (event == SPY_EV_SCHED || event == SPY_EV_GAP) {
		tw_record(&s->w, s->slot, &sched, sizeof(sched));
	} else if (event == SPY_EV_NON_CUDA_THREAD) {
		snprintf(non_cuda.name, sizeof(non_cuda.name), "%s", name);
		tw_record(&s->w, s->slot, &non_cuda, sizeof(non_cuda));
	} else if (event == SPY_EV_COUNT) {
		count.fn = (uint16_t)tt_find(s, tt_functions, tt_text(l, "function"));
		tw_record(&s->w, s->slot, &count, sizeof(count));
	} else if (event == SPY_EV_KERNEL) {
		tw_record_text(&s->w, s->slot, &kernel, sizeof(kernel), 1, &name);
	} else if (event == SPY_EV_MODULE) {
		tw_record_text(&s->w, s->slot, &module, sizeof(module), 2,
			       (const char *[]){build_id ? build_id : "", path ? path : ""});
	} else if (event == SPY_EV_GPU) {
		tw_record_text(
			&s->w, s->slot, &gpu, sizeof(gpu), 3,
			(const char *[]){name ? name : "", uuid ? uuid : "", pci ? pci : ""});
	} else if (event == SPY_EV_CLOCK) {
		tw_record(&s->w, s->slot, &clock, sizeof(clock));
	} else {
		tw_record_text(&s->w, s->slot, &note, sizeof(note), 1,
			       (const char *[]){text ? text : ""});
	}
}

/* ---- everything else ------------------------------------------------------------------------ */

static void tt_end_trace(struct tt_state *s)
{
	if (!s->open)
		return;
	s->metadata.env = s->env;
	tw_write_metadata(&s->w, &s->metadata);
	tw_close(&s->w);
	s->open = false;
}

static void tt_begin_trace(struct tt_state *s, const struct tt_line *l)
{
	char dir[512];
	size_t used = 0;
	unsigned int i;

	tt_end_trace(s);
	if (l->count < 2)
		tt_fail(s, "name missing after", l->words[0]);
	snprintf(dir, sizeof(dir), "%s/%s", s->parent, l->words[1]);
	tw_open(&s->w, dir, tt_value(s, l, "packet", 0));
	if (tt_text(l, "of"))
		tw_make_uuid(&s->w, tt_text(l, "of"));
	s->w.board.pid = (uint32_t)tt_value(s, l, "pid", 100);
	s->w.bounded = tt_value(s, l, "bounded", 0);
	s->metadata = (struct tw_metadata){.frequency = 1000000000, .offset_s = 5};
	used = (size_t)snprintf(s->env, sizeof(s->env),
				"\ttracer_name = \"cudaspy\";\n\ttrace_version = %d;\n",
				(int)tt_value(s, l, "version", SPY_TRACE_VERSION));
	if (s->w.bounded)
		used += (size_t)snprintf(s->env + used, sizeof(s->env) - used,
					 "\tenv_CUDASPY_KEEP = \"1\";\n");
	for (i = 2; i < l->count; i++) {
		char *value = strchr(l->words[i], '=');

		if (!value)
			tt_fail(s, "not key=value:", l->words[i]);
		*value++ = '\0';
		if (!strcmp(l->words[i], "packet") || !strcmp(l->words[i], "bounded") ||
		    !strcmp(l->words[i], "version") || !strcmp(l->words[i], "of"))
			continue;
		used += (size_t)snprintf(s->env + used, sizeof(s->env) - used,
					 *value == '"' || isdigit((unsigned char)*value)
						 ? "\t%s = %s;\n"
						 : "\t%s = \"%s\";\n",
					 l->words[i], value);
	}
	s->open = true;
	s->slot = 0;
}

static void tt_counter(struct tt_state *s, const char *name, uint64_t count)
{
	unsigned int fn = tt_find(s, tt_functions, name), i, index = 0;

	for (i = 0; i < fn; i++)
		index += tt_counted[i] == SPY_COUNTED;
	s->w.board.counter_fn[index] = (uint16_t)fn;
	tw_page(&s->w, s->slot)->counts[index] = count;
}

static void tt_in_flight(struct tt_state *s, const struct tt_line *l)
{
	struct spy_slot_page *page = tw_page(&s->w, s->slot);
	const char *outer = tt_text(l, "function"), *inner = tt_text(l, "inner");

	page->tid = (uint32_t)tt_value(s, l, "tid", 0);
	page->depth = (uint8_t)tt_value(s, l, "depth", 1);
	if (tt_text(l, "outside")) {
		page->outside_kind = (uint8_t)(tt_name(s, l, "outside", tt_waits) + 1);
		page->outside_object = tt_value(s, l, "object", 0);
		page->outside_holder = (uint32_t)tt_value(s, l, "holder", 0);
		page->outside_since = tt_value(s, l, "since", 0);
		page->outside_calls = (uint16_t)page->calls;
		return;
	}
	page->since = tt_value(s, l, "since", 0);
	page->outer_fn = (uint16_t)tt_find(s, tt_functions, outer);
	if (tt_text(l, "wait")) {
		page->wait_kind = tt_name(s, l, "wait", tt_waits) + 1;
		page->wait_object = tt_value(s, l, "object", 0);
		page->wait_holder = (uint32_t)tt_value(s, l, "holder", 0);
	}
	page->fn = inner ? (uint16_t)tt_find(s, tt_functions, inner) : page->outer_fn;
}

static void tt_apply(struct tt_state *s, const struct tt_line *l)
{
	const char *verb = l->words[0], *object = l->count > 1 ? l->words[1] : "";
	enum spy_event event;

	if (!strcmp(verb, "trace")) {
		tt_begin_trace(s, l);
	} else if (!s->open) {
		tt_fail(s, "no trace yet for", verb);
	} else if (!strcmp(verb, "clock")) {
		s->metadata.frequency = tt_value(s, l, "frequency", s->metadata.frequency);
		s->metadata.offset_s = tt_value(s, l, "offset_s", s->metadata.offset_s);
		s->metadata.offset = tt_value(s, l, "offset", 0);
	} else if (!strcmp(verb, "board")) {
		s->w.board.ended = (uint32_t)tt_value(s, l, "ended", 1);
		s->w.board.lost = tt_value(s, l, "lost", 0);
		s->w.board.looked = tt_value(s, l, "looked", 0);
		s->w.board.parts_removed = (uint32_t)tt_value(s, l, "parts_removed", 0);
		s->w.board.removed_calls = tt_value(s, l, "removed_calls", 0);
		s->w.board.removed_cycles = tt_value(s, l, "removed_cycles", 0);
	} else if (!strcmp(verb, "slot")) {
		s->slot = (unsigned int)tt_number(s, object);
		tw_stream(&s->w, s->slot)->tid = (uint32_t)tt_value(s, l, "tid", 0);
		tw_stream(&s->w, s->slot)->kind = (uint32_t)tt_value(s, l, "gpu", 0);
		tw_stream(&s->w, s->slot)->seq =
			tt_value(s, l, "packet", tw_stream(&s->w, s->slot)->seq);
	} else if (!strcmp(verb, "discarded")) {
		tw_stream(&s->w, s->slot)->discarded = tt_number(s, object);
	} else if (!strcmp(verb, "inflight")) {
		tt_in_flight(s, l);
	} else if (!strcmp(verb, "counter")) {
		tt_counter(s, object, tt_number(s, l->count > 2 ? l->words[2] : "0"));
	} else {
		event = (enum spy_event)tt_find(s, tt_events, object);
		if (event <= SPY_EV_MEMORY)
			tt_call(s, l, event, tt_number(s, verb));
		else
			tt_other(s, l, event, tt_number(s, verb));
	}
}

/* Makes the traces of a log in directories below `parent`, which exists. Ends the program if the
 * log is wrong. */
TW_UNUSED static void tt_make(const char *log, const char *parent)
{
	static struct tt_state s;
	struct tt_line words;
	char line[2048];
	FILE *file = fopen(log, "r");

	s = (struct tt_state){.parent = parent, .log = log};
	if (!file)
		tt_fail(&s, "cannot be opened", log);
	while (fgets(line, sizeof(line), file)) {
		s.line++;
		if (line[0] == '#')
			continue;
		tt_split(&words, line);
		if (words.count)
			tt_apply(&s, &words);
	}
	tt_end_trace(&s);
	fclose(file);
}

#endif
