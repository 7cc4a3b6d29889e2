/*
 * analyzer/trace/timeline.c: from a trace's cycles to nanoseconds. Called when it is opened.
 */
#include "open.h"

/* No processor's counter is slower or faster. Damage may say anything: 1 Hz would make years of
 * each cycle. */
#define FREQUENCY_LEAST 1000000
#define FREQUENCY_MOST 100000000000ull

static void check_frequency(const struct trace *trace, const char *file, uint64_t *frequency)
{
	if (!*frequency || (*frequency >= FREQUENCY_LEAST && *frequency <= FREQUENCY_MOST))
		return;
	warn("%s/%s: a clock of %llu Hz: not believed", trace->dir, file,
	     (unsigned long long)*frequency);
	*frequency = 0;
}

uint64_t timeline_cycles(const struct timeline *t, uint64_t ns)
{
	unsigned __int128 cycles = ((unsigned __int128)ns << 40) / t->ns_per_cycle_40;

	return cycles < UINT64_MAX ? (uint64_t)cycles : UINT64_MAX;
}

static void set_zero(struct trace *trace)
{
	const struct metadata *m = &trace->metadata;
	struct timeline *t = &trace->timeline;
	uint64_t zero_ns;

	if (m->offset_s < TIME_MOST_NS / 1000000000 &&
	    m->offset_cycles < timeline_cycles(t, TIME_MOST_NS)) {
		zero_ns = m->offset_s * 1000000000 + timeline_span_ns(t, m->offset_cycles);
		if (zero_ns < TIME_MOST_NS) {
			t->zero_ns = zero_ns;
			return;
		}
	}
	warn("%s/metadata: a clock that began %llu s and %llu cycles after 1970: not believed",
	     trace->dir, (unsigned long long)m->offset_s, (unsigned long long)m->offset_cycles);
}

void trace_set_timeline(struct trace *trace)
{
	struct metadata *m = &trace->metadata;
	struct timeline *t = &trace->timeline;
	uint64_t frequency;

	check_frequency(trace, "metadata", &m->frequency);
	check_frequency(trace, ".board", &trace->board.head.frequency);
	frequency = m->frequency ? m->frequency : trace->board.head.frequency;

	if (!frequency) {
		warn("%s: the clock's frequency is unknown: times are cycles", trace->dir);
		frequency = 1000000000;
	}
	/* Rounded up, so that a whole number of nanoseconds comes out as that and not one less. */
	t->ns_per_cycle_40 =
		(uint64_t)((((unsigned __int128)1000000000 << 40) + frequency - 1) / frequency);
	set_zero(trace);
}
