/*
 * shim/entry/offsets.c: where the assembly finds the fields of the recorder's structures. Not part of
 * the library: it is compiled to assembly, of which the Makefile makes a header, offsets.h.
 */
#include <stddef.h>
#include "arch/frame_layout.h"
#include "state/thread.h"

#define DEFINE(name, value) __asm__(".ascii \"@define " #name " %c0\"" : : "i"((long)(value)))

_Static_assert(sizeof(struct spy_frame) <= SPY_FRAME_BYTES, "the trampoline's room for it");
_Static_assert(offsetof(struct spy_progress, frame) == 0, "compared where the list begins");
_Static_assert(offsetof(struct spy_slot, counter) == offsetof(struct spy_slot, fn) + 2,
	       "compared together");

void offsets(void);
void offsets(void)
{
	DEFINE(FRAME_REGS, offsetof(struct spy_frame, regs));
	DEFINE(FRAME_RAX_IN, offsetof(struct spy_frame, rax_in));
	DEFINE(FRAME_SLOT_INDEX, offsetof(struct spy_frame, slot_index));
	DEFINE(FRAME_XMM, offsetof(struct spy_frame, xmm));
	DEFINE(FRAME_RESULT, offsetof(struct spy_frame, result));
	DEFINE(FRAME_RESULT2, offsetof(struct spy_frame, result2));
	DEFINE(FRAME_RESULT_XMM, offsetof(struct spy_frame, result_xmm));
	DEFINE(FRAME_STACK, offsetof(struct spy_frame, stack));
	DEFINE(FRAME_CALLER, offsetof(struct spy_frame, caller));
	DEFINE(FRAME_WINDOW, offsetof(struct spy_frame, window));
	DEFINE(SLOT_BYTES, sizeof(struct spy_slot));
	DEFINE(SLOT_REAL, offsetof(struct spy_slot, real));
	DEFINE(SLOT_FN, offsetof(struct spy_slot, fn)); /* and the counter behind it */
	DEFINE(SLOT_COUNTER, offsetof(struct spy_slot, counter));
	DEFINE(SLOT_RECORD, offsetof(struct spy_slot, record));
	DEFINE(SLOT_INSPECTOR, offsetof(struct spy_slot, inspector));
	DEFINE(SLOT_KEEPS, offsetof(struct spy_slot, keeps));
	DEFINE(SLOT_WINDOW, offsetof(struct spy_slot, window));
	DEFINE(SLOT_ELIDE_FROM, offsetof(struct spy_slot, elide_from));
	DEFINE(COUNTER_NONE, SPY_COUNTER_NONE);
	DEFINE(RECORD_TRANSPARENT, SPY_TRANSPARENT);
	DEFINE(RECORD_INSTANT, SPY_INSTANT);
	DEFINE(THREAD_PAGE, offsetof(struct spy_thread, page));
	DEFINE(THREAD_DETAIL_LEVEL, offsetof(struct spy_thread, detail_level));
	DEFINE(THREAD_UNTIL_LOOK, offsetof(struct spy_thread, until_look));
	DEFINE(THREAD_COUNTS_TURN, offsetof(struct spy_thread, counts_turn));
	DEFINE(THREAD_DORMANT_FRAME, offsetof(struct spy_thread, dormant_frame));
	DEFINE(THREAD_STACK_BEGIN, offsetof(struct spy_thread, stack_begin));
	DEFINE(THREAD_STACK_END, offsetof(struct spy_thread, stack_end));
	DEFINE(THREAD_CALLS, offsetof(struct spy_thread, calls));
	DEFINE(RECORDED_FROM_DORMANT, SPY_DORMANT);
	DEFINE(DETAIL_NONE, SPY_DETAIL_NONE);
	DEFINE(DETAIL_ARGUMENTS, SPY_DETAIL_ARGUMENTS);
	DEFINE(BOARD_REQUEST, offsetof(struct spy_board, request));
	DEFINE(BOARD_ANSWERED, offsetof(struct spy_board, answered));
	DEFINE(PAGE_FN, offsetof(struct spy_slot_page, fn));
	DEFINE(PAGE_COUNTS, offsetof(struct spy_slot_page, counts));
}
