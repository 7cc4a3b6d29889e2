/*
 * analyzer/model/stacks.c: who called, natively and in Python. Called by the readings
 * as records come, and by whoever asks.
 */
#include <stdlib.h>
#include <string.h>
#include "apply.h"
#include "base/hash.h"
#include "base/redact.h"

#define PYTHON_MAX (1u << 16) /* numbers of functions count up from 1; a larger one is damage */

void model_apply_stack(struct process *process, const struct record *record)
{
	const struct spy_rec_stack *of = record_stack(record);
	uint8_t n = of->count < SPY_STACK_MOST ? of->count : SPY_STACK_MOST;
	struct stack *stack = xcalloc(1, sizeof(*stack) + n * sizeof(stack->frames[0]));

	stack->process = process;
	stack->ns = record->ns;
	stack->time = of->time;
	stack->fn = of->fn;
	stack->why = of->why;
	stack->n = n;
	memcpy(stack->frames, (const char *)of + offsetof(struct spy_rec_stack, frames),
	       n * sizeof(stack->frames[0]));
	process->stacks = grow(process->stacks, process->n_stacks, sizeof(*process->stacks));
	process->stacks[process->n_stacks++] = stack;
	record->thread->stack = stack;
}

#define CALLERS 4

/* What tells a function that was called one way from others: where it begins, and where it and its callers were called. */
static uint64_t function_called(const struct stack *stack, uint64_t begin)
{
	uint64_t hash = hash_mix(begin);
	uint8_t i;

	for (i = 1; i < stack->n && i <= CALLERS; i++)
		hash = hash_mix(hash ^ hash >> 32 ^ stack->frames[i]);
	return hash | 1;
}

/* Places are kept: any later sample may be there, and who has seen one may name it in the end. Of those without a number as many as there
 * are numbers. */
void model_apply_place(struct model *model, struct process *process, const struct record *record)
{
	const struct spy_rec_place *of = record_place(record);
	const struct place_record place = decode_place(record);
	struct stack *stack;

	if (of->place > SPY_PLACES || (!of->place && process->sampled_more >= SPY_PLACES))
		return;
	if (!process->sampled)
		process->sampled = xcalloc(SPY_PLACES + 1, sizeof(struct stack *));
	if (process->sampled[of->place])
		return; /* told again */
	stack = xcalloc(1, sizeof(*stack) + place.n_frames * sizeof(stack->frames[0]));
	stack->process = process;
	stack->ns = record->ns;
	stack->time = of->head.time;
	stack->fn = SPY_FN_NONE;
	stack->n = place.in_c ? 0 : place.n_frames;
	stack->n_in_c = place.n_frames - stack->n;
	if (place.in_c)
		stack->ran = place.function ? STACK_RAN_KNOWN : STACK_RAN_UNKNOWN;
	stack->pinned = true;
	stack->n_python = (uint8_t)min_u64(place.n_python, SPY_PYTHON_MOST);
	for (uint8_t i = 0; i < stack->n_python; i++)
		stack->python[i] = (struct python_frame){(uint32_t)(of->words[i] >> 32),
							 (uint32_t)of->words[i]};
	for (uint8_t i = 0; i < place.n_frames; i++)
		stack->frames[i] = of->words[place.n_python + i];
	if (place.function && !place.in_c)
		stack->function = function_called(stack, place.function);
	process->stacks = grow(process->stacks, process->n_stacks, sizeof(*process->stacks));
	process->stacks[process->n_stacks++] = stack;
	model->n_stacks++;
	process->sampled_more += !of->place;
	*(of->place ? &process->sampled[of->place] : &process->sampled_once) = stack;
}

const struct stack *model_sampled(struct process *process, uint32_t place)
{
	const struct stack *once = process->sampled_once;

	process->sampled_once = NULL;
	if (!place)
		return once;
	return process->sampled && place <= SPY_PLACES ? process->sampled[place] : NULL;
}

static void forget_stacks_of(struct process *process)
{
	size_t i, kept = 0;

	for (i = 0; i < process->n_stacks; i++) {
		struct stack *stack = process->stacks[i];

		if (!stack->kept && !stack->pinned &&
		    !__atomic_load_n(&stack->held, __ATOMIC_ACQUIRE)) {
			free(stack);
			continue;
		}
		stack->kept = false;
		process->stacks[kept++] = stack;
	}
	process->n_stacks = kept;
}

/* Those of other parts of the set belong to other threads. */
void model_forget_stacks(struct model *model)
{
	size_t n = model->own ? model->n_own : model->n_processes, i;

	model->n_stacks = 0;
	for (i = 0; i < n; i++) {
		struct process *process = &model->processes[model->own ? model->own[i] : i];

		forget_stacks_of(process);
		model->n_stacks += process->n_stacks;
	}
}

void model_apply_python_code(struct process *process, const struct record *record)
{
	uint32_t number = record_python_code(record)->code;
	struct python_code *code;

	if (number >= PYTHON_MAX)
		return;
	HASH_FIND(hh, process->python, &number, sizeof(number), code);
	if (code)
		return; /* told again */
	HASH_NEW(process->python, code, number, number);
	code->file = xstrdup(record_text(record, 0));
	redact_path(code->file);
	code->function = xstrdup(record_text(record, 1));
	code->first_line = record_python_code(record)->first_line;
}

/* It belongs to the stack before it. */
void model_apply_python_stack(const struct record *record)
{
	const struct spy_rec_python_stack *of = record_python_stack(record);
	struct stack *stack = record->thread->stack;

	if (!stack || stack->time != of->time || stack->fn != of->fn)
		return;
	stack->n_python = of->count < SPY_PYTHON_MOST ? of->count : SPY_PYTHON_MOST;
	stack->more_python = (enum spy_python_more)of->more;
	for (uint8_t i = 0; i < stack->n_python; i++)
		stack->python[i] = (struct python_frame){of->codes[i], of->lines[i]};
}

const struct python_code *model_python(const struct stack *stack, const struct python_frame *frame)
{
	struct python_code *code;

	HASH_FIND(hh, stack->process->python, &frame->code, sizeof(frame->code), code);
	return code;
}
