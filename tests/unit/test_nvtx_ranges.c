/* links: shim/nvtx/ranges.c shim/nvtx/callbacks.c shim/record/range_names.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_nvtx_ranges.c: what a program announces by NVTX, and the records that come of it: each function, ranges
 * of a thread that has no stream yet, of domains, beyond those that are known, of signal handlers, of windows and of a
 * forked child; names in a bounded recording; and threads that cannot write.
 */
#include <stdio.h>
#include "thread_stubs.h"
#include "nvtx/callbacks.h"
#include "nvtx/nvtx_layout.h"
#include "nvtx/ranges.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/range_names.h"
#include "window/capture.h"

#define OPEN_MOST 24 /* ranges.c */
#define AT_ONCE 64
#define OBJECTS_MOST 256

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
uint32_t spy_window_changes = 1;
static bool keeps_packets;
static uint32_t opens; /* the name that opens a window */
static int begun, ended, renewed;
static uint64_t started, stopped; /* ids */

bool spy_options_keeps_packets(void)
{
	return keeps_packets;
}

bool spy_window_range_begins(uint32_t name)
{
	begun += name && name == opens;
	return name && name == opens;
}

void spy_window_range_ends(void)
{
	ended++;
}

void spy_window_range_started(uint32_t name, uint64_t id)
{
	(void)name;
	started = id;
}

void spy_window_range_ended(uint64_t id)
{
	stopped = id;
}

