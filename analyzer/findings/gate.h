/*
 * analyzer/findings/gate.h: findings as a gate of a build: which of them count, and whether they
 * are too many or too dear.
 *
 * What a finding weighs is what its cure would give back, at most; where that is unknown, what it
 * cost: a gate asks for what can be had. A finding counts unless a suppression with a reason covers
 * it (suppress.h), or it was there before and is no worse (baseline.h). --fail-on names findings
 * that may not be at all; --budget says what those that count may cost together. What is lost has
 * no findings: of a trace of which nothing is left the gate says that it cannot judge, and of one
 * with gaps that there are some.
 */
#ifndef CUDASPY_GATE_H
#define CUDASPY_GATE_H

#include "baseline.h"
#include "suppress.h"
#include "trace/trace.h"

struct accounting;
struct detector;
struct symbolizer;

/* Why the gate fails. */
struct gate_failure {
	const char *rule; /* the option, as given: "--budget=all:5%" */
	const char *id, *text, *where;
	uint64_t value, limit;
	/* of both: "ns", "ppm" of a thread's time, "calls"; NULL: --fail-on has none */
	const char *unit;
};

enum limit_unit { LIMIT_NS, LIMIT_PPM, LIMIT_CALLS, LIMIT_UNITS };

struct budget {
	const struct detector *detector; /* NULL: all */
	const char *text; /* as given */
	enum limit_unit unit;
	uint64_t limit;
};

/* What that means of the files in `unnamed`. */
#define GATE_UNNAMED "functions and lines in it are not known to suppressions and baselines"

struct gate {
	/* options */
	bool any, problem; /* of --fail-on */
	const struct detector **fail_on;
	struct budget *budgets;
	size_t n_fail_on, n_budgets;
	struct suppressions suppressions;
	struct baseline baseline;
	struct arena texts;
	/* results */
	struct gate_failure *failures;
	size_t n_failures;
	uint64_t counted, counted_ns, suppressed,
		suppressed_ns; /* times as far as they are known */
	uint64_t counted_unknown, suppressed_unknown; /* of these findings, those of unknown cost */
	bool incomplete; /* the traces have gaps, */
	uint64_t lost_records; /* … with so many records in them, or more */
	const char *
		unnamed; /* files with places of findings, and without names for them; NULL: none */
	/* what of the traces there is nothing to judge by; NULL: all can be read */
	const char *unjudged;
};

/*
 * From --fail-on, --budget (NULL: not given) and the n_suppress files of --suppress. 0, or -errno
 * after a message that names the option, or file and line, and what is wrong. gate_release in all
 * cases.
 */
int gate_init(struct gate *gate, const char *fail_on, const char *budget,
	      const char *const *suppress, size_t n_suppress);
void gate_release(struct gate *gate);

/* Is there anything that could fail; is there anything to tell? */
bool gate_asked(const struct gate *gate);
bool gate_used(const struct gate *gate);

/* After the last record: is there enough in the traces to judge them? The report says with
 * report_losses whether they are complete. Once. */
void gate_look(struct gate *gate, const struct trace_set *set, bool complete);

/* Are the files there in which the findings' places are? Without them a suppression or a baseline
 * that names places cannot be compared. Before gate_judge. */
void gate_look_at_files(struct gate *gate, const struct finding *findings, size_t n,
			struct symbolizer *symbols);

/* Marks the findings (suppressed, compared, before_ns, fails), and puts those that count first, and
 * those that text folds last. Once. */
void gate_judge(struct gate *gate, const struct accounting *a, struct finding *findings, size_t n);

/* What is no finding, and may have ended the program: calls that failed, in words (NULL: none), and calls of which not one
 * returned. Once. */
void gate_judge_calls(struct gate *gate, const char *failed, bool none_returned);

/* Does text leave it out? It is suppressed; or minor, not of those that are shown all the same, and
 * the gate does not fail on it. */
bool gate_folds(const struct finding *f);

/* After gate_look: something was to be judged that cannot be read. */
static inline bool gate_cannot_judge(const struct gate *gate)
{
	return gate->unjudged && (gate_asked(gate) || gate->baseline.path);
}

/* After gate_judge. */
static inline bool gate_failed(const struct gate *gate)
{
	return gate->n_failures;
}

#endif
