/*
 * tests/unit/story.h: a log in the making, told call by call, and what is found in it: for the tests of what
 * is found in the calls of a thread (test_analyzer_findings_*.c).
 */
#ifndef CUDASPY_TESTS_STORY_H
#define CUDASPY_TESTS_STORY_H

#include <jansson.h>
#include "cmd_read/cmd_report.h"
#include "findings_golden.h"
#include "scratch.h"
#include "trace_text.h"
#include "report_sums.h"
#include "render/render.h"

#define MS 1000000

/* A log in the making: lines of the thread 7, whose clock is `ns`. */
struct story {
	char *dir, path[256], *text;
	size_t size;
	FILE *log;
	uint64_t ns;
	json_t *findings, *root;
	char *shown; /* the text report */
	unsigned int told; /* stories before */
};

static inline int setup(void **state)
{
	struct story *s = calloc(1, sizeof(*s));

	s->dir = scratch_make();
	snprintf(s->path, sizeof(s->path), "%s/log", s->dir);
	*state = s;
	return 0;
}

static inline int teardown(void **state)
{
	struct story *s = *state;

	json_decref(s->root);
	free(s->shown);
	scratch_remove(s->dir);
	free(s);
	return 0;
}

/* environment: "env_NAME=value" of its process. */
static inline void begin_process(struct story *s, unsigned int pid, const char *environment)
{
	s->log = open_memstream(&s->text, &s->size);
	s->ns = 1000;
	fprintf(s->log,
		"trace a.%u pid=%u program=\"a\" boot_id=b clock_source=tsc %s\nslot 1 tid=7\n"
		"1us thread tid=7 name=\"a\"\n"
		"1us kernel kernel=1 name=\"first\"\n1us kernel kernel=2 name=\"second\"\n",
		++s->told, pid, environment);
}

static inline void begin_with(struct story *s, const char *environment)
{
	begin_process(s, 1, environment);
}

static inline void begin(struct story *s)
{
	begin_with(s, "");
}

/* A call of so many nanoseconds, after a pause. */
__attribute__((format(printf, 4, 5))) static inline void call(struct story *s, uint64_t pause_ns,
							      uint64_t ns, const char *format, ...)
{
	va_list arguments;

	s->ns += pause_ns + ns;
	fprintf(s->log, "%lluns ", (unsigned long long)s->ns);
	va_start(arguments, format);
	vfprintf(s->log, format, arguments);
	va_end(arguments);
	fprintf(s->log, " duration=%lluns\n", (unsigned long long)ns);
}

static inline void launch(struct story *s, uint64_t pause_ns, uint64_t ns)
{
	call(s, pause_ns, ns, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
}

static inline void wait_for_stream(struct story *s, uint64_t ns, unsigned int caller)
{
	call(s, 1000, ns, "op cudaStreamSynchronize stream=8 caller=%#x", caller);
}

static inline char *rendered(const struct story *s, const char *format)
{
	struct report_options options = {.renderer = renderer_find(format)};
	char path[512], *text = NULL;
	const char *dirs[] = {path};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	snprintf(path, sizeof(path), "%s/a.%u", s->dir, s->told);
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	fclose(out);
	return text;
}

static inline void conclude(struct story *s)
{
	char *text;

	fclose(s->log);
	scratch_write(s->path, s->text, s->size);
	free(s->text);
	tt_make(s->path, s->dir);
	json_decref(s->root);
	free(s->shown);
	s->shown = NULL;
	s->root = NULL;
	text = rendered(s, "json");
	s->root = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(s->root);
	report_agrees(s->root);
	findings_note(s->root);
	s->findings = json_object_get(s->root, "findings");
	s->shown = rendered(s, "text");
}

static inline json_t *found(const struct story *s, const char *id)
{
	json_t *finding, *one = NULL;
	size_t i;

	json_array_foreach(s->findings, i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "id")), id))
			continue;
		if (one)
			fail_msg("%s: more than one finding", id);
		one = finding;
	}
	return one;
}

static inline int64_t number(json_t *finding, const char *key)
{
	return json_integer_value(json_object_get(finding, key));
}

static inline const char *what(json_t *finding)
{
	return json_string_value(json_object_get(finding, "what"));
}

static inline void says(json_t *finding, const char *text)
{
	assert_non_null(finding);
	if (!strstr(what(finding), text))
		fail_msg("says '%s', not '%s'", what(finding), text);
}

/* Nothing else than this; it says this; and the text report shows it, or leaves it out. */
static inline json_t *only(const struct story *s, const char *id, const char *text)
{
	json_t *finding = found(s, id);

	if (!finding || json_array_size(s->findings) != 1)
		fail_msg("%s alone expected in:\n%s", id, s->shown);
	says(finding, text);
	return finding;
}

static inline void nothing(const struct story *s)
{
	if (json_array_size(s->findings))
		fail_msg("nothing expected in:\n%s", s->shown);
}

/* Does the text report say that, on however many lines? */
static inline bool is_said(const struct story *s, const char *words)
{
	char *one_line = scratch_squeeze(strdup(s->shown));
	bool said;

	said = strstr(one_line, words) != NULL;
	free(one_line);
	return said;
}

static inline bool is_shown(const struct story *s, json_t *finding)
{
	return is_said(s, json_string_value(json_object_get(finding, "title")));
}

#define STORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
