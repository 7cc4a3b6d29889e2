/*
 * shim/record/kernel_names.c: kernels get numbers, and the trace gets their names. Runs on the
 * application's threads, at the first launch of each kernel, on the recorder's own stack.
 */
#include <string.h>
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "process/own_stack.h"
#include "record/board.h"
#include "record/kernel_names.h"
#include "state/session.h"

#define SPY_KERNELS_MOST 65536 /* names */

struct spy_kernel_name {
	UT_hash_handle hh;
	uint32_t number;
	char name[];
};

/* Writes the record with the name. */
static void write_kernel(const struct spy_kernel_name *kernel, size_t length)
{
	struct spy_rec_kernel *record =
		spy_session_append(SPY_EV_KERNEL, sizeof(*record) + length + 1);

	if (!record)
		return;
	record->reserved = 0;
	record->kernel = kernel->number;
	memcpy(record->name, kernel->name, length + 1);
	spy_session_commit(sizeof(*record) + length + 1);
}

static struct spy_kernel_name *find_kernel(const char *name, size_t length)
{
	struct spy_kernel_name *known = NULL;

	HASH_FIND(hh, spy_session->kernel_names, name, length, known);
	return known;
}

static struct spy_kernel_name *add_kernel(const char *name, size_t length)
{
	struct spy_kernel_name *fresh = spy_heap_take(sizeof(*fresh) + length + 1);

	if (!fresh)
		return NULL;
	fresh->number = (uint32_t)++spy_session->kernels;
	memcpy(fresh->name, name, length);
	HASH_ADD(hh, spy_session->kernel_names, name[0], length, fresh);
	spy_board_show(spy_session->board->kernels, fresh->number);
	return fresh;
}

/* The kernel of a name; *fresh: its record is to be written. Names beyond the bound share one,
 * and so a number that need not be asked for at each launch. Session lock held. */
static struct spy_kernel_name *find_or_add(const char *name, size_t length, bool *fresh)
{
	static const char others[] = "(kernels beyond the first 65535)";
	struct spy_kernel_name *kernel = find_kernel(name, length);

	*fresh = false;
	if (kernel)
		return kernel;
	if (spy_session->kernels >= SPY_KERNELS_MOST - 1) {
		spy_board_show(spy_session->board->kernels_unnamed,
			       spy_session->board->kernels_unnamed + 1);
		name = others;
		length = sizeof(others) - 1;
		kernel = find_kernel(name, length);
	}
	if (!kernel) {
		kernel = add_kernel(name, length);
		*fresh = kernel;
	}
	return kernel;
}

struct naming {
	const char *name;
	uint32_t number; /* the answer, 0 none */
};

static void number_on_own_stack(void *data)
{
	struct naming *naming = data;
	size_t length = strnlen(naming->name, SPY_TEXT_MAX - 1);
	struct spy_kernel_name *kernel;
	bool fresh;

	if (!length || !spy_lock(&spy_session->lock))
		return;
	kernel = find_or_add(naming->name, length, &fresh);
	spy_unlock(&spy_session->lock);
	if (fresh)
		write_kernel(kernel, strlen(kernel->name));
	if (kernel)
		naming->number = kernel->number;
}

uint32_t spy_kernel_number(const char *name)
{
	struct naming naming = {.name = name};

	if (name && spy_session_active())
		spy_own_stack_run(number_on_own_stack, &naming);
	return naming.number;
}
