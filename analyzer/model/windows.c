/*
 * analyzer/model/windows.c: when recording was dormant, and the parts of a recording. Called by the readings
 * as records come, and by whoever asks.
 */
#include "apply.h"

/* The time until then was dormant. Times stay in order and apart, whatever the records say. */
void model_end_dormant(struct process *process, uint64_t ns)
{
	size_t n = process->n_dormant_times;
	const struct dormant_time *last = n ? &process->dormant_times[n - 1] : NULL;
	struct dormant_time time = {.begin_ns = process->dormant_since_ns, .end_ns = ns};

	if (!process->dormant)
		return;
	process->dormant = false;
	if (last) {
		time.begin_ns = max_u64(time.begin_ns, last->end_ns);
		time.before_ns = last->before_ns + last->end_ns - last->begin_ns;
	}
	time.end_ns = max_u64(time.end_ns, time.begin_ns);
	process->dormant_ns += time.end_ns - time.begin_ns;
	if (n == DORMANT_MOST) {
		process->dormant_times[n - 1].end_ns = time.end_ns;
		return;
	}
	process->dormant_times = grow(process->dormant_times, n, sizeof(*process->dormant_times));
	process->dormant_times[process->n_dormant_times++] = time;
}

static void begin_dormant(struct process *process, uint64_t ns)
{
	if (process->dormant)
		return;
	process->dormant = true;
	process->dormant_since_ns = ns;
}

/* For how long it was dormant until then. */
static uint64_t dormant_until(const struct process *process, uint64_t ns)
{
	size_t low = 0, high = process->n_dormant_times;
	const struct dormant_time *time;

	while (low < high) { /* the first one that begins later */
		size_t middle = low + (high - low) / 2;

		if (process->dormant_times[middle].begin_ns > ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return 0;
	time = &process->dormant_times[low - 1];
	return time->before_ns + min_u64(ns, time->end_ns) - time->begin_ns;
}

uint64_t process_dormant_ns(const struct process *process, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? dormant_until(process, end_ns) - dormant_until(process, begin_ns)
				 : 0;
}

void model_apply_window(const struct record *record)
{
	struct process *process = record->thread->process;
	const struct spy_rec_window *window = record_window(record);

	switch (window->state) {
	case SPY_WINDOW_OPEN:
		/* A part of the recording begins with the window that is open. */
		process->windows += !process->windows || process->window != window->number;
		process->window = window->number;
		/* fall through */
	case SPY_WINDOW_RECORDING:
		model_end_dormant(process, record->ns);
		process->opened_ns = record->ns;
		break;
	case SPY_WINDOW_CLOSED:
		if (!process->windows && window->number)
			process->windows = 1; /* which began with the recording */
		begin_dormant(process, window->number ? record->ns : process->first_ns);
		break;
	case SPY_WINDOW_COUNTING:
		process->countings += !process->dormant;
		begin_dormant(process, record->ns);
		break;
	default:
		break;
	}
}

/* The recorder has deleted parts. The board says more of them than a record of the same number does. */
static void see_removed(struct process *process, uint32_t parts, uint64_t calls, uint64_t ns)
{
	if (parts <= process->removed_parts)
		return;
	process->removed_parts = parts;
	process->removed_calls = calls;
	process->removed_ns = ns;
}

void model_see_board(struct process *process)
{
	const struct spy_board *board = &process->trace->board.head;

	if (board->removed_cycles) /* traces of before have none of it */
		see_removed(process, board->parts_removed, board->removed_calls,
			    timeline_span_ns(&process->trace->timeline, board->removed_cycles));
}

static struct part_seen *part_of(struct process *process, uint32_t number)
{
	size_t n = process->n_parts_seen;

	if (!n || process->parts_seen[n - 1].number != number) {
		process->parts_seen = grow(process->parts_seen, n, sizeof(*process->parts_seen));
		process->parts_seen[process->n_parts_seen++] = (struct part_seen){.number = number};
	}
	return &process->parts_seen[process->n_parts_seen - 1];
}

/* Between parts that are not neighbours, nothing was recorded as far as is known. */
void model_apply_part(const struct record *record)
{
	struct process *process = record->thread->process;
	const struct part_record part = decode_part(record);

	see_removed(process, part.removed, part.removed_calls, part.removed_ns);
	if (part.state == SPY_PART_END) {
		process->part_ended = part.number;
		process->part_ended_ns = record->ns;
		part_of(process, part.number)->end_ns = record->ns;
		part_of(process, part.number)->calls = part.calls;
	}
	if (part.state != SPY_PART_BEGIN)
		return;
	process->part = part.number;
	part_of(process, part.number)->begin_ns = record->ns;
	process->part_is_apart = process->part_ended + 1 != part.number;
	if (!process->part_is_apart)
		return;
	if (process->part_ended && !process->dormant) {
		process->dormant = true;
		process->dormant_since_ns = process->part_ended_ns;
	}
	if (process->part_ended)
		model_end_dormant(process, record->ns);
	process->opened_ns = record->ns;
}

uint64_t thread_lived_ns(const struct thread *thread)
{
	uint64_t end_ns = min_u64(thread->exited_ns, thread->process->last_ns);
	uint64_t away_ns =
		thread->away_ns + process_dormant_ns(thread->process, thread->first_ns, end_ns);

	return end_ns - min_u64(end_ns, thread->first_ns + away_ns);
}
