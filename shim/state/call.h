/*
 * shim/state/call.h: a call on its way through the shim.
 *
 * A stub pushes its slot number and jumps to the trampoline (trampoline.S): spy_enter(frame), the
 * real function, spy_leave(frame). All of it runs on the application's thread, inside its call.
 */
#ifndef CUDASPY_SHIM_CALL_H
#define CUDASPY_SHIM_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

struct spy_thread;
struct spy_inspector;

/* One way into one real function. The stubs know their slot by its number. */
struct spy_slot {
	void *real; /* NULL until the first call or look-up, and after its library was unloaded */
	uint16_t fn; /* enum spy_fn */
	/* index in spy_slot_page.counts, of rows that may only be counted: spy_slot_counter */
	uint16_t counter;
	uint8_t record; /* enum spy_record */
	uint8_t layer; /* enum spy_layer of the real function: 0, RT11, RT12 or RT13 */
	uint16_t window; /* bytes of stack arguments to hand on */
	uint16_t inspector; /* row of inspectors.def, 0 none */
	/* TRACED, but only counted inside a call that is timed and has its arguments recorded */
	bool count_when_nested;
	/* enum spy_detail_level: inside a call of this level or more it is counted and jumped to */
	uint8_t elide_from;
	uint8_t makes; /* 1: makes or gives back what programs better keep (stack.c) */
	uint8_t sampled; /* enum spy_sampled */
	/* the real function is no library of CUDA's: it may do other things besides */
	bool foreign;
	uint8_t keeps; /* enum spy_keeps */
};

#define SPY_COUNTER_NONE UINT16_MAX

/* Pairs with spy_slots_number, in another thread perhaps: the counter has its name. */
static inline uint16_t spy_slot_counter(const struct spy_slot *slot)
{
	return __atomic_load_n(&slot->counter, __ATOMIC_ACQUIRE);
}

/* What the record of the outermost call in progress has, which those of the calls inside it need
 * not repeat. */
enum spy_detail_level {
	SPY_DETAIL_NONE, /* no call is in progress */
	SPY_DETAIL_COUNT, /* it is only counted */
	SPY_DETAIL_TIME, /* its time */
	SPY_DETAIL_ARGUMENTS, /* what it copies, launches or allocates as well */
	SPY_DETAIL_ALL, /* its inspector keeps the tables up to date as well */
	SPY_DETAIL_NEVER /* of spy_slot.elide_from: no level is enough */
};

/* Does the inspector keep what records of later calls need? Then it runs while recording is dormant, too. */
enum spy_keeps { SPY_KEEPS_NOTHING, SPY_KEEPS_TABLES, SPY_KEEPS_CAPTURES /* if there are any */ };

/* Which calls are in the sample that may get a stack (stack.c). */
enum spy_sampled { SPY_SAMPLED_NONE, SPY_SAMPLED_ALL, SPY_SAMPLED_LEGACY /* into that stream */ };

/* Default streams as records have them. */
#define SPY_STREAM_LEGACY 1
#define SPY_STREAM_PER_THREAD 2

/* What an inspector found out about a call; spy_leave makes it the tail of the record. */
struct spy_details {
	uint8_t event; /* enum spy_event: the shape of the record */
	uint8_t direction; /* enum spy_direction */
	uint8_t form; /* enum spy_copy_form */
	uint8_t src_kind, dst_kind; /* enum spy_memory_kind; kind of memory records: dst_kind */
	uint8_t op; /* enum spy_memory_op */
	uint8_t src_device, dst_device;
	/* enum spy_access: of src and, from bit 2 on, dst; of memory records: dst */
	uint8_t access;
	uint16_t flags;
	bool captured, pool, pageable; /* pageable: an async copy with a pageable side */
	bool unplaced; /* a copy between memory of GPUs whose place is not known yet */
	uint32_t kernel;
	uint64_t stream, object, address, bytes;
};

enum spy_frame_kind {
	SPY_FRAME_PASS,
	SPY_FRAME_COUNTED,
	SPY_FRAME_TRACED,
	SPY_FRAME_LOST,
	SPY_FRAME_DORMANT, /* recording is */
	SPY_FRAME_KEPT, /* the same, but its inspector ran */
};

/* A call in progress, on the stack of the thread that makes it. The offsets are the assembly's too:
 * trampoline.S names each field it touches. */
struct spy_frame {
	uint64_t regs[6]; /*   0: rdi rsi rdx rcx r8 r9 */
	uint64_t rax_in; /*  48: number of vector registers of a variadic call */
	uint64_t slot_index; /*  56 */
	uint8_t xmm[8][16]; /*  64: floating-point arguments */
	uint64_t result; /* 192: rax after the call */
	uint64_t result2; /* 200: rdx after the call */
	uint8_t result_xmm[2][16]; /* 208 */
	uint64_t *stack; /* 240: stack arguments */
	uint64_t caller; /* 248: return address */
	uint64_t window; /* 256: bytes of stack arguments to hand on, n * 16; or WINDOW_UNSURE */
	/* from here on only C looks */
	struct spy_slot *slot;
	struct spy_thread *thread;
	uint64_t start;
	uint8_t kind; /* enum spy_frame_kind */
	uint8_t depth; /* recorded calls around this one */
	/* arguments of this call or of one around it are recorded: not those of inner ones */
	bool inspected;
	struct spy_details details;
};

/* Integer or pointer argument word number i, as the x86-64 ABI lays words out: 0-5 in registers,
 * the rest on the stack. A dim3 by value takes two words. */
static inline uint64_t spy_word(const struct spy_frame *frame, unsigned int i)
{
	return i < 6 ? frame->regs[i] : frame->stack[i - 6];
}

/* Prepares the record, returns the function to call. Never NULL. Called by the trampoline. */
void *spy_enter(struct spy_frame *frame);

/* Commits the record. frame->result is set. Called by the trampoline. */
void spy_leave(struct spy_frame *frame);

/* Copies stack arguments where the stack may end behind the first of them, what is not there as
 * zeros (window.c). bytes: less than a page. errno stays. */
void spy_copy_window(void *to, const void *from, uint64_t bytes);

#endif
