/* links: shim/nccl/operations.c shim/nccl/pairs.c shim/nccl/profiler.c shim/nccl/words.c shim/lib/lock.c */
/*
 * tests/unit/test_nccl_operations.c: NCCL's calls of the profiler interface, made by hand, and the records that come of
 * them: every field, operations whose channels end in any order, too few or never, handles that come back late, full
 * tables, threads that cannot write, a forked child, and how often NCCL is asked for channels.
 */
#include <sys/syscall.h>
#include <unistd.h>
#include "thread_stubs.h"
#include "hook/loader.h"
#include "nccl/nccl_layout.h"
#include "nccl/operations.h"
#include "nccl/profiler.h"
#include "nccl/words.h"
#include "stack/stack.h"

#define MOST 4096 /* operations.c: communicators, operations */

/* ---- the rest of the shim ---- */

static uint64_t place;

void spy_stack_place(struct spy_thread *of, const struct spy_unwind *from, uint64_t where,
		     uint64_t at)
{
	assert_ptr_equal(of, spy_self);
	assert_int_equal(of->reentry_frame != 0, 1);
	assert_true(from->ip != 0);
	assert_int_equal(at, now);
	place = where;
}

/* A program's own table of a version; or none. */
static const void *global_symbol, *next_symbol;

void *(*spy_real_dlsym)(void *handle, const char *name);

static void *look_up(void *handle, const char *name)
{
	return strcmp(name, "ncclProfiler_v5") != 0
		       ? NULL
		       : (void *)(handle ? next_symbol : global_symbol);
}

/* ---- NCCL ---- */

#define TABLE(version) extern const struct nccl_profiler ncclProfiler_v##version
TABLE(1);
TABLE(2);
TABLE(3);
TABLE(4);
TABLE(5);
TABLE(6);
TABLE(7);

static const struct nccl_profiler *const interfaces[] = {NULL,
							 &ncclProfiler_v1,
							 &ncclProfiler_v2,
							 &ncclProfiler_v3,
							 &ncclProfiler_v4,
							 &ncclProfiler_v5,
							 &ncclProfiler_v6,
							 &ncclProfiler_v7};

static int mask; /* events that it is asked for */
static const struct nccl_profiler *nccl;
static int version;

static void *new_comm(void)
{
	void *context = &mask;
	int ok;

	if (version < 4)
		ok = nccl->init_1(&context, &mask);
	else if (version < 5)
		ok = nccl->init_4(&context, &mask, "a group", 0xfeed, 2, 8, 3, NULL);
	else
		ok = nccl->init_5(&context, 0xfeed, &mask, "a group", 2, 8, 3, NULL);
	assert_int_equal(ok, NCCL_SUCCESS);
	return context;
}

static void *start(void *context, const struct nccl_descriptor *event)
{
	void *handle = &mask;

	assert_int_equal(nccl->start(context, &handle, event), NCCL_SUCCESS);
	return handle;
}

static void *submit(void *context, uint64_t seq, uint8_t channels)
{
	struct nccl_descriptor event = {.head.type = NCCL_EVENT_COLLECTIVE, .head.rank = 3};

	if (version == 3)
		event.collective_3 = (struct nccl_collective_3){.name = "old",
								.hash = 77,
								.seq = seq,
								.func = "AllReduce",
								.count = 100,
								.datatype = "ncclFloat16",
								.channels = channels};
	else
		event.collective_4 = (struct nccl_collective_4){.seq = seq,
								.func = "AllReduce",
								.count = 100,
								.root = 5,
								.datatype = "ncclFloat16",
								.channels = channels,
								.algorithm = "TREE",
								.protocol = "LL128"};
	return start(context, &event);
}

static void *channel(void *operation, uint64_t timer)
{
	struct nccl_descriptor event = {.head = {.type = NCCL_EVENT_CHANNEL, .parent = operation},
					.channel_4.timer = timer};

	return start(NULL, &event);
}

static void stop(void *handle)
{
	assert_int_equal(nccl->stop(handle), NCCL_SUCCESS);
}

static void end_channel(void *handle, uint64_t timer)
{
	nccl->record(handle, NCCL_STATE_CHANNEL_STOP, &(union nccl_state){.timer = timer});
	stop(handle);
}

