/*
 * analyzer/idle/in_c.h: what lines of Python call in C. The sampler says of a thread that runs Python which libraries it was in,
 * below that line (SPY_EV_PLACE). Where most of a line's samples were in one function, what to do about it is another thing than
 * where they were in the interpreter.
 */
#ifndef CUDASPY_IDLE_IN_C_H
#define CUDASPY_IDLE_IN_C_H

#include "model/model.h"

#define IN_C_FUNCTIONS \
	12 /* of a line; of more the first ones, which are most often those with the most */

/* Of samples. Zeros at first. */
struct in_c {
	uint64_t n; /* that say what ran, or that it is unknown */
	uint64_t us; /* that these stand for */
	uint64_t interpreter_us; /* of that: in the interpreter itself */
	uint64_t parallel_us; /* of that: in loops that the CPU's cores share (OpenMP) */
	struct in_c_function {
		uint64_t address; /* as a return address in it */
		const struct stack *place; /* a sample in it */
		uint64_t us;
	} functions[IN_C_FUNCTIONS];
	size_t n_functions;
};

/* Of each line of a program that samples found. */
struct in_c_lines {
	struct in_c_line *all;
};

/* A sample of a thread that ran, at that place; NULL: unknown. */
void in_c_see(struct in_c_lines *lines, const struct stack *place, uint64_t weight_us);

/* Parts of a set have other processes. */
void in_c_join(struct in_c_lines *whole, struct in_c_lines *part);
void in_c_release(struct in_c_lines *lines);

/* What is known of a line is added to that of others. */
struct idle_sum_key;
void in_c_add(struct in_c *to, const struct in_c_lines *lines, const struct idle_sum_key *line);
void in_c_add_all(struct in_c *to, const struct in_c *from);

/* Where certainly more than half of the time was: by so few samples a share may be wrong by two standard deviations. */
struct in_c_most {
	enum in_c_where { IN_C_UNKNOWN, IN_C_INTERPRETER, IN_C_FUNCTION, IN_C_LIBRARY } where;
	const struct in_c_function *function; /* that one, or one of the library; NULL: none */
	uint64_t us; /* that it has */
};

struct in_c_most in_c_most(const struct in_c *c);

/* Was certainly more than half of it in parallel loops on the host? */
bool in_c_is_parallel(const struct in_c *c);

/* The file of that library; "": it is none, or unknown. */
const char *in_c_path(const struct in_c_most *most);

#endif
