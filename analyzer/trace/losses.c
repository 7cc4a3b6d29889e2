/*
 * analyzer/trace/losses.c: what the files of a trace do not have. Called by the report and by the
 * gate.
 */
#include "losses.h"
#include "parts.h"

/* Has a slot without any packet ever had one? A thread that has just taken it has none yet, nor has
 * one that found the disk full, or that made its calls while recording was dormant; slot 0 has one
 * before any other slot is used. */
static bool had_packets(const struct board *board, size_t slot)
{
	const struct spy_slot_page *page;

	if (slot >= board->head.slots)
		return false;
	if (slot >= board->n_slots || !slot)
		return true;
	page = &board->slots[slot];
	return page->calls || (board->head.ended && !page->tid && !page->lost && !page->asleep);
}

static void add_stream(struct losses *sum, const struct reader_losses *l)
{
	sum->streams.packets_dropped = add_capped(sum->streams.packets_dropped, l->packets_dropped);
	sum->streams.packets_missing = add_capped(sum->streams.packets_missing, l->packets_missing);
	sum->streams.unreadable_bytes =
		add_capped(sum->streams.unreadable_bytes, l->unreadable_bytes);
	sum->streams.disordered = add_capped(sum->streams.disordered, l->disordered);
	sum->streams.unreadable_files =
		add_capped(sum->streams.unreadable_files, l->unreadable_files);
}

/* A slot, its stream (NULL: none) and its page of the board. A slot counts its lost records on the
 * board and in each packet: the larger number is the later one. The board's are those of all parts of the recording. */
static void add_slot(struct losses *sum, const struct board *board, size_t slot,
		     const struct reader *r, bool gaps)
{
	static const struct spy_slot_page no_page;
	const struct spy_slot_page *page = slot < board->n_slots ? &board->slots[slot] : &no_page;
	uint64_t calls = r ? reader_calls(r) : 0, discarded = r ? r->losses.discarded : 0;

	sum->calls += calls;
	if (gaps) {
		sum->streams.discarded = add_capped(sum->streams.discarded, discarded);
		return;
	}
	sum->streams.discarded =
		add_capped(sum->streams.discarded, page->lost > discarded ? page->lost : discarded);
	if (!r || !r->any_packet)
		sum->streams_missing += had_packets(board, slot);
	if (page->calls > calls && (!r || !r->losses.packets_dropped))
		sum->calls_missing = add_capped(sum->calls_missing, page->calls - calls);
}

/* All that is missing was deleted, and is counted: the rest of what the slots had together is here, or lost. Of each slot a
 * record in the making when a part ended may be on either side. */
static void add_behind_removed(struct losses *sum, const struct board *board)
{
	uint64_t calls = 0, lost = 0;

	for (size_t i = 0; i < board->n_slots; i++) {
		calls = add_capped(calls, board->slots[i].calls);
		lost = add_capped(lost, board->slots[i].lost);
	}
	calls -= min_u64(calls, add_capped(sum->calls, board->head.removed_calls));
	lost -= min_u64(lost, board->head.removed_lost);
	if (calls > board->n_slots)
		sum->calls_missing = calls;
	if (lost > sum->streams.discarded)
		sum->streams.discarded = lost;
}

/* Slots that may have lost something: those behind have neither streams nor pages. */
static size_t count_slots(const struct trace *trace)
{
	size_t n = trace->board.n_slots, i = trace->n_streams;

	if (n < trace->board.head.slots)
		n = (size_t)min_u64(trace->board.head.slots, SPY_BOARD_SLOTS);
	return i && n <= trace->streams[i - 1]->slot ? trace->streams[i - 1]->slot + 1 : n;
}

struct losses losses_sum(const struct trace *trace)
{
	size_t i, n = 0, n_slots = count_slots(trace);
	bool gaps = trace_parts_have_gaps(trace);
	struct losses sum = {0};

	for (i = 0; i < trace->n_streams; i++)
		add_stream(&sum, &trace->streams[i]->reader.losses);
	for (i = 0; i < n_slots; i++) { /* streams are in the order of slots */
		bool has = n < trace->n_streams && trace->streams[n]->slot == i;

		add_slot(&sum, &trace->board, i, has ? &trace->streams[n++]->reader : NULL, gaps);
	}
	if (gaps && trace_parts_are_documented(trace))
		add_behind_removed(&sum, &trace->board);
	return sum;
}

uint64_t losses_records(const struct losses *losses, const struct trace *trace)
{
	return add_capped(trace->board.head.lost,
			  add_capped(losses->streams.discarded, losses->calls_missing));
}

bool losses_all(const struct losses *losses, const struct trace *trace)
{
	const struct reader_losses *l = &losses->streams;

	if (losses->calls)
		return false;
	return !trace->board.present || losses_records(losses, trace) || losses->streams_missing ||
	       l->unreadable_files || l->unreadable_bytes || l->packets_missing ||
	       l->packets_dropped;
}