static void capture(void *context, bool captured)
{
	struct nccl_descriptor event = {.head.type = NCCL_EVENT_COLLECTIVE_CALL,
					.collective_call_5.captured = captured};

	start(context, &event);
}

/* ---- a process ---- */

static int begin(void **state)
{
	(void)state;
	spy_nccl_forked();
	begin_session();
	spy_real_dlsym = look_up;
	spy_nccl_serving = true;
	thread.device = 2 + 1;
	version = 5;
	nccl = interfaces[version];
	return 0;
}

static const struct spy_rec_collective *next_collective(void)
{
	return next_record(&thread, SPY_EV_COLLECTIVE, sizeof(struct spy_rec_collective));
}

static const struct spy_rec_collective_ran *next_ran(void)
{
	return next_record(spy_self, SPY_EV_COLLECTIVE_RAN, sizeof(struct spy_rec_collective_ran));
}

/* ---- records ---- */

static void test_communicator(void **state)
{
	const struct spy_rec_nccl_state *said = (void *)session_records;
	const struct spy_rec_nccl_comm *comm = (void *)(said + 1);
	void *first, *second;

	(void)state;
	first = new_comm();
	assert_int_equal(session_bytes, sizeof(*said) + sizeof(*comm));
	assert_int_equal(said->head.event, SPY_EV_NCCL_STATE);
	assert_int_equal(said->state, SPY_NCCL_ON);
	assert_int_equal(said->reserved, 0);
	assert_string_equal(said->text, "interface 5");
	assert_int_equal(comm->head.event, SPY_EV_NCCL_COMM);
	assert_int_equal(comm->interface, 5);
	assert_int_equal(comm->hash, 0xfeed);
	assert_int_equal(comm->rank, 3);
	assert_int_equal(comm->ranks, 8);
	assert_int_equal(comm->nodes, 2);
	assert_int_equal(comm->tid, syscall(SYS_gettid));
	assert_int_equal(comm->device, 2);
	assert_memory_equal(comm->reserved, "\0\0\0\0\0\0", 7);
	assert_string_equal(comm->name, "a group");
	second = new_comm();
	/* That it serves NCCL is said once. */
	assert_int_equal(session_bytes, sizeof(*said) + 2 * sizeof(*comm));
	assert_int_equal(comm[1].comm, comm->comm + 1);
	nccl->finalize(first);
	nccl->finalize(second);
	assert_int_equal(session_bytes, sizeof(*said) + 2 * sizeof(*comm));
}

/* Which events each version has. */
static void test_events_asked_for(void **state)
{
	(void)state;
	for (version = 1; version <= NCCL_INTERFACES; version++) {
		void *context;

		nccl = interfaces[version];
		assert_string_equal(nccl->name, "cudaspy");
		context = new_comm();
		assert_int_equal(mask, NCCL_EVENT_COLLECTIVE | NCCL_EVENT_P2P |
					       (version >= 3 ? NCCL_EVENT_CHANNEL : 0) |
					       (version >= 6 ? NCCL_EVENT_COPIES : 0));
		nccl->finalize(context);
	}
}

/* Interfaces 1 to 3: what a communicator is, its first operation says. */
static void test_late_communicator(void **state)
{
	const struct spy_rec_nccl_comm *comm =
		(void *)(session_records + sizeof(struct spy_rec_nccl_state));
	void *context;

	(void)state;
	version = 3;
	nccl = interfaces[version];
	context = new_comm();
	assert_int_equal(session_bytes, 0);
	submit(context, 1, 1);
	assert_int_equal(session_bytes, sizeof(struct spy_rec_nccl_state) + sizeof(*comm));
	assert_int_equal(comm->hash, 77);
	assert_int_equal(comm->rank, 3);
	assert_int_equal(comm->ranks, 0);
	assert_string_equal(comm->name, "old");
	submit(context, 2, 1);
	assert_int_equal(session_bytes, sizeof(struct spy_rec_nccl_state) + sizeof(*comm));
	nccl->finalize(context);
}

