/*
 * analyzer/tables/sqlite_names.c: functions, kernels and places by the numbers of their names in StringIds. Called for each
 * call and each operation of a GPU: a name is made once.
 */
#include <stdlib.h>
#include "sqlite.h"
#include "model/python.h"
#include "text/text.h"
#include "text/where.h"

#define NAMES_MOST (1u << 17) /* of each kind; what comes then has none */

static struct name_row *find(struct name_row *names, uint64_t owner, uint64_t item)
{
	struct name_key key = {owner, item};
	struct name_row *row;

	HASH_FIND(hh, names, &key, sizeof(key), row);
	return row;
}

/* NULL: there are too many. */
static struct name_row *add(struct name_row **names, uint64_t owner, uint64_t item)
{
	struct name_row *row;

	if (HASH_COUNT(*names) >= NAMES_MOST)
		return NULL;
	HASH_NEW(*names, row, key, (struct name_key){owner, item});
	return row;
}

uint32_t sqlite_function(struct sqlite_export *e, uint32_t fn)
{
	if (fn == NO_FUNCTION)
		return 0;
	while (e->n_functions <= fn) {
		e->functions = grow(e->functions, e->n_functions, sizeof(*e->functions));
		e->functions[e->n_functions++] = 0;
	}
	if (!e->functions[fn])
		e->functions[fn] =
			database_string(&e->db, text_function(e->job->shown->set, fn)) + 1;
	return e->functions[fn] - 1;
}

/* "scale" of "void work::scale<float>(float*, int)": as Nsight Systems has it. */
static char *short_name(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *end = name, *begin;

	while (*end && !strchr("<(", *end))
		end += !strncmp(end + 1, anonymous, sizeof(anonymous) - 1) ? sizeof(anonymous) : 1;
	begin = end;
	while (begin > name && begin[-1] != ' ' && begin[-1] != ':')
		begin--;
	return begin < end ? xstrndup(begin, (size_t)(end - begin)) : xstrdup(name);
}

/* Its name may be told later, or was lost. */
static const struct name_row *unknown_kernel(struct sqlite_export *e)
{
	struct name_row *none = &e->unknown_kernel;

	none->id = none->short_id = database_string(&e->db, "unknown kernel");
	return none;
}

const struct name_row *sqlite_kernel(struct sqlite_export *e, uint32_t process, uint32_t kernel)
{
	struct name_row *row = find(e->kernels, process, kernel);
	const char *linked, *readable;
	char *name;

	if (row)
		return row;
	linked = model_kernel(&e->job->shown->model.processes[process], kernel);
	row = linked ? add(&e->kernels, process, kernel) : NULL;
	if (!row)
		return unknown_kernel(e);
	readable = demangle(e->job->symbols, linked);
	name = short_name(readable);
	row->id = database_string(&e->db, readable);
	row->short_id = database_string(&e->db, name);
	row->mangled_id = database_string(&e->db, linked);
	free(name);
	return row;
}

static uint32_t name_place(struct sqlite_export *e, const struct process *process, uint64_t address,
			   uint64_t ns, const struct stack *stack)
{
	struct arena texts = {0};
	const char *words =
		text_program_place(&texts, e->job->symbols, process, address, ns, stack);
	uint32_t id = database_string(&e->db, text_bare_place(words));

	arena_release(&texts);
	return id;
}

static uint32_t name_python(struct sqlite_export *e, const struct stack *stack)
{
	struct python_line line = python_line(stack);
	struct arena texts = {0};
	uint32_t id = database_string(&e->db, text_python(&texts, &line));

	arena_release(&texts);
	return id;
}

uint32_t sqlite_place(struct sqlite_export *e, const struct process *process, uint64_t address,
		      uint64_t ns, const struct stack *stack)
{
	uint32_t id = stack && stack->n_python ? name_python(e, stack) : 0;
	struct name_row *row;
	struct place place;

	if (id || !address)
		return id;
	if (stack)
		symbolize(e->job->symbols, process, address, ns, &place);
	if (stack && place_is_between(&place))
		return name_place(e, process, address, ns, stack);
	row = find(e->places, process->trace->index, address);
	if (!row) {
		row = add(&e->places, process->trace->index, address);
		if (!row)
			return 0;
		row->id = name_place(e, process, address, ns, NULL);
	}
	return row->id;
}

#define NVTX_DOMAIN_CREATE 75

uint32_t sqlite_domain(struct sqlite_export *e, const char *domain, uint64_t ns,
		       const struct thread *thread)
{
	uint32_t name;
	struct name_row *row;

	if (!*domain)
		return 0;
	name = database_string(&e->db, domain);
	row = find(e->domains, 0, name);
	if (row)
		return row->id;
	row = add(&e->domains, 0, name);
	if (!row)
		return 0;
	row->id = ++e->n_domains;
	put_time(e, TABLE_NVTX, ns);
	put_null(&e->db, TABLE_NVTX);
	put_number(&e->db, TABLE_NVTX, NVTX_DOMAIN_CREATE);
	put_nulls(&e->db, TABLE_NVTX, 3);
	put_text(&e->db, TABLE_NVTX, domain);
	put_number(&e->db, TABLE_NVTX, global_tid(thread));
	put_null(&e->db, TABLE_NVTX);
	put_number(&e->db, TABLE_NVTX, name);
	put_number(&e->db, TABLE_NVTX, row->id);
	row_end(&e->db, TABLE_NVTX);
	return row->id;
}

static void release(struct name_row *names)
{
	struct name_row *row, *rest;

	HASH_EMPTY (names, row, rest)
		free(row);
}

void sqlite_names_release(struct sqlite_export *e)
{
	release(e->kernels);
	release(e->places);
	release(e->domains);
	free(e->functions);
}
