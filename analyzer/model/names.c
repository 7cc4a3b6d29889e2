/*
 * analyzer/model/names.c: what is told once and meant by its number from then on, kernels and ranges; and notes. Called by the readings
 * as records come, and by whoever asks.
 */
#include <string.h>
#include "apply.h"

#define KERNELS_MAX (1u << 22) /* numbers count up from 1; a larger one is damage */
#define RANGES_MAX (1u << 16) /* the same of NVTX's names */

void model_apply_kernel(struct process *process, const struct record *record)
{
	uint32_t number = record_kernel_name(record)->kernel;
	const char *name = record_text(record, 0);
	struct kernel_name *known;

	if (number >= KERNELS_MAX)
		return;
	HASH_FIND(hh, process->kernels, &number, sizeof(number), known);
	if (known) /* told again: the first name holds, sites may have it already */
		return;
	known = xcalloc(1, sizeof(*known) + strlen(name) + 1);
	known->number = number;
	strcpy(known->name, name);
	HASH_ADD(hh, process->kernels, number, sizeof(known->number), known);
}

/* What notes are known by: their text, and which note it is behind it. */
void model_apply_note(struct process *process, const struct record *record)
{
	const char *text = record_text(record, 0);
	size_t length = strlen(text) + 1;
	char key[SPY_TEXT_MAX + sizeof(uint16_t)];
	struct note *note;

	memcpy(key, text, length);
	memcpy(key + length, &record_note(record)->note, sizeof(uint16_t));
	HASH_FIND(hh, process->notes, key, length + sizeof(uint16_t), note);
	if (!note) {
		note = xcalloc(1, sizeof(*note) + length + sizeof(uint16_t));
		note->note = record_note(record)->note;
		memcpy(note->text, key, length + sizeof(uint16_t));
		HASH_ADD_KEYPTR(hh, process->notes, note->text, length + sizeof(uint16_t), note);
	}
	note->count++;
}

static struct range_family *family_of(struct process *process, struct range_name *name)
{
	struct range_family *family;

	HASH_FIND_PTR(process->families, &name, family);
	if (!family)
		HASH_NEW(process->families, family, name, name);
	return family;
}

void model_apply_range_name(struct model *model, struct process *process,
			    const struct record *record)
{
	uint32_t number = record_range_name(record)->name;
	struct range_number *range;

	if (!number || number >= RANGES_MAX)
		return;
	HASH_FIND(hh, process->ranges, &number, sizeof(number), range);
	if (range)
		return; /* told again */
	range = xcalloc(1, sizeof(*range));
	range->number = number;
	range->name = range_names_get(&model->range_names, record_text(record, 0),
				      record_text(record, 1), record_range_name(record)->folded);
	if (record_range_name(record)->folded)
		family_of(process, range->name)->many = true;
	if (range->name->family) {
		range->family = family_of(process, range->name->family);
		range->family->members++;
	}
	HASH_ADD(hh, process->ranges, number, sizeof(range->number), range);
}

const char *model_kernel(const struct process *process, uint32_t kernel)
{
	struct kernel_name *known;

	HASH_FIND(hh, process->kernels, &kernel, sizeof(kernel), known);
	return known ? known->name : NULL;
}

const struct range_number *model_range_number(const struct process *process, uint32_t number)
{
	struct range_number *range;

	HASH_FIND(hh, process->ranges, &number, sizeof(number), range);
	return range;
}
