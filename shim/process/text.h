/*
 * shim/process/text.h: a text that grows, in the recorder's own memory (heap.h): stdio's streams
 * take locks and malloc, either of which a signal handler may have interrupted, or another thread
 * may have held when this process was forked.
 */
#ifndef CUDASPY_SHIM_TEXT_H
#define CUDASPY_SHIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zeros: empty. */
struct spy_text {
	char *chars; /* NUL-terminated once something was added */
	size_t length, room;
	bool failed; /* there was no memory for some of it */
};

/* Session lives. */
void spy_text_add(struct spy_text *text, const char *chars, size_t length);
__attribute__((format(printf, 2, 3))) void spy_text_print(struct spy_text *text, const char *format,
							  ...);
void spy_text_free(struct spy_text *text);

#endif
