/*
 * tests/unit/test_nccl_layout.c: NCCL's profiler interface as shim/nccl declares it, beside the shapes of its published
 * versions. Simple structs, in the order of the fields; what a field is called there does not matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "nccl/nccl_layout.h"

/* clang-format off */
struct coll_1 {
	const char *name; uint64_t hash, seq; uint8_t func; const void *send; void *receive; size_t count; int root;
	uint8_t datatype; uint32_t op; size_t traffic; uint8_t channels, warps, algorithm, protocol; int collnet, nvls;
};
struct p2p_1 {
	const char *name; uint64_t hash; uint8_t func; void *buffer; uint8_t datatype; size_t count; int peer;
};
struct coll_2 {
	const char *name; uint64_t hash, seq; const char *func; const void *send; void *receive; size_t count; int root;
	const char *datatype; size_t traffic; uint8_t channels, warps; const char *algorithm, *protocol;
};
struct p2p_2 {
	const char *name; uint64_t hash; const char *func; void *buffer; const char *datatype; size_t count; int peer;
};
struct coll_3 {
	const char *name; uint64_t hash, seq; const char *func; const void *send; void *receive; size_t count; int root;
	const char *datatype; uint8_t channels, warps; const char *algorithm, *protocol;
};
struct coll_4 {
	uint64_t seq; const char *func; const void *send; void *receive; size_t count; int root; const char *datatype;
	uint8_t channels, warps; const char *algorithm, *protocol;
};
struct coll_5 {
	uint64_t seq; const char *func; const void *send; void *receive; size_t count; int root; const char *datatype;
	uint8_t channels, warps; const char *algorithm, *protocol; void *group;
};
struct coll_7 {
	uint64_t seq; const char *func; const void *send; void *receive; size_t count; int root; const char *datatype;
	uint8_t channels, warps; const char *algorithm, *protocol; void *group; const char *variant; bool symmetric;
	const char *tag;
};
struct p2p_4 {
	const char *func; void *buffer; const char *datatype; size_t count; int peer; uint8_t channels;
};
struct p2p_5 {
	const char *func; void *buffer; const char *datatype; size_t count; int peer; uint8_t channels; void *group;
};
struct channel_4 { uint8_t channel; uint64_t timer; };
struct coll_call_5 { const char *func; size_t count; const char *datatype; int root; void *stream; bool captured; };
struct p2p_call_5 { const char *func; size_t count; const char *datatype; void *stream; bool captured; };
struct copies_6 {
	uint64_t seq; const char *func; const void *send; void *receive; size_t count; int root; const char *datatype;
	const char *strategy; bool sync; uint32_t batch_bytes, batches, copies_seq; void *stream;
};

/* A descriptor of any event: TYPE is a byte until version 4. */
#define DESCRIPTOR(name, type_of, event) \
	struct name { type_of type; void *parent; int rank; union { struct event event; void *align; }; }
DESCRIPTOR(with_coll_1, uint8_t, coll_1);
DESCRIPTOR(with_p2p_1, uint8_t, p2p_1);
DESCRIPTOR(with_coll_2, uint8_t, coll_2);
DESCRIPTOR(with_p2p_2, uint8_t, p2p_2);
DESCRIPTOR(with_coll_3, uint8_t, coll_3);
DESCRIPTOR(with_coll_4, uint8_t, coll_4);
DESCRIPTOR(with_p2p_4, uint8_t, p2p_4);
DESCRIPTOR(with_coll_5, uint64_t, coll_5);
DESCRIPTOR(with_coll_7, uint64_t, coll_7);
DESCRIPTOR(with_p2p_5, uint64_t, p2p_5);
DESCRIPTOR(with_channel_4, uint8_t, channel_4);
struct channel_5 { uint8_t channel; uint64_t timer; };
DESCRIPTOR(with_channel_5, uint64_t, channel_5);
DESCRIPTOR(with_coll_call_5, uint64_t, coll_call_5);
DESCRIPTOR(with_p2p_call_5, uint64_t, p2p_call_5);
DESCRIPTOR(with_copies_6, uint64_t, copies_6);

#define SAME(ours, event, field) \
	assert_int_equal(offsetof(struct nccl_descriptor, ours.field), offsetof(struct with_##event, event.field))
/* clang-format on */

#define SAME_COLLECTIVE(ours, event) \
	do { \
		SAME(ours, event, seq); \
		SAME(ours, event, func); \
		SAME(ours, event, count); \
		SAME(ours, event, root); \
		SAME(ours, event, datatype); \
		SAME(ours, event, channels); \
		SAME(ours, event, algorithm); \
		SAME(ours, event, protocol); \
	} while (0)

#define SAME_P2P(ours, event) \
	do { \
		SAME(ours, event, func); \
		SAME(ours, event, datatype); \
		SAME(ours, event, count); \
		SAME(ours, event, peer); \
	} while (0)

static void test_collectives(void **state)
{
	(void)state;
	SAME(collective_1, coll_1, name);
	SAME(collective_1, coll_1, hash);
	SAME(collective_2, coll_2, name);
	SAME(collective_2, coll_2, hash);
	SAME(collective_3, coll_3, hash);
	SAME_COLLECTIVE(collective_1, coll_1);
	SAME_COLLECTIVE(collective_2, coll_2);
	SAME_COLLECTIVE(collective_3, coll_3);
	SAME_COLLECTIVE(collective_4, coll_4);
	SAME_COLLECTIVE(collective_4, coll_5);
	SAME_COLLECTIVE(collective_4, coll_7);
}

static void test_sends(void **state)
{
	(void)state;
	SAME(p2p_1, p2p_1, name);
	SAME(p2p_1, p2p_1, hash);
	SAME(p2p_2, p2p_2, name);
	SAME(p2p_2, p2p_2, hash);
	SAME_P2P(p2p_1, p2p_1);
	SAME_P2P(p2p_2, p2p_2);
	SAME_P2P(p2p_4, p2p_4);
	SAME_P2P(p2p_4, p2p_5);
	SAME(p2p_4, p2p_5, channels);
	/* What is read of both kinds at once. */
	assert_int_equal(offsetof(struct with_coll_2, coll_2.hash),
			 offsetof(struct with_p2p_2, p2p_2.hash));
}

static void test_other_events(void **state)
{
	(void)state;
	SAME(channel_4, channel_4, timer);
	SAME(channel_4, channel_5, timer);
	SAME(collective_call_5, coll_call_5, captured);
	SAME(p2p_call_5, p2p_call_5, captured);
	SAME(copies_6, copies_6, seq);
	SAME(copies_6, copies_6, func);
	SAME(copies_6, copies_6, count);
	SAME(copies_6, copies_6, root);
	SAME(copies_6, copies_6, datatype);
	assert_int_equal(offsetof(struct nccl_descriptor, head.parent),
			 offsetof(struct with_coll_1, parent));
	assert_int_equal(offsetof(struct nccl_descriptor, head.parent),
			 offsetof(struct with_coll_7, parent));
	assert_int_equal(offsetof(struct nccl_descriptor, head.rank),
			 offsetof(struct with_coll_1, rank));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_other_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