static void test_operation(void **state)
{
	void *context = new_comm(), *operation, *channels[2];
	const struct spy_rec_nccl_comm *comm =
		(void *)(session_records + sizeof(struct spy_rec_nccl_state));
	const struct spy_rec_collective *said;
	const struct spy_rec_collective_ran *ran;
	uint64_t submitted = now, began;

	(void)state;
	operation = submit(context, 9, 2);
	assert_non_null(operation);
	said = next_collective();
	no_record(&thread);
	assert_int_equal(said->time, submitted);
	assert_int_equal(said->func, SPY_NCCL_ALL_REDUCE);
	assert_int_equal(said->flags, SPY_COLLECTIVE_RUN_FOLLOWS);
	assert_int_equal(said->comm, comm->comm);
	assert_int_equal(said->seq, 9);
	assert_int_equal(said->count, 100);
	assert_int_not_equal(said->id, 0);
	assert_int_equal(said->peer, 5);
	assert_int_equal(said->bytes_each, 2);
	assert_int_equal(said->algorithm, SPY_NCCL_TREE);
	assert_int_equal(said->protocol, SPY_NCCL_LL128);
	assert_int_equal(said->channels, 2);
	/* A call site: the communicator, the size within a factor of two, the function. */
	assert_int_equal(place,
			 (uint64_t)comm->comm << 24 | 7 << 16 | SPY_NCCL_ALL_REDUCE << 8 | 0xff);

	/* On NCCL's thread: the first one that began, the last one that ended, in whatever order that is said. */
	use_packet(&other_thread, 1);
	spy_self = &other_thread;
	now += 10;
	began = now;
	channels[0] = channel(operation, 9100);
	now += 10;
	channels[1] = channel(operation, 9000);
	end_channel(channels[1], 9900);
	now += 10;
	end_channel(channels[0], 9800);
	no_record(&other_thread); /* it is not yet said that the submission is done */
	now += 10;
	stop(operation);
	ran = next_ran();
	no_record(&other_thread);
	assert_int_equal(ran->time, now);
	assert_int_equal(ran->channels, 2);
	assert_int_equal(ran->comm, comm->comm);
	assert_int_equal(ran->id, said->id);
	assert_int_equal(ran->begin_ns, 9000);
	assert_int_equal(ran->end_ns, 9900);
	assert_int_equal(ran->seen, began);
	/* It is over: its handles are none. */
	assert_null(channel(operation, 1));
	stop(operation);
	end_channel(channels[0], 5);
	read_at = sizeof(*ran);
	no_record(&other_thread);
	spy_self = &thread;
	nccl->finalize(context);
	assert_int_equal(board.collectives_lost + board.collectives_unfollowed, 0);
}

/* The submission is done first, as usual; the last channel's end writes the record. A time of 0 is none. */
static void test_handed_over_first(void **state)
{
	void *context = new_comm(), *operation = submit(context, 1, 2), *first, *second;
	const struct spy_rec_collective_ran *ran;

	(void)state;
	read_at = sizeof(struct spy_rec_collective);
	stop(operation);
	first = channel(operation, 0);
	end_channel(first, 0);
	stop(first); /* twice is once */
	second = channel(operation, 70);
	assert_ptr_equal(second, first);
	nccl->record(second, NCCL_STATE_CHANNEL_STOP + 1, &(union nccl_state){.timer = 99});
	nccl->record(second, NCCL_STATE_CHANNEL_STOP, NULL);
	end_channel(second, 80);
	ran = next_ran();
	assert_int_equal(ran->begin_ns, 70);
	assert_int_equal(ran->end_ns, 80);
	assert_int_equal(ran->channels, 2);
	no_record(&thread);
	nccl->finalize(context);
}

static void test_sizes_of_a_place(void **state)
{
	static const struct {
		uint64_t count;
		unsigned int size;
	} cases[] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {UINT64_MAX, 64}};
	void *context = new_comm();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct nccl_descriptor event = {
			.head.type = NCCL_EVENT_COLLECTIVE,
			.collective_4 = {.func = "Reduce", .count = cases[i].count}};

		start(context, &event);
		assert_int_equal(place >> 16 & 0xff, cases[i].size);
		assert_int_equal(place >> 8 & 0xff, SPY_NCCL_REDUCE);
	}
	nccl->finalize(context);
}

/* ---- fewer channels than were said; none at all ---- */

