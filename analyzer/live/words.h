/*
 * analyzer/live/words.h: threads of a running program, their calls and waits, in words. Texts live as long as the arena.
 */
#ifndef CUDASPY_LIVE_WORDS_H
#define CUDASPY_LIVE_WORDS_H

#include "live.h"
#include "symbols/symbolize.h"

/* A lock that somebody waits for, numbered as they come up. */
struct live_lock {
	const struct live_process *process;
	uint64_t object;
	const struct live_thread *holder; /* NULL unknown */
	uint64_t waiters, longest_ns;
	uint8_t kind; /* enum spy_wait_kind, of the first that waits */
};

/* What words are made of. */
struct live_words {
	const struct live *live;
	struct arena *texts;
	struct symbolizer *symbols;
	struct live_lock *locks;
	size_t n_locks;
	size_t name_columns; /* names of functions and kernels are shortened to these; 0: they are whole, as data has them */
};

#define LIVE_NAME_COLUMNS 48 /* for people */

/* For those whose terminal is so wide (0: unknown): there is room for more of a name on a wider one. */
static inline size_t live_name_columns(size_t width)
{
	return width > 2 * LIVE_NAME_COLUMNS ? width / 2 : LIVE_NAME_COLUMNS;
}

void live_words_init(struct live_words *w, const struct live *live, struct arena *texts);
void live_words_release(struct live_words *w);

/* "thread 123 'loader' (GPU 1)", with its process where there are several. */
const char *live_thread_name(const struct live_words *w, const struct live_thread *t);

/* "123 'loader'". */
const char *live_thread_short(const struct live_words *w, const struct live_thread *t);

/* "31.2 s"; "an unknown time". */
const char *live_time(const struct live_words *w, uint64_t ns);

/* "lock L1"; "the end of thread 12"; "GPU 0"; "a read or write"; NULL: it waits for nothing known. */
const char *live_wait_text(const struct live_words *w, const struct live_thread *t);

/* "in cudaFree", "in cuMemFree_v2 inside cudaFree", "between two CUDA calls". */
const char *live_call_text(const struct live_words *w, const struct live_thread *t);

/* Where the program makes the call, or waits between two: "free_block, hang.c:17"; NULL unknown. */
const char *live_place(const struct live_words *w, const struct live_thread *t);

/* "has been in cudaFree for 31.2 s (free_block, hang.c:17) and waits for lock L1". */
const char *live_doing_text(const struct live_words *w, const struct live_thread *t);

/* "asleep in futex_wait_queue"; NULL unknown. */
const char *live_state_text(const struct live_words *w, const struct live_thread *t);

/* When its last recorded stack was taken: "t = 8.919 s"; NULL: it has none. */
const char *live_stack_time(const struct live_words *w, const struct live_thread *t);

/* The innermost line of Python in that stack: "torch_ranks.py:128, at t = 8.919 s"; NULL: none. */
const char *live_python_line(const struct live_words *w, const struct live_thread *t);

/* "kernel delay(..), launched 30.2 s ago by thread 12 (run_kernel, hang.c:148)". */
const char *live_piece_text(const struct live_words *w, const struct live_process *process,
			    const struct recent_piece *piece);

/* The last of that work, and the function on the host behind it. */
const char *live_work_text(const struct live_words *w, const struct live_process *process,
			   const struct recent_work *work);

/* Work of a GPU that the thread waits for, as far as is known; NULL: none. */
const struct recent_work *live_awaited_work(const struct live *live, const struct live_thread *t);

/* From the thread to the end of its chain, as a sentence. */
const char *live_chain_text(const struct live_words *w, const struct live_thread *t);

#endif
