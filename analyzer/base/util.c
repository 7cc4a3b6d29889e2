/*
 * analyzer/base/util.c: memory that does not fail, growing arrays, warnings. Called by everyone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lines.h"
#include "redact.h"
#include "util.h"

static unsigned int complaints;
static _Thread_local void (*take_warning)(void *data, char *text);
static _Thread_local void *take_warning_data;

static void *or_die(void *memory)
{
	if (!memory) {
		fputs("cudaspy: out of memory\n", stderr);
		exit(2); /* as STATUS_NOTHING */
	}
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	return or_die(calloc(count ? count : 1, size));
}

void *xcalloc_apart(size_t count, size_t size)
{
	size_t bytes, lines;

	if (__builtin_mul_overflow(count, size, &bytes))
		return or_die(NULL);
	lines = bytes / APART_BYTES + 1;
	return memset(or_die(aligned_alloc(APART_BYTES, lines * APART_BYTES)), 0,
		      lines * APART_BYTES);
}

void *xrealloc(void *old, size_t count, size_t size)
{
	return or_die(reallocarray(old, count ? count : 1, size));
}

char *xstrndup(const char *text, size_t n)
{
	return or_die(strndup(text, n));
}

char *xstrdup(const char *text)
{
	return or_die(strdup(text));
}

char *xvasprintf(const char *format, va_list ap)
{
	char *text;

	return vasprintf(&text, format, ap) < 0 ? or_die(NULL) : text;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

char *xasprintf(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = xvasprintf(format, ap);
	va_end(ap);
	return text;
}

void *grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array; /* between two powers of two there is room */
	return xrealloc(array, count ? 2 * count : 1, size);
}

FILE *open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	FILE *file = NULL;

	redact_path(path);
	if (fd < 0 || fstat(fd, &st))
		err = errno;
	else if (!S_ISREG(st.st_mode))
		err = EINVAL;
	else if (!(file = fdopen(fd, "r")))
		err = errno;
	if (err && err != ENOENT)
		warn("%s: %s", path, err == EINVAL ? "not a regular file" : strerror(err));
	if (fd >= 0 && !file)
		close(fd);
	errno = err;
	return file;
}

int make_parents(const char *path)
{
	char *copy = xstrdup(path), *slash = copy + strspn(copy, "/");
	int err = 0;

	for (; !err && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST) {
			err = -errno;
			warn("%s: %s", copy, strerror(errno));
		}
		*slash = '/';
	}
	free(copy);
	return err;
}

static struct {
	const FILE *file;
	const char *name;
} named_output;

void name_output(const FILE *out, const char *name)
{
	named_output.file = out;
	named_output.name = name;
}

/* Of a pipe, and it has read what it wants: `cudaspy report | head`. */
static bool reader_is_gone(FILE *out)
{
	struct pollfd pipe = {.fd = fileno(out)};

	return pipe.fd >= 0 && poll(&pipe, 1, 0) == 1 && pipe.revents & POLLERR;
}

int finish_output(FILE *out)
{
	const char *name = out == stdout ? "standard output" : "output";

	errno = 0;
	if (!fflush(out) && !ferror(out))
		return 0;
	if (out == stdout && reader_is_gone(out))
		return 0;
	if (named_output.file == out)
		name = named_output.name;
	warn("%s: %s", name, strerror(errno ?: EIO));
	return -EIO;
}

void warn(const char *format, ...)
{
	va_list ap;
	char *text, *left, *shown;

	if (!take_warning && complaints++ >= WARNINGS_MAX)
		return;
	va_start(ap, format);
	text = xvasprintf(format, ap);
	va_end(ap);
	if (take_warning) {
		take_warning(take_warning_data, text);
		return;
	}
	left = redacted(text);
	shown = visible(left);
	fprintf(stderr, "cudaspy: %s\n", shown);
	free(shown);
	free(left);
	free(text);
}

void warn_divert(void (*take)(void *data, char *text), void *data)
{
	take_warning = take;
	take_warning_data = data;
}

void warnings_flush(void)
{
	if (complaints > WARNINGS_MAX)
		fprintf(stderr, "cudaspy: and %u more such lines\n", complaints - WARNINGS_MAX);
}

unsigned int warnings_count(void)
{
	return complaints;
}

void *arena_take(struct arena *arena, void *block)
{
	arena->blocks = grow(arena->blocks, arena->n_blocks, sizeof(*arena->blocks));
	arena->blocks[arena->n_blocks++] = block;
	return block;
}

/* A report has many texts, most of which are short: they lie in blocks of so many bytes. */
#define ARENA_SHORT 256
#define ARENA_BLOCK 8192

static char *take_short(struct arena *arena, const char *text, size_t bytes)
{
	char *at;

	if (arena->left < bytes) {
		arena->at = arena_take(arena, xrealloc(NULL, ARENA_BLOCK, 1));
		arena->left = ARENA_BLOCK;
	}
	at = memcpy(arena->at, text, bytes);
	arena->at += bytes;
	arena->left -= bytes;
	return at;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	char text[ARENA_SHORT], *taken;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(text))
		return take_short(arena, text, (size_t)n + 1);
	va_start(ap, format);
	taken = xvasprintf(format, ap);
	va_end(ap);
	return arena_take(arena, taken);
}

void arena_release(struct arena *arena)
{
	for (size_t i = 0; i < arena->n_blocks; i++)
		free(arena->blocks[i]);
	free(arena->blocks);
	*arena = (struct arena){0};
}