/* Swept as soon as nothing of it has happened for a tenth of a second, by the end of another operation's channel. */
static void test_fewer_channels(void **state)
{
	void *context = new_comm(), *fewer = submit(context, 1, 3), *open = submit(context, 2, 3),
	     *early = submit(context, 3, 3), *other;
	uint32_t id = next_collective()->id;
	const struct spy_rec_collective_ran *ran;

	(void)state;
	next_collective();
	next_collective();
	no_record(&thread);
	stop(fewer);
	end_channel(channel(fewer, 10), 20);
	/* Of these two there is still something to come: a channel's end, the end of the submission. */
	stop(open);
	end_channel(channel(open, 1), 2);
	channel(open, 3);
	end_channel(channel(early, 1), 2);

	use_packet(&thread, 0);
	other = submit(context, 4, 2);
	stop(other);
	read_at = sizeof(struct spy_rec_collective);
	now += 100 * MS - 1;
	end_channel(channel(other, 1), 2);
	no_record(&thread);
	read_at = sizeof(struct spy_rec_collective);
	now += 100 * MS;
	end_channel(channel(other, 1), 2);
	/* Complete itself; then the one that is swept. */
	ran = next_ran();
	assert_int_equal(ran->channels, 2);
	ran = next_ran();
	assert_int_equal(ran->id, id);
	assert_int_equal(ran->channels, 1);
	assert_int_equal(ran->begin_ns, 10);
	assert_int_equal(ran->end_ns, 20);
	no_record(&thread);
	assert_null(channel(fewer, 1));
	assert_non_null(channel(open, 1));
	assert_non_null(channel(early, 1));
	/* What is never said is forgotten with the communicator; what there was of it is written. */
	use_packet(&thread, 0);
	nccl->finalize(context);
	assert_int_equal(next_ran()->channels, 1);
	assert_int_equal(next_ran()->channels, 1);
	no_record(&thread);
	assert_null(channel(open, 1));
}

/* Those of one communicator, and no other's; without any channel there is no record. */
static void test_end_of_communicator(void **state)
{
	void *one = new_comm(), *two = new_comm(), *of_one = submit(one, 1, 1),
	     *of_two = submit(two, 1, 1);

	(void)state;
	read_at = 2 * sizeof(struct spy_rec_collective);
	nccl->finalize(one);
	no_record(&thread);
	assert_null(channel(of_one, 1));
	stop(of_two);
	assert_non_null(channel(of_two, 1));
	/* Its handle is none any more, and another one in its place has another number. */
	assert_null(submit(one, 2, 1));
	nccl->finalize(one);
	assert_ptr_not_equal(new_comm(), one);
	assert_null(submit(one, 2, 1));
	nccl->finalize(two);
}

/* At the end of the session what has run is written, but for what still runs. */
static void test_end_of_session(void **state)
{
	void *context = new_comm(), *ended = submit(context, 1, 4), *runs = submit(context, 2, 4),
	     *none = submit(context, 3, 4);

	(void)state;
	stop(ended);
	end_channel(channel(ended, 1), 2);
	stop(runs);
	channel(runs, 1);
	stop(none);
	now += 1000 * MS;
	use_packet(&thread, 0);
	spy_nccl_end();
	assert_int_equal(next_ran()->end_ns, 2);
	no_record(&thread);
	assert_non_null(channel(runs, 1));
	nccl->finalize(context);
}

/* ---- full tables ---- */

static void test_full(void **state)
{
	void *context = new_comm(), *first = NULL, *last = NULL;

	(void)state;
	for (int i = 0; i < MOST; i++) {
		use_packet(&thread, 0);
		last = submit(context, 1, 1);
		assert_non_null(last);
		first = first ?: last;
		stop(last);
	}
	assert_int_equal(board.collectives_unfollowed, 0);
	use_packet(&thread, 0);
	assert_null(submit(context, 1, 1));
	assert_int_equal(next_collective()->flags, 0);
	assert_int_equal(board.collectives_unfollowed, 1);
	/* One that ends gives its place to the next. */
	end_channel(channel(first, 1), 2);
	assert_non_null(submit(context, 1, 1));
	assert_null(submit(context, 1, 1));
	/* Without any channel they are forgotten after a minute, not before. */
	now += 59999 * MS;
	assert_null(submit(context, 1, 1));
	assert_int_equal(board.collectives_unfollowed, 3);
	now += 101 * MS;
	assert_non_null(submit(context, 1, 1));
	for (int i = 1; i < MOST - 1; i++) {
		use_packet(&thread, 0);
		assert_non_null(submit(context, 1, 1));
	}
	assert_null(channel(last, 1));
	assert_int_equal(board.collectives_lost, 0);
	nccl->finalize(context);
}

