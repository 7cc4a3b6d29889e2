/*
 * tests/unit/expect_fixture.h: a trace in the making, and what is learnt of its calls.
 */
#ifndef CUDASPY_TESTS_EXPECT_FIXTURE_H
#define CUDASPY_TESTS_EXPECT_FIXTURE_H

#include "scratch.h"
#include "trace_text.h"
#include "account/evidence.h"
#include "expect/expect.h"
#include "expect/profile.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

struct fixture {
	struct profile prior;
	char *dir, log[256], *text;
	size_t size;
	FILE *out; /* the log in the making */
	uint64_t us;
	struct trace_set set;
	struct expect expect;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = scratch_make();
	snprintf(f->log, sizeof(f->log), "%s/log", f->dir);
	f->out = open_memstream(&f->text, &f->size);
	fputs("trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n1us thread tid=7 name=\"main\"\n",
	      f->out);
	f->us = 1000000; /* calls may last that long */
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	expect_release(&f->expect);
	profile_release(&f->prior);
	trace_set_release(&f->set);
	scratch_remove(f->dir);
	free(f);
	return 0;
}

/* A record, a millisecond after the last one. */
static inline void add(struct fixture *f, const char *format, ...)
{
	va_list ap;

	fprintf(f->out, "%" PRIu64 "us ", f->us += 1000);
	va_start(ap, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vfprintf(f->out, format, ap);
#pragma GCC diagnostic pop
	va_end(ap);
	fputc('\n', f->out);
}

static inline void add_slot(struct fixture *f, unsigned int slot)
{
	fprintf(f->out, "slot %u tid=%u\n", slot, slot + 6);
}

/* Writes the trace. */
static inline void open_set(struct fixture *f)
{
	const char *dirs[] = {f->dir};

	fclose(f->out);
	scratch_write(f->log, f->text, f->size);
	free(f->text);
	tt_make(f->log, f->dir);
	assert_int_equal(trace_set_open(&f->set, dirs, 1, NULL), 0);
}

/* … and reads it for the first time. */
static inline struct expect *learn(struct fixture *f, const struct profile *profile)
{
	open_set(f);
	expect_learn(&f->expect, &f->set);
	evidence_gather(&f->expect, 1);
	expect_settle(&f->expect, profile, NULL);
	return &f->expect;
}

/* The class of the function's calls, whose text is `text`. */
static inline const struct call_class *class_of(struct expect *e, const char *function,
						const char *text)
{
	size_t i;

	for (i = 0; i < e->n_classes; i++)
		if (!strcmp(e->set->functions.all[e->classes[i]->key.fn].name, function) &&
		    !strcmp(expect_class_text(e, e->classes[i]), text))
			return e->classes[i];
	fail_msg("no class %s '%s'", function, text);
	return NULL;
}

/* Medians are within 0.8 %. */
static inline void expect_number(struct expect *e, const char *function, const char *text,
				 enum expect_source source, uint64_t ns)
{
	const struct call_class *c = class_of(e, function, text);

	if (c->source != source || c->expected_ns > ns + ns / 100 || c->expected_ns < ns - ns / 100)
		fail_msg("%s '%s': %" PRIu64 " ns, %s; expected %" PRIu64 " ns", function, text,
			 c->expected_ns, expect_source_text(e, c), ns);
}

static inline void add_sync(struct fixture *f, unsigned int stream, unsigned int us)
{
	add(f, "op cudaStreamSynchronize duration=%uus stream=0x%x0", us, stream);
}

static inline void add_launch(struct fixture *f, unsigned int stream, unsigned int us)
{
	add(f, "launch cudaLaunchKernel duration=%uus stream=0x%x0 kernel=1", us, stream);
}

#endif
