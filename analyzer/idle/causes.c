/*
 * analyzer/idle/causes.c: the codes, words and meanings of the causes of idle time. Data.
 */
#include <string.h>
#include "causes.h"

#define CAUSE(name, code, text, meaning) [IDLE_##name] = (code),
const char *const idle_cause_codes[IDLE_CAUSE_COUNT] = {IDLE_CAUSES(CAUSE)};
#undef CAUSE

#define CAUSE(name, code, text, meaning) [IDLE_##name] = (text),
const char *const idle_cause_texts[IDLE_CAUSE_COUNT] = {IDLE_CAUSES(CAUSE)};
#undef CAUSE

#define CAUSE(name, code, text, meaning) [IDLE_##name] = (meaning),
const char *const idle_cause_meanings[IDLE_CAUSE_COUNT] = {IDLE_CAUSES(CAUSE)};
#undef CAUSE

bool idle_in_a_call(enum idle_cause cause)
{
	switch (cause) {
	case IDLE_LAUNCH:
	case IDLE_CUDA_CALL:
	case IDLE_CUDA_LOCK:
	case IDLE_CUDA_WAIT:
	case IDLE_KERNEL_MODULE:
	case IDLE_CODE_LOADING:
		return true;
	default:
		return false;
	}
}

bool idle_is_work(enum idle_cause cause)
{
	switch (cause) {
	case IDLE_GC:
	case IDLE_COMPILE:
	case IDLE_IMPORT:
	case IDLE_TOKENIZE:
	case IDLE_LOG:
	case IDLE_SAVE:
		return true;
	default:
		return false;
	}
}

bool idle_runs_python(enum idle_cause cause)
{
	return cause == IDLE_PYTHON || idle_is_work(cause);
}

bool idle_is_certain(enum idle_cause cause)
{
	return cause == IDLE_GIL || cause == IDLE_SLEEP || cause == IDLE_GPU_QUERY;
}

enum idle_cause idle_cause_of_code(const char *code)
{
	unsigned int i = 0;

	while (i < IDLE_CAUSE_COUNT && strcmp(idle_cause_codes[i], code))
		i++;
	return (enum idle_cause)i;
}