static void test_many_communicators(void **state)
{
	static void *contexts[MOST];
	void *mark;

	(void)state;
	for (int i = 0; i < MOST; i++) {
		contexts[i] = new_comm();
		session_bytes = 0;
	}
	mark = new_comm();
	/* Not known, and no error: its operations have no records. */
	assert_int_equal(session_bytes, 0);
	assert_non_null(mark);
	assert_null(submit(mark, 1, 1));
	no_record(&thread);
	assert_non_null(submit(contexts[MOST - 1], 1, 1));
	nccl->finalize(mark);
	nccl->finalize(contexts[7]);
	contexts[7] = new_comm();
	assert_non_null(submit(contexts[7], 1, 1));
	assert_null(submit(new_comm(), 1, 1));
	for (int i = 0; i < MOST; i++)
		nccl->finalize(contexts[i]);
}

/* ---- threads that cannot write ---- */

static void test_not_recorded(void **state)
{
	void *context = new_comm(), *operation;

	(void)state;
	spy_recorded_from = SPY_DORMANT;
	assert_null(submit(context, 1, 1));
	spy_recorded_from = SPY_RECORDED;
	no_record(&thread);
	assert_int_equal(board.collectives_lost, 0);

	thread.reentry_frame = 1; /* a signal handler, inside a record in the making */
	assert_null(submit(context, 1, 1));
	assert_int_equal(board.collectives_lost, 1);
	thread.reentry_frame = 0;
	no_record(&thread);

	/* Inside a call room is kept for the calls in progress, and no packet is changed. */
	thread.depth = 1;
	thread.head = thread.end - SPY_RECORD_MAX - sizeof(struct spy_rec_collective) + 1;
	assert_null(submit(context, 1, 1));
	assert_int_equal(board.collectives_lost, 2);
	assert_int_equal(n_room, 0);
	thread.head--;
	operation = submit(context, 1, 1);
	assert_non_null(operation);

	/* Between calls room is looked for. */
	thread.depth = 0;
	thread.head = spy_thread_limit(&thread);
	operation = submit(context, 1, 1);
	assert_non_null(operation);
	assert_int_equal(n_room, 1);
	thread.head = thread.end;
	stop(operation);
	end_channel(channel(operation, 1), 2);
	assert_int_equal(n_room, 2);
	assert_int_equal(board.collectives_lost, 3);
	/* A time that is not to be recorded is no loss. */
	use_packet(&thread, 0);
	operation = submit(context, 1, 1);
	stop(operation);
	spy_recorded_from = SPY_DORMANT;
	end_channel(channel(operation, 1), 2);
	assert_int_equal(board.collectives_lost, 3);
	spy_recorded_from = SPY_RECORDED;

	/* None at all: a session that is over. */
	session.state = SPY_SESSION_FAILED;
	assert_null(submit(context, 1, 1));
	nccl->finalize(context);
	assert_null(new_comm());
	assert_int_equal(mask, 0);
}

/* A thread of the driver's launches a graph: until interface 4 nothing else says so. */
static void test_first_record_of_a_thread(void **state)
{
	static const struct {
		int version;
		uint8_t flags;
	} cases[] = {{5, SPY_COLLECTIVE_RUN_FOLLOWS}, {4, SPY_COLLECTIVE_GRAPH}};

	for (size_t i = 0; i < 2; i++) {
		void *context;

		begin(state);
		version = cases[i].version;
		nccl = interfaces[version];
		context = new_comm();
		gets_slot = &other_thread;
		for (int n = 0; n < 2; n++) {
			if (!n)
				spy_self = &empty;
			assert_int_equal(submit(context, 1, 1) != NULL, version == 5);
			assert_ptr_equal(spy_self, &other_thread);
		}
		for (int n = 0; n < 2; n++)
			assert_int_equal(((const struct spy_rec_collective *)next_record(
						  &other_thread, SPY_EV_COLLECTIVE,
						  sizeof(struct spy_rec_collective)))
						 ->flags,
					 cases[i].flags);
		no_record(&other_thread);
		spy_self = &thread;
		nccl->finalize(context);
	}
}