void spy_thread_renew(struct spy_thread *of)
{
	assert_int_not_equal(of->reentry_frame, 0);
	of->turn = spy_window_turn();
	renewed++;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

/* ---- NVTX ---- */

#define CALL(type, module, name, ...) \
	((type)spy_nvtx_callback(NVTX_MODULE_##module, NVTX_##module##_##name, mode))(__VA_ARGS__)

static enum spy_nvtx_mode mode;

static int push(const char *name)
{
	return CALL(int (*)(const char *), CORE, RangePushA, name);
}

static int pop(void)
{
	return CALL(int (*)(void), CORE, RangePop);
}

static void *domain(const char *name)
{
	return CALL(void *(*)(const char *), CORE2, DomainCreateA, name);
}

static int push_in(void *of, const char *name)
{
	struct nvtx_attributes a = {
		.bytes = sizeof(a), .message_type = NVTX_MESSAGE_TEXT, .message.text = name};

	return CALL(int (*)(void *, const struct nvtx_attributes *), CORE2, DomainRangePushEx, of,
		    &a);
}

static int pop_in(void *of)
{
	return CALL(int (*)(void *), CORE2, DomainRangePop, of);
}

static int begin(void **state)
{
	(void)state;
	spy_self = &empty;
	mode = SPY_NVTX_ALONE;
	begin_session();
	for (int i = 0; i < 2 * OPEN_MOST; i++) {
		pop();
		pop_in(domain("one"));
		pop_in(domain("two"));
	}
	spy_ranges_forked();
	begin_session();
	thread.turn = spy_window_turn();
	keeps_packets = false;
	session.part = 1;
	spy_ranges_begin();
	session_bytes = 0;
	opens = 0;
	begun = ended = renewed = 0;
	return 0;
}

/* ---- records ---- */

static const struct spy_rec_range *next_short(void)
{
	return next_record(spy_self, SPY_EV_RANGE, sizeof(struct spy_rec_range));
}

static void expect_short(enum spy_range_what what, const char *name)
{
	const struct spy_rec_range *record = next_short();

	assert_int_equal(record->what, what);
	assert_int_equal(record->name, spy_range_number(0, name));
	assert_int_equal(record->time, now);
}

static const struct spy_rec_range_value *expect_long(enum spy_range_what what, uint32_t name)
{
	const struct spy_rec_range_value *record =
		next_record(spy_self, SPY_EV_RANGE_VALUE, sizeof(*record));

	assert_int_equal(record->what, what);
	assert_int_equal(record->name, name);
	assert_int_equal(record->time, now);
	return record;
}

/* The name of a range, which comes before its first record: two texts, and a third one of blanks up to a whole word. */
static void expect_name(const char *in, const char *name, bool folded)
{
	size_t used = sizeof(struct spy_rec_range_name) + strlen(in) + 1 + strlen(name) + 1,
	       bytes = (used / 8 + 1) * 8;
	const struct spy_rec_range_name *record = next_record(spy_self, SPY_EV_RANGE_NAME, bytes);

	assert_int_equal(record->folded, folded);
	assert_string_equal(record->text, in);
	assert_string_equal(record->text + strlen(in) + 1, name);
	assert_int_equal(strspn((const char *)record + used, " "), bytes - used - 1);
	assert_int_equal(((const char *)record)[bytes - 1], '\0');
}

static void test_push_and_pop(void **state)
{
	(void)state;
	assert_int_equal(push("outer"), 0);
	expect_name("", "outer", false);
	expect_short(SPY_RANGE_PUSH, "outer");
	now += 5;
	assert_int_equal(push("inner"), 1);
	expect_name("", "inner", false);
	expect_short(SPY_RANGE_PUSH, "inner");
	assert_int_equal(pop(), 1);
	expect_short(SPY_RANGE_POP, "inner");
	assert_int_equal(push("inner"), 1);
	expect_short(SPY_RANGE_PUSH, "inner"); /* its name is there */
	assert_int_equal(pop(), 1);
	expect_short(SPY_RANGE_POP, "inner");
	assert_int_equal(pop(), 0);
	expect_short(SPY_RANGE_POP, "outer");
	assert_int_equal(pop(), -1);
	no_record(&thread);
	assert_int_equal(board.range_names, spy_range_names());
	assert_int_equal(board.ranges_lost + board.ranges_elsewhere, 0);
}

/* Of each length of its last word; and in a domain. */
static void test_names(void **state)
{
	char name[24] = "";
	void *one = domain("one");

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		memset(name, 'a' + (int)i, i);
		assert_int_equal(push(name), 0);
		expect_name("", name, false);
		expect_short(SPY_RANGE_PUSH, name);
		pop();
		expect_short(SPY_RANGE_POP, name);
	}
	assert_int_equal(push_in(one, "layer"), 0);
	expect_name("one", "layer", false);
	assert_int_equal(next_short()->name, spy_range_number(spy_domain_number("one"), "layer"));
	pop_in(one);
	next_short();
	no_record(&thread);
	/* Names that differ in numbers only, beyond those that are told apart. */
	use_packet(&thread, 0);
	for (int i = 0; i <= SPY_RANGE_FAMILY; i++) {
		char step[24];

		snprintf(step, sizeof(step), "step %d of many", i);
		push(step);
		expect_name("", i < SPY_RANGE_FAMILY ? step : "step # of many",
			    i == SPY_RANGE_FAMILY);
		pop();
		next_short();
		next_short();
	}
}

/* Each domain has depths of its own, and a pop ends the last one of its domain. */
static void test_domains(void **state)
{
	void *one = domain("one"), *two = domain("two");

	(void)state;
	assert_int_equal(push_in(one, "a"), 0);
	assert_int_equal(push_in(two, "b"), 0);
	assert_int_equal(push_in(one, "c"), 1);
	assert_int_equal(push("d"), 0);
	assert_int_equal(pop_in(two), 0);
	assert_int_equal(pop_in(two), -1);
	assert_int_equal(push_in(two, "e"), 0);
	assert_int_equal(pop_in(one), 1);
	assert_int_equal(pop(), 0);
	assert_int_equal(pop(), -1);
	assert_int_equal(pop_in(one), 0);
	assert_int_equal(pop_in(one), -1);
	assert_int_equal(pop_in(two), 0);
}

static void test_values(void **state)
{
	static const struct {
		int type;
		uint64_t payload;
		uint8_t shown;
		uint64_t value;
	} cases[] = {
		{SPY_PAYLOAD_U64, 0x1234567890abcdef, SPY_PAYLOAD_U64, 0x1234567890abcdef},
		{SPY_PAYLOAD_I64, UINT64_MAX, SPY_PAYLOAD_I64, UINT64_MAX},
		{SPY_PAYLOAD_DOUBLE, 0xbff0000000000000, SPY_PAYLOAD_DOUBLE, 0xbff0000000000000},
		{SPY_PAYLOAD_U32, 0xdead000000000007, SPY_PAYLOAD_U32, 7},
		{SPY_PAYLOAD_I32, 0xdead0000ffffffff, SPY_PAYLOAD_I32, 0xffffffff},
		{SPY_PAYLOAD_FLOAT, 0xdead00003f800000, SPY_PAYLOAD_FLOAT, 0x3f800000},
		{SPY_PAYLOAD_NONE, 5, SPY_PAYLOAD_NONE, 0},
		{SPY_PAYLOADS, 5, SPY_PAYLOAD_NONE, 0},
		{-1, 5, SPY_PAYLOAD_NONE, 0},
	};
	struct nvtx_attributes a = {
		.bytes = sizeof(a), .message_type = NVTX_MESSAGE_WIDE, .message.wide = L"wide"};
	uint32_t wide = spy_range_number(0, "wide");
	const struct spy_rec_range_value *record;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		a.category = 9;
		a.payload_type = cases[i].type;
		a.payload = cases[i].payload;
		CALL(void (*)(const struct nvtx_attributes *), CORE, MarkEx, &a);
		if (!i)
			expect_name("", "wide", false);
		record = expect_long(SPY_RANGE_MARK, wide);
		assert_int_equal(record->payload_type, cases[i].shown);
		assert_int_equal(record->payload, cases[i].value);
		assert_int_equal(record->category, 9);
		assert_int_equal(record->id, 0);
	}
	/* A value alone, or a category alone, is worth the long form; without both the short one does. */
	a.category = 0;
	a.payload_type = SPY_PAYLOAD_U32;
	assert_int_equal(CALL(int (*)(const struct nvtx_attributes *), CORE, RangePushEx, &a), 0);
	expect_long(SPY_RANGE_PUSH, wide);
	a.payload_type = SPY_PAYLOAD_NONE;
	assert_int_equal(CALL(int (*)(const struct nvtx_attributes *), CORE, RangePushEx, &a), 1);
	expect_short(SPY_RANGE_PUSH, "wide");
	a.category = 3;
	assert_int_equal(CALL(int (*)(const struct nvtx_attributes *), CORE, RangePushEx, &a), 2);
	assert_int_equal(expect_long(SPY_RANGE_PUSH, wide)->category, 3);
	/* What is not understood has no name, and no more of it is read. */
	a.bytes--;
	CALL(void (*)(const struct nvtx_attributes *), CORE, MarkEx, &a);
	CALL(void (*)(const struct nvtx_attributes *), CORE, MarkEx, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(next_short()->name, 0);
	no_record(&thread);
}

static void test_started(void **state)
{
	uint64_t a, b;
	const struct spy_rec_range_value *record;

	(void)state;
	a = CALL(uint64_t(*)(const char *), CORE, RangeStartA, "a");
	expect_name("", "a", false);
	record = expect_long(SPY_RANGE_START, spy_range_number(0, "a"));
	assert_int_equal(record->id, a);
	assert_int_equal(started, a);
	b = CALL(uint64_t(*)(const wchar_t *), CORE, RangeStartW, L"a");
	assert_int_equal(b, a + 1);
	record = expect_long(SPY_RANGE_START, spy_range_number(0, "a"));
	CALL(void (*)(uint64_t), CORE, RangeEnd, a);
	record = expect_long(SPY_RANGE_END, 0);
	assert_int_equal(record->id, a);
	assert_int_equal(stopped, a);
	CALL(void (*)(void *, uint64_t), CORE2, DomainRangeEnd, NULL, b);
	assert_int_equal(expect_long(SPY_RANGE_END, 0)->id, b);
	no_record(&thread);
}

/* ---- another tool ---- */

static uint64_t their_id(const char *name)
{
	return strcmp(name, "none") == 0 ? 0 : 777;
}

static int their_depth(const char *name)
{
	(void)name;
	return 42;
}

static void *their_handle(const char *name)
{
	return (void *)name;
}

static void test_other_tool(void **state)
{
	const char *theirs = "their domain";

	(void)state;
	spy_nvtx_next[NVTX_MODULE_CORE][NVTX_CORE_RangeStartA] = (nvtx_function *)their_id;
	spy_nvtx_next[NVTX_MODULE_CORE][NVTX_CORE_RangePushA] = (nvtx_function *)their_depth;
	spy_nvtx_next[NVTX_MODULE_CORE2][NVTX_CORE2_DomainCreateA] = (nvtx_function *)their_handle;
	mode = SPY_NVTX_CHAINED;
	assert_int_equal(CALL(uint64_t(*)(const char *), CORE, RangeStartA, "a"), 777);
	expect_name("", "a", false);
	assert_int_equal(expect_long(SPY_RANGE_START, spy_range_number(0, "a"))->id, 777);
	assert_int_equal(CALL(uint64_t(*)(const char *), CORE, RangeStartA, "none"), 0);
	assert_int_equal(push("a"), 42);
	expect_short(SPY_RANGE_PUSH, "a");
	assert_ptr_equal(domain(theirs), theirs);
	assert_int_equal(spy_domain_of(theirs), spy_domain_number("their domain"));
	/* It has no such function: what the program gets without us. */
	mode = SPY_NVTX_MUTE;
	assert_int_equal(push("a"), NVTX_NO_TRACKING);
	expect_short(SPY_RANGE_PUSH, "a");
	assert_int_equal(CALL(uint64_t(*)(const char *), CORE, RangeStartA, "a"), 0);
	assert_null(domain("mute"));
	no_record(&thread);
	mode = SPY_NVTX_ALONE;
	assert_null(spy_nvtx_callback(SPY_NVTX_MODULES, 1, mode));
	assert_null(spy_nvtx_callback(1, SPY_NVTX_FUNCTIONS, mode));
	pop();
	pop();
}

/* ---- a thread without a stream, and one that gets one ---- */

static void test_before_the_first_call(void **state)
{
	uint64_t since;
	const struct spy_rec_range_value *record;

	(void)state;
	spy_self = &empty;
	assert_int_equal(push("early"), 0);
	since = now;
	now += 100;
	assert_int_equal(push("over"), 1);
	assert_int_equal(pop(), 1);
	assert_int_equal(board.ranges_elsewhere, 0); /* counted in lots */
	for (int i = 4; i < AT_ONCE; i++)
		spy_range_mark(&(struct spy_said){0});
	assert_int_equal(board.ranges_elsewhere, 0);
	spy_range_mark(&(struct spy_said){0});
	assert_int_equal(board.ranges_elsewhere, AT_ONCE);
	/* The stream begins with those that are open, and since when. */
	spy_ranges_write_open(&empty);
	spy_ranges_write_open(&thread); /* another thread's */
	no_record(&thread);
	spy_self = &thread;
	now += 100;
	spy_ranges_write_open(&thread);
	expect_name("", "early", false);
	record = expect_long(SPY_RANGE_OPEN, spy_range_number(0, "early"));
	assert_int_equal(record->id, since);
	no_record(&thread);
	assert_int_equal(pop(), 0);
	expect_short(SPY_RANGE_POP, "early");
	no_record(&thread);
	/* What the begin was not recorded of has no end either. */
	spy_self = &empty;
	push("never");
	spy_self = &thread;
	assert_int_equal(pop(), 0);
	no_record(&thread);
	/* Dormant: nothing is counted. */
	spy_self = &empty;
	spy_recorded_from = SPY_DORMANT;
	for (int i = 0; i < 3 * AT_ONCE; i++) {
		push("dormant");
		pop();
	}
	assert_int_equal(board.ranges_elsewhere, AT_ONCE);
}

/* Pushed while dormant, written as open by the window's first record. */
static void test_asleep(void **state)
{
	(void)state;
	thread.asleep = true;
	thread.packet = NULL;
	gets_slot = &thread;
	push("woken");
	assert_int_equal(n_room, 1);
	expect_name("", "woken", false);
	expect_short(SPY_RANGE_PUSH, "woken");
	no_record(&thread);
	/* A window began since: what is open is said before. */
	spy_window_changes++;
	pop();
	assert_int_equal(renewed, 1);
	expect_short(SPY_RANGE_POP, "woken");
	thread.depth = 1; /* not inside a call */
	spy_window_changes++;
	push("woken");
	assert_int_equal(renewed, 1);
	thread.depth = 0;
	pop();
}

/* Ranges beyond those that are known have depths, and no records. */
static void test_deep(void **state)
{
	(void)state;
	opens = spy_range_number(0, "deep");
	for (int i = 0; i < OPEN_MOST + 3; i++)
		assert_int_equal(push("deep"), i);
	assert_int_equal(board.ranges_lost, 3);
	assert_int_equal(begun, OPEN_MOST + 3);
	assert_int_equal(ended, 3);
	expect_name("", "deep", false);
	for (int i = 0; i < OPEN_MOST; i++)
		expect_short(SPY_RANGE_PUSH, "deep");
	no_record(&thread);
	for (int i = OPEN_MOST + 3; i-- > 0;)
		assert_int_equal(pop(), i);
	for (int i = 0; i < OPEN_MOST; i++)
		expect_short(SPY_RANGE_POP, "deep");
	no_record(&thread);
	assert_int_equal(ended, OPEN_MOST + 3);
	assert_int_equal(pop(), -1);
	assert_int_equal(board.ranges_lost, 3);
}

/* ---- threads that cannot write ---- */

static void test_no_room(void **state)
{
	const size_t name_room = sizeof(struct spy_rec_range_name) + SPY_RANGE_TEXT +
				 SPY_DOMAIN_TEXT + 8,
		     bytes = name_room + sizeof(struct spy_rec_range_value);

	(void)state;
	push("room");
	/* Inside a call, up to what is kept for the calls in progress. */
	thread.depth = 1;
	thread.head = thread.end - SPY_RECORD_MAX - bytes;
	push("room");
	assert_int_equal(board.ranges_lost, 0);
	thread.head = thread.end - SPY_RECORD_MAX - bytes + 1;
	push("room");
	assert_int_equal(board.ranges_lost, 1);
	assert_int_equal(n_room, 0);
	/* Between calls a full packet is changed; the tail's file has to have that room, too. */
	thread.depth = 0;
	thread.head = thread.end - bytes + 1;
	push("room");
	assert_int_equal(n_room, 1);
	assert_int_equal(board.ranges_lost, 2);
	thread.head = thread.end - bytes;
	push("room");
	assert_int_equal(board.ranges_lost, 2);
	thread.head = thread.end - bytes;
	thread.file.room = (size_t)(thread.head - packets[0]) + bytes - 1;
	push("room");
	assert_int_equal(board.ranges_lost, 3);
	/* A signal handler inside a record in the making. */
	use_packet(&thread, 0);
	thread.reentry_frame = 1;
	push("room");
	assert_int_equal(board.ranges_lost, 4);
	assert_int_equal(thread.reentry_frame, 1);
	thread.reentry_frame = 0;
	no_record(&thread);
	/* The end of what was not recorded is not recorded. */
	assert_int_equal(pop(), 6);
	no_record(&thread);
	assert_int_equal(pop(), 5);
	no_record(&thread);
	assert_int_equal(pop(), 4);
	expect_short(SPY_RANGE_POP, "room");
}

/* ---- names in the recording ---- */

/* Once in each part; where the oldest packets are deleted, once in each packet. */
static void test_names_again(void **state)
{
	(void)state;
	push("again");
	expect_name("", "again", false);
	expect_short(SPY_RANGE_PUSH, "again");
	session.part = 2;
	push("again");
	expect_name("", "again", false);
	expect_short(SPY_RANGE_PUSH, "again");
	push("again");
	expect_short(SPY_RANGE_PUSH, "again");
	session.part = 1;
	keeps_packets = true;
	spy_ranges_begin();
	thread.packet->seq = 0;
	thread.slot = 0;
	for (int packet = 0; packet < 2; packet++) {
		thread.packet->seq = (uint64_t)packet;
		pop();
		expect_name("", "again", false);
		expect_short(SPY_RANGE_POP, "again");
	}
	thread.slot = 3; /* another stream */
	pop();
	expect_name("", "again", false);
	expect_short(SPY_RANGE_POP, "again");
	no_record(&thread);
}

static const char *object_at(size_t *from, uint16_t *what, uint64_t *object)
{
	const struct spy_rec_nvtx_name *record = (void *)(session_records + *from);

	assert_int_equal(record->head.event, SPY_EV_NVTX_NAME);
	*what = record->what;
	*object = record->object;
	assert_int_equal(record->reserved, 0);
	*from += sizeof(*record) + strlen(record->text) + 1;
	return record->text;
}

static void test_objects(void **state)
{
	void *one = domain("one");
	char longest[2 * SPY_DOMAIN_TEXT];
	uint64_t object;
	uint16_t what;
	size_t from = 0;

	(void)state;
	memset(longest, 'l', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CALL(void (*)(uint32_t, const char *), CORE, NameOsThreadA, 7, "worker");
	CALL(void (*)(void *, const wchar_t *), CUDART, NameCudaStreamW, (void *)0x77, L"copies");
	CALL(void (*)(void *, uint32_t, const char *), CORE2, DomainNameCategoryA, one, 3, "io");
	CALL(void (*)(uint32_t, const char *), CORE, NameCategoryA, 3, longest);
	CALL(void (*)(void *, uint32_t, const char *), CORE2, DomainNameCategoryA, one, 3, longest);
	CALL(void (*)(uint32_t, const char *), CORE, NameOsThreadA, 8, NULL);
	CALL(void (*)(uint32_t, const char *), CORE, NameCategoryA, 4, NULL);
	assert_string_equal(object_at(&from, &what, &object), "worker");
	assert_int_equal(what, SPY_NAMED_THREAD);
	assert_int_equal(object, 7);
	assert_string_equal(object_at(&from, &what, &object), "copies");
	assert_int_equal(what, SPY_NAMED_STREAM);
	assert_int_equal(object, 0x77);
	assert_string_equal(object_at(&from, &what, &object), "one/io");
	assert_int_equal(what, SPY_NAMED_CATEGORY);
	assert_int_equal(object, 3);
	assert_int_equal(strlen(object_at(&from, &what, &object)), SPY_DOMAIN_TEXT - 1);
	assert_int_equal(strlen(object_at(&from, &what, &object)), SPY_DOMAIN_TEXT - 1);
	assert_string_equal(object_at(&from, &what, &object), "");
	assert_string_equal(object_at(&from, &what, &object), "");
	CALL(void (*)(void *, uint32_t, const wchar_t *), CORE2, DomainNameCategoryW, one, 5,
	     L"w\u00fc");
	CALL(void (*)(int, const char *), CUDA, NameCuDeviceA, 1, "gpu");
	assert_string_equal(object_at(&from, &what, &object), "one/w\xc3\xbc");
	assert_int_equal(object, 5);
	assert_string_equal(object_at(&from, &what, &object), "gpu");
	assert_int_equal(what, SPY_NAMED_DEVICE);
	assert_int_equal(from, session_bytes);
}

/* A session to come has the last name of each, as far as they are remembered. */
static void test_remembered(void **state)
{
	char text[SPY_DOMAIN_TEXT];
	uint64_t object;
	uint16_t what;
	size_t from = 0, n = 0;
	bool known = false;

	(void)state;
	session.state = SPY_SESSION_NONE;
	spy_range_name_object(SPY_NAMED_STREAM, 5000, "before");
	spy_range_name_object(SPY_NAMED_STREAM, 5000, "after");
	spy_range_name_object(SPY_NAMED_EVENT, 5000, "an event");
	for (uint64_t i = 0; i < 2 * OBJECTS_MOST; i++)
		spy_range_name_object(SPY_NAMED_CONTEXT, i, "many");
	spy_range_name_object(SPY_NAMED_EVENT, 5000, "the event");
	assert_int_equal(session_bytes, 0);
	session.state = SPY_SESSION_ACTIVE;
	spy_ranges_begin();
	while (from < session_bytes) {
		snprintf(text, sizeof(text), "%s", object_at(&from, &what, &object));
		n++;
		assert_string_not_equal(text, "before");
		assert_string_not_equal(text, "an event");
		if (object == 5000)
			assert_string_equal(text, what == SPY_NAMED_STREAM ? "after" : "the event");
		known |= what == SPY_NAMED_STREAM && object == 5000;
	}
	assert_int_equal(n, OBJECTS_MOST);
	assert_true(known);
}

/* ---- windows, a forked child ---- */

static void test_windows(void **state)
{
	(void)state;
	opens = spy_range_number(0, "opens");
	push("opens");
	push("inner");
	push("opens");
	assert_int_equal(begun, 2);
	pop();
	assert_int_equal(ended, 1);
	pop();
	assert_int_equal(ended, 1);
	pop();
	assert_int_equal(ended, 2);
}

/* What the parent recorded is not in the child's trace, and its windows are not the child's. */
static void test_fork(void **state)
{
	(void)state;
	opens = spy_range_number(0, "parent's");
	push("parent's");
	spy_self = &empty;
	spy_range_mark(&(struct spy_said){0});
	spy_self = &thread;
	thread.reentry_frame = 1;
	push("lost");
	thread.reentry_frame = 0;
	spy_ranges_forked();
	spy_ranges_count();
	assert_int_equal(board.ranges_lost, 0);
	use_packet(&thread, 0);
	assert_int_equal(pop(), 1);
	assert_int_equal(pop(), 0);
	no_record(&thread);
	assert_int_equal(ended, 0);
	/* And counts from the beginning. */
	spy_self = &empty;
	for (int i = 1; i < AT_ONCE; i++)
		spy_range_mark(&(struct spy_said){0});
	assert_int_equal(board.ranges_elsewhere, 0);
	spy_range_mark(&(struct spy_said){0});
	assert_int_equal(board.ranges_elsewhere, AT_ONCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_push_and_pop, begin),
		cmocka_unit_test_setup(test_names, begin),
		cmocka_unit_test_setup(test_domains, begin),
		cmocka_unit_test_setup(test_values, begin),
		cmocka_unit_test_setup(test_started, begin),
		cmocka_unit_test_setup(test_other_tool, begin),
		cmocka_unit_test_setup(test_before_the_first_call, begin),
		cmocka_unit_test_setup(test_asleep, begin),
		cmocka_unit_test_setup(test_deep, begin),
		cmocka_unit_test_setup(test_no_room, begin),
		cmocka_unit_test_setup(test_names_again, begin),
		cmocka_unit_test_setup(test_objects, begin),
		cmocka_unit_test_setup(test_remembered, begin),
		cmocka_unit_test_setup(test_windows, begin),
		cmocka_unit_test_setup(test_fork, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
