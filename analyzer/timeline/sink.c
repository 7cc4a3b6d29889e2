/*
 * analyzer/timeline/sink.c: the words of slices. For the formats that write them.
 */
#include "sink.h"

const char *const slice_categories[SLICE_CATEGORY_COUNT] = {
#define CATEGORY(name, text) text,
	SLICE_CATEGORIES(CATEGORY)
#undef CATEGORY
};

const char *const slice_argument_keys[ARGUMENT_COUNT_ALL] = {
#define ARGUMENT(name, text, form) text,
	SLICE_ARGUMENTS(ARGUMENT)
#undef ARGUMENT
#define BUCKET(name, key, text) #key "_ns",
		BUCKETS(BUCKET)
#undef BUCKET
};

/* Those that are not named are numbers. */
const enum argument_form slice_argument_forms[ARGUMENT_COUNT_ALL] = {
#define ARGUMENT(name, text, form) FORM_##form,
	SLICE_ARGUMENTS(ARGUMENT)
#undef ARGUMENT
};