/* ---- a forked child ---- */

static void test_fork(void **state)
{
	void *context = new_comm(), *operation = submit(context, 1, 1), *theirs;

	(void)state;
	assert_true(spy_nccl_comms_hold());
	spy_nccl_forked();
	spy_nccl_comms_let_go();
	session.pid = -1;
	session_bytes = 0;
	use_packet(&thread, 0);
	assert_null(channel(operation, 1));
	assert_null(submit(context, 2, 1));
	no_record(&thread);
	theirs = new_comm();
	assert_int_equal(session_bytes,
			 sizeof(struct spy_rec_nccl_state) + sizeof(struct spy_rec_nccl_comm));
	assert_non_null(submit(theirs, 1, 1));
	nccl->finalize(theirs);
}

/* ---- other events ---- */

static void test_events(void **state)
{
	void *context = new_comm(), *group, *captured;
	const struct spy_rec_collective *said;
	struct nccl_descriptor event = {.head.type = NCCL_EVENT_GROUP};

	(void)state;
	group = start(context, &event);
	assert_non_null(group);
	assert_null(channel(group, 1));
	stop(group);
	event.head.type = 1 << 20;
	assert_null(start(context, &event));

	/* Sends are numbered, by peer and direction; of a captured call they are the graph's. */
	event = (struct nccl_descriptor){.head.type = NCCL_EVENT_P2P_CALL,
					 .p2p_call_5.captured = true};
	captured = start(context, &event);
	assert_non_null(captured);
	assert_ptr_not_equal(captured, group);
	for (int i = 0; i < 4; i++) {
		event = (struct nccl_descriptor){
			.head = {.type = NCCL_EVENT_P2P, .parent = i ? group : captured},
			.p2p_4 = {.func = i == 3 ? "Recv" : "Send",
				  .datatype = "ncclInt64",
				  .count = 6,
				  .peer = 4,
				  .channels = 1}};
		assert_int_equal(start(context, &event) != NULL, i > 0);
		said = next_collective();
		assert_int_equal(said->func, i == 3 ? SPY_NCCL_RECV : SPY_NCCL_SEND);
		assert_int_equal(said->seq, i == 3 ? 1 : i + 1);
		assert_int_equal(said->bytes_each, 8);
		assert_int_equal(said->count, 6);
		assert_int_equal(said->peer, 4);
		assert_int_equal(said->channels, 1);
		assert_int_equal(said->flags,
				 i ? SPY_COLLECTIVE_RUN_FOLLOWS : SPY_COLLECTIVE_GRAPH);
	}
	/* Copies have no kernel that could be followed. */
	event = (struct nccl_descriptor){.head.type = NCCL_EVENT_COPIES,
					 .copies_6 = {.seq = 12,
						      .func = "AllGather",
						      .count = 3,
						      .root = 1,
						      .datatype = "ncclInt8"}};
	assert_null(start(context, &event));
	said = next_collective();
	assert_int_equal(said->func, SPY_NCCL_ALL_GATHER);
	assert_int_equal(said->seq, 12);
	assert_int_equal(said->count, 3);
	assert_int_equal(said->peer, 1);
	assert_int_equal(said->bytes_each, 1);
	assert_int_equal(said->flags, SPY_COLLECTIVE_COPIES);
	no_record(&thread);
	/* An event that is no call's is not captured. */
	event = (struct nccl_descriptor){.head.type = NCCL_EVENT_COLLECTIVE_CALL};
	assert_null(start(context, &event));
	nccl->finalize(context);
}

/* ---- how often NCCL is asked for channels ---- */

static bool asks_for_channels(void)
{
	return mask & NCCL_EVENT_CHANNEL;
}

/* So many operations, one in each `each` ns: of how many were channels asked for, and times followed? */
static int paced(void *context, int n, uint64_t each)
{
	int asked = 0;

	for (int i = 0; i < n; i++) {
		void *operation;

		use_packet(&thread, 0);
		now += each;
		asked += asks_for_channels();
		operation = submit(context, 1, 1);
		stop(operation);
		stop(channel(operation, 1));
	}
	return asked;
}

