/*
 * analyzer/idle/in_c.c: what lines of Python call in C. Called by idle.c for each sample, and where sums are shown, after the last
 * record.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "host.h"
#include "in_c.h"
#include "base/hash.h"
#include "base/util.h"
#include "model/python.h"

#define LINES_MOST 65536 /* of further ones nothing is known */
#define SAMPLES_LEAST 10

struct in_c_line {
	struct line_key {
		uint32_t process, code, line, unused;
	} key;
	struct in_c c;
	uint64_t all_us; /* of all samples that found a thread running at the line */
	UT_hash_handle hh;
};

/* ---- samples ---------------------------------------------------------------------------------- */

/* What others are made of: memcpy counts for who calls it, a library or the interpreter. */
static bool is_one_of(const struct stack *place, uint64_t address, const char *const *names,
		      size_t n)
{
	const struct module *module = model_module(place->process, address, place->ns);

	for (size_t i = 0; module && i < n; i++)
		if (!strncmp(path_basename(module->path), names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_of_system(const struct stack *place, uint64_t address)
{
	static const char *const names[] = {"libc.so",      "libm.so",     "libpthread.so",
					    "libstdc++.so", "libgcc_s.so", "ld-linux"};

	return is_one_of(place, address, names, ARRAY_SIZE(names));
}

/* A loop that the CPU's cores share: of PyTorch's, for tensors on the host. Who begins it is often the one that calls it, too. */
static bool is_parallel(const struct stack *place)
{
	static const char *const names[] = {"libgomp", "libiomp5", "libomp"};
	const uint64_t *entered = stack_in_c(place);

	for (uint8_t i = 0; i < place->n_in_c; i++)
		if (is_one_of(place, entered[i], names, ARRAY_SIZE(names)))
			return true;
	return false;
}

/* The innermost library's function; 0: it is the interpreter. */
static uint64_t function_of(const struct stack *place)
{
	const uint64_t *entered = stack_in_c(place);

	for (uint8_t i = 0; i < place->n_in_c; i++)
		if (!is_of_system(place, entered[i]))
			return entered[i];
	return 0;
}

static void add_function(struct in_c *c, const struct in_c_function *function)
{
	size_t i = 0;

	while (i < c->n_functions && c->functions[i].address != function->address)
		i++;
	if (i == IN_C_FUNCTIONS)
		return;
	if (i < c->n_functions) {
		c->functions[i].us += function->us;
		return;
	}
	c->functions[c->n_functions++] = *function;
}

static struct in_c_line *get_line(struct in_c_lines *lines, struct line_key key)
{
	struct in_c_line *line;

	HASH_FIND(hh, lines->all, &key, sizeof(key), line);
	if (!line && HASH_COUNT(lines->all) < LINES_MOST)
		HASH_NEW(lines->all, line, key, key);
	return line;
}

void in_c_see(struct in_c_lines *lines, const struct stack *place, uint64_t weight_us)
{
	const struct python_frame *frame = python_frame(place);
	struct in_c_line *line;
	uint64_t function;

	if (!frame)
		return;
	line = get_line(lines, (struct line_key){.process = place->process->trace->index,
						 .code = frame->code,
						 .line = frame->line});
	if (!line)
		return;
	line->all_us += weight_us;
	if (place->ran == STACK_RAN_UNSAID)
		return;
	line->c.n++;
	line->c.us += weight_us;
	if (place->ran == STACK_RAN_UNKNOWN)
		return;
	if (is_parallel(place))
		line->c.parallel_us += weight_us;
	function = function_of(place);
	if (function)
		add_function(&line->c, &(struct in_c_function){function, place, weight_us});
	else
		line->c.interpreter_us += weight_us;
}

void in_c_join(struct in_c_lines *whole, struct in_c_lines *part)
{
	struct in_c_line *line, *next;

	HASH_EMPTY (part->all, line, next)
		HASH_ADD(hh, whole->all, key, sizeof(line->key), line);
}

void in_c_release(struct in_c_lines *lines)
{
	struct in_c_line *line, *next;

	HASH_EMPTY (lines->all, line, next)
		free(line);
}

/* ---- what is said of them --------------------------------------------------------------------- */

static void add_scaled(struct in_c *to, const struct in_c *from, double scale)
{
	to->n += from->n;
	to->us += (uint64_t)((double)from->us * scale);
	to->interpreter_us += (uint64_t)((double)from->interpreter_us * scale);
	to->parallel_us += (uint64_t)((double)from->parallel_us * scale);
	for (size_t i = 0; i < from->n_functions; i++) {
		struct in_c_function function = from->functions[i];

		function.us = (uint64_t)((double)function.us * scale);
		add_function(to, &function);
	}
}

void in_c_add_all(struct in_c *to, const struct in_c *from)
{
	add_scaled(to, from, 1);
}

/* Each line has its share of the time: of one that takes little of a loop what runs is known of few samples. */
void in_c_add(struct in_c *to, const struct in_c_lines *lines, const struct idle_sum_key *of)
{
	struct line_key key = {.process = of->process, .code = of->code, .line = of->line};
	const struct in_c_line *line = NULL;

	if (of->code)
		HASH_FIND(hh, lines->all, &key, sizeof(key), line);
	if (line && line->c.us)
		add_scaled(to, &line->c, (double)line->all_us / (double)line->c.us);
	else if (line)
		to->us += line->all_us;
}

/* (With a sample more of each kind: ten of ten do not say that there are no others.) */
static bool is_most(const struct in_c *c, uint64_t us)
{
	double n = (double)c->n + 2, share = (double)us / (double)c->us;
	double p = ((double)c->n * share + 1) / n;

	return p - 2 * sqrt(p * (1 - p) / n) > 0.5;
}

static const struct module *module_of(const struct in_c_function *function)
{
	return model_module(function->place->process, function->address, function->place->ns);
}

/* What functions of the same library have together. */
static uint64_t library_us(const struct in_c *c, const struct in_c_function *function)
{
	const struct module *module = module_of(function);
	uint64_t us = 0;

	for (size_t i = 0; module && i < c->n_functions; i++)
		if (module_of(&c->functions[i]) == module)
			us += c->functions[i].us;
	return us;
}

bool in_c_is_parallel(const struct in_c *c)
{
	return c->n >= SAMPLES_LEAST && c->us && is_most(c, c->parallel_us);
}

const char *in_c_path(const struct in_c_most *most)
{
	const struct module *module = most->function ? module_of(most->function) : NULL;

	return module ? module->path : "";
}

struct in_c_most in_c_most(const struct in_c *c)
{
	const struct in_c_function *most = c->functions;
	uint64_t us;

	if (c->n < SAMPLES_LEAST || !c->us)
		return (struct in_c_most){0};
	if (is_most(c, c->interpreter_us))
		return (struct in_c_most){.where = IN_C_INTERPRETER, .us = c->interpreter_us};
	for (size_t i = 1; i < c->n_functions; i++)
		if (c->functions[i].us > most->us)
			most = &c->functions[i];
	if (!c->n_functions)
		return (struct in_c_most){0};
	us = library_us(c, most);
	if (is_most(c, most->us) && module_of(most))
		return (struct in_c_most){IN_C_FUNCTION, most, most->us};
	if (is_most(c, us))
		return (struct in_c_most){IN_C_LIBRARY, most, us};
	return (struct in_c_most){0};
}
