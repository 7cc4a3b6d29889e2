/*
 * shim/sample/places.h: places in the program, which have numbers in the trace. On the sampler's thread.
 */
#ifndef CUDASPY_SHIM_PLACES_H
#define CUDASPY_SHIM_PLACES_H

#include "sample/ask.h"
#include "stack/python.h"
#include "state/thread.h"

#define SPY_PLACES_CODES 8192
#define SPY_PLACES_LINES 8192
#define SPY_PLACES_NAMED 64

struct spy_known_code {
	uint64_t key; /* of its objects' addresses; 0: free */
	uint32_t number; /* in the trace */
};

struct spy_known_line {
	uint64_t key; /* of the code and the place in it; 0: free */
	uint32_t line;
};

struct spy_known_place {
	uint64_t key; /* of all its words; 0: free */
	uint64_t recorded_in; /* the packet or part with its record */
};

/* The sampler's; zeros at first. */
struct spy_places {
	struct spy_thread *stream; /* NULL: not yet; with a packet where there is room */
	bool bounded; /* old packets are deleted */
	uint32_t named[SPY_PLACES_NAMED]; /* threads whose names were told; a ring */
	uint32_t n_named;
	struct spy_known_code codes[SPY_PLACES_CODES];
	struct spy_known_line lines[SPY_PLACES_LINES];
	struct spy_known_place places[SPY_PLACES];
	struct spy_question questions[SPY_QUESTIONS];
	uint8_t room[]; /* spy_python_look_bytes */
};

/* Makes sure that a sample and its place go into one packet. False: there is no room. */
bool spy_places_ready(struct spy_places *p);

/* What a place is made of: words as in spy_rec_place. */
struct spy_frames {
	uint8_t python, count;
	uint64_t words[SPY_PLACE_MOST];
};

/* Adds frames in Python, whose functions are told first, if need be. */
void spy_place_add_python(struct spy_places *p, const struct spy_python *python,
			  const struct spy_python_frame *frames, size_t n,
			  struct spy_frames *place);

/* The word of a frame in Python: number of its function, which is told first, if need be, and line. 0: unknown. */
uint64_t spy_place_word(struct spy_places *p, const struct spy_python *python,
			const struct spy_python_frame *frame);

/* Its number, after its record was written, if need be; 0: it has none, or its record was written for one sample. */
uint32_t spy_place_number(struct spy_places *p, const struct spy_frames *place);

/* Tells the name of a thread that may make no calls, once. */
void spy_place_name_thread(struct spy_places *p, uint32_t tid);

/* Writes a record, which begins as spy_rec_other does. */
void spy_place_write(struct spy_places *p, const void *record, size_t bytes);

#endif