#define BLOCK 64 /* operations.c */

static void test_pace(void **state)
{
	void *context;

	(void)state;
	context = new_comm();
	assert_int_equal(mask, NCCL_EVENT_COLLECTIVE | NCCL_EVENT_P2P | NCCL_EVENT_CHANNEL);
	/* As slow as that: all. */
	paced(context, 64 * BLOCK, 600000);
	assert_int_equal(paced(context, 64 * BLOCK, 600000), 64 * BLOCK);
	/* One block in two, in eight, in 64 at least. */
	paced(context, 64 * BLOCK, 400000);
	assert_int_equal(paced(context, 64 * BLOCK, 400000), 32 * BLOCK);
	paced(context, 64 * BLOCK, 63000);
	assert_int_equal(paced(context, 64 * BLOCK, 63000), 8 * BLOCK);
	paced(context, 64 * BLOCK, 1000);
	assert_int_equal(paced(context, 64 * BLOCK, 1000), BLOCK);
	/* And all again. */
	paced(context, 64 * BLOCK, 600000);
	assert_true(asks_for_channels());
	nccl->finalize(context);
}

/* Of a graph's operations one is asked for, the fourth or the one before, and none of those that are captured behind. */
static void test_captured(void **state)
{
	static const bool asked[] = {false, false, true, false, false, false};
	void *context = new_comm();

	(void)state;
	for (int graph = 0; graph < 2; graph++) {
		assert_true(asks_for_channels());
		spy_nccl_capture_began();
		assert_false(asks_for_channels());
		for (size_t i = 0; i < sizeof(asked); i++) {
			capture(context, true);
			assert_int_equal(asks_for_channels(), asked[i]);
		}
		capture(context, false);
	}
	assert_true(asks_for_channels());
	/* A capture without NCCL's operations. */
	spy_nccl_capture_began();
	capture(context, false);
	assert_true(asks_for_channels());
	/* A second graph counts anew, though nothing was submitted in between. */
	for (int graph = 0; graph < 2; graph++) {
		spy_nccl_capture_began();
		for (size_t i = 0; i < 3; i++)
			capture(context, true);
		assert_true(asks_for_channels());
	}
	nccl->finalize(context);
	/* The set is gone with the last communicator. */
	mask = 0;
	spy_nccl_capture_began();
	assert_int_equal(mask, 0);
	spy_nccl_comms_let_go();
}

/* While a communicator begins or ends the set of events is not touched: the library may be about to go. */
static void test_capture_without_communicators(void **state)
{
	void *context = new_comm(), *other;

	(void)state;
	assert_true(spy_nccl_comms_hold());
	spy_nccl_capture_began();
	assert_true(asks_for_channels());
	spy_nccl_comms_let_go();
	other = new_comm();
	nccl->finalize(context);
	spy_nccl_capture_began();
	assert_false(asks_for_channels());
	/* It was let go of. */
	assert_true(spy_nccl_comms_hold());
	spy_nccl_comms_let_go();
	nccl->finalize(other);
}

/* ---- who serves NCCL ---- */

static void test_others(void **state)
{
	static const struct nccl_profiler theirs;
	void *context = &mask;

	(void)state;
	assert_false(spy_nccl_has_other());
	global_symbol = &ncclProfiler_v5;
	assert_false(spy_nccl_has_other());
	global_symbol = &theirs;
	assert_true(spy_nccl_has_other());
	global_symbol = &ncclProfiler_v5;
	next_symbol = &theirs;
	assert_true(spy_nccl_has_other());
	/* Ours is found while it serves; else the one behind it. */
	assert_ptr_equal(spy_nccl_look_up("ncclProfiler_v5", (void *)&ncclProfiler_v5),
			 &ncclProfiler_v5);
	spy_nccl_serving = false;
	assert_ptr_equal(spy_nccl_look_up("ncclProfiler_v5", (void *)&ncclProfiler_v5), &theirs);
	assert_ptr_equal(spy_nccl_look_up("ncclProfiler_v5", &mask), &mask);
	assert_null(spy_nccl_look_up("ncclProfiler_v5", NULL));
	next_symbol = NULL;
	mask = 99;
	assert_int_equal(nccl->init_5(&context, 1, &mask, NULL, 1, 1, 0, NULL), NCCL_SUCCESS);
	assert_null(context);
	assert_int_equal(mask, 0);
	assert_int_equal(session_bytes, 0);
	global_symbol = NULL;
}

