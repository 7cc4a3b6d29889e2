/*
 * analyzer/base/util.h: what every file of the analyzer may use: memory that does not fail, growing
 * arrays, the smaller of two numbers, the end of a path, and the one way to warn.
 */
#ifndef CUDASPY_UTIL_H
#define CUDASPY_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* As calloc, realloc and strndup; without memory they say so and end the program with status 2: an
 * analyzer without memory has nothing to show. The caller frees. */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t count, size_t size);

/* What one thread writes all the time lies so far from what another one does: processors fetch two lines of the cache at
 * once. */
#define APART_BYTES 128

/* As xcalloc, of what one thread has for itself while others run. */
void *xcalloc_apart(size_t count, size_t size);

char *xstrndup(const char *text, size_t n);
char *xstrdup(const char *text);
char *xvasprintf(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room in an array for one element more than *count. Returns the array, moved or not; the
 * capacity is the next power of two of *count, so it need not be kept. The new element is not
 * initialised; the caller raises *count. */
void *grow(void *array, size_t count, size_t size);

static inline bool text_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

/* Of a path: what is behind the last slash. Of NULL: NULL. */
static inline const char *path_basename(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Is it the name of a source file, and neither missing nor something like "<string>"? */
static inline bool names_file(const char *file)
{
	return file && *file && *file != '<';
}

/* The largest number that all readers of JSON take. Counts and bytes come from records, which may
 * claim anything: their sums end here. */
#define NUMBER_MOST ((uint64_t)INT64_MAX)

static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a <= NUMBER_MOST && b <= NUMBER_MOST - a ? a + b : NUMBER_MOST;
}

/* An unknown time. A sum with one is unknown, too. */
#define UNKNOWN_NS UINT64_MAX
static inline uint64_t add_known_ns(uint64_t a, uint64_t b)
{
	return a == UNKNOWN_NS || b == UNKNOWN_NS ? UNKNOWN_NS : a + b;
}

/* The time of day in nanoseconds since the epoch. */
uint64_t now_ns(void);

/* Opens a regular file for reading; anything else, a pipe above all, might make us wait for ever.
 * NULL with errno set, after a warning unless there is no such file (ENOENT). */
FILE *open_regular(const char *path);

/* Makes the directories that a path leads through. 0, or -errno after a warning. */
int make_parents(const char *path);

/* When all is written: did it get there? 0, or -EIO after a warning, which names the file if name_output has said
 * what it is called; NULL: none is. */
int finish_output(FILE *out);
void name_output(const FILE *out, const char *name);

/*
 * One line on stderr, "cudaspy: ...". Called by the deepest function that knows the cause; with
 * file and offset where there are any. After WARNINGS_MAX lines the rest is only counted, and
 * warnings_flush says how many were not shown.
 */
#define WARNINGS_MAX 25
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on this thread's lines are not printed but given to `take`, which owns the text; NULL: printed again. */
void warn_divert(void (*take)(void *data, char *text), void *data);
void warnings_flush(void);
/* Lines since the program began; for tests. */
unsigned int warnings_count(void);

/* Texts and small structs that live until arena_release. Start with zeros. */
struct arena {
	void **blocks;
	size_t n_blocks;
	char *at; /* room for short texts: so much is left of one of the blocks */
	size_t left;
};

void *arena_take(struct arena *arena, void *block); /* owns block from here on; returns it */
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void arena_release(struct arena *arena);

#endif