static void test_state(void **state)
{
	const struct spy_rec_nccl_state *said = (void *)session_records;
	char longest[200];

	(void)state;
	spy_nccl_begin();
	assert_int_equal(session_bytes, 0); /* on: the first communicator says it */
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	spy_nccl_state(SPY_NCCL_TAKEN, longest);
	spy_nccl_begin();
	assert_int_equal(session_bytes, sizeof(*said));
	assert_int_equal(said->state, SPY_NCCL_TAKEN);
	assert_int_equal(strlen(said->text), sizeof(said->text) - 1);
	spy_nccl_state(SPY_NCCL_ON, "");
}

/* ---- words ---- */

static void test_words(void **state)
{
	static const struct {
		const char *name;
		uint8_t value;
	} datatypes[] = {{"ncclInt8", 1},     {"ncclUint8", 1},      {"ncclInt32", 4},
			 {"ncclUint32", 4},   {"ncclInt64", 8},      {"ncclUint64", 8},
			 {"ncclFloat16", 2},  {"ncclFloat32", 4},    {"ncclFloat64", 8},
			 {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};

	(void)state;
	for (unsigned int i = 0; i < 12; i++) {
		assert_int_equal(spy_nccl_bytes_named(datatypes[i].name), datatypes[i].value);
		assert_int_equal(spy_nccl_bytes_numbered(i), i < 10 ? datatypes[i].value : 0);
	}
	assert_int_equal(spy_nccl_bytes_named("ncclFloat"), 0);
	assert_int_equal(spy_nccl_bytes_named(NULL), 0);
	assert_int_equal(spy_nccl_func_named("AllReduce2"), SPY_NCCL_OTHER);
	assert_int_equal(spy_nccl_func_numbered(0), SPY_NCCL_BROADCAST);
	assert_int_equal(spy_nccl_func_numbered(7), SPY_NCCL_RECV);
	assert_int_equal(spy_nccl_func_numbered(8), SPY_NCCL_OTHER);
	assert_int_equal(spy_nccl_algorithm_numbered(6), SPY_NCCL_PAT);
	assert_int_equal(spy_nccl_algorithm_numbered(7), SPY_NCCL_ALGORITHM_UNKNOWN);
	assert_int_equal(spy_nccl_algorithm_named("COLLNET_CHAIN"), SPY_NCCL_COLLNET_CHAIN);
	assert_int_equal(spy_nccl_protocol_numbered(2), SPY_NCCL_SIMPLE);
	assert_int_equal(spy_nccl_protocol_numbered(3), SPY_NCCL_PROTOCOL_UNKNOWN);
	assert_int_equal(spy_nccl_protocol_named("LL"), SPY_NCCL_LL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_communicator, begin),
		cmocka_unit_test_setup(test_events_asked_for, begin),
		cmocka_unit_test_setup(test_late_communicator, begin),
		cmocka_unit_test_setup(test_operation, begin),
		cmocka_unit_test_setup(test_handed_over_first, begin),
		cmocka_unit_test_setup(test_sizes_of_a_place, begin),
		cmocka_unit_test_setup(test_fewer_channels, begin),
		cmocka_unit_test_setup(test_end_of_communicator, begin),
		cmocka_unit_test_setup(test_end_of_session, begin),
		cmocka_unit_test_setup(test_full, begin),
		cmocka_unit_test_setup(test_many_communicators, begin),
		cmocka_unit_test_setup(test_not_recorded, begin),
		cmocka_unit_test_setup(test_first_record_of_a_thread, begin),
		cmocka_unit_test_setup(test_fork, begin),
		cmocka_unit_test_setup(test_events, begin),
		cmocka_unit_test_setup(test_pace, begin),
		cmocka_unit_test_setup(test_captured, begin),
		cmocka_unit_test_setup(test_capture_without_communicators, begin),
		cmocka_unit_test_setup(test_others, begin),
		cmocka_unit_test_setup(test_state, begin),
		cmocka_unit_test_setup(test_words, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
