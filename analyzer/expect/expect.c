/*
 * analyzer/expect/expect.c: what a call should have cost: the classes of calls, what each costs,
 * and from where that is known. Called by report after the first reading (expect_learn.c) and
 * during the main one, and by calibrate.
 */
#include <stdlib.h>
#include <string.h>
#include "expect.h"
#include "priors.h"
#include "base/format.h"
#include "trace/names.h"

/* Sizes are told from others that are at most this many buckets (two octaves) away. */
#define NEIGHBOUR_BUCKETS 8

/* The guess for a copy: what any call costs, and 10 GB/s. */
#define GUESS_CALL_NS 5000
#define GUESS_BYTES_PER_NS 10

_Static_assert(sizeof(struct class_key) == sizeof(uint64_t), "a key is also a number");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as expect_key puts it together");

/* ---- sizes ----------------------------------------------------------------------------------- */

uint64_t class_bucket_low(uint8_t bucket)
{
	unsigned int octave = (bucket - 1u) / 4, quarter = (bucket - 1u) % 4;

	if (!bucket)
		return 0;
	return octave >= 2 ? (uint64_t)(4 + quarter) << (octave - 2)
			   : (4 + quarter + (1u << (2 - octave)) - 1) >> (2 - octave);
}

/* The size that stands for all of a bucket. */
static uint64_t class_bucket_bytes(uint8_t bucket)
{
	uint64_t low = class_bucket_low(bucket);

	return bucket && bucket < UINT8_MAX ? low + (class_bucket_low(bucket + 1) - low) / 2 : low;
}

/* ---- classes --------------------------------------------------------------------------------- */

static void put(struct expect *e, struct call_class *c)
{
	uint64_t key = class_key_bits(&c->key);

	*expect_place(e, key) = (struct class_place){key, c};
}

void expect_grow_table(struct expect *e)
{
	free(e->table);
	e->n_table = e->n_table ? 2 * e->n_table : 512;
	e->table_shift = 64 - (unsigned int)__builtin_ctzll(e->n_table);
	e->table = xcalloc(e->n_table, sizeof(*e->table));
	for (size_t i = 0; i < e->n_classes; i++)
		if (e->classes[i]->key.flags & (CLASS_COPY | CLASS_MEMORY))
			put(e, e->classes[i]);
}

static void settle(struct expect *e, struct call_class *c);

static struct call_class *add_class(struct expect *e, uint64_t key)
{
	struct call_class *c = xcalloc(1, sizeof(*c));

	memcpy(&c->key, &key, sizeof(key));
	c->index = (uint32_t)e->n_classes;
	c->created = position_now();
	e->classes = grow(e->classes, e->n_classes, sizeof(struct call_class *));
	e->classes[e->n_classes++] = c;
	return c;
}

struct call_class *expect_add(struct expect *e, uint64_t key)
{
	struct call_class *c = add_class(e, key);

	if (2 * ++e->n_in_table > e->n_table)
		expect_grow_table(e);
	else
		put(e, c);
	if (e->settled)
		settle(e, c);
	return c;
}

struct call_class *expect_find_plain(struct expect *e, uint32_t fn, bool cold)
{
	const struct class_key key = {.fn = fn, .flags = cold ? CLASS_COLD : 0};
	size_t i = 2 * (size_t)fn + cold, n = e->n_plain;

	if (i >= n) {
		e->n_plain = 2 * (size_t)e->set->functions.count;
		e->n_plain = i < e->n_plain ? e->n_plain : i + 1;
		e->plain = xrealloc(e->plain, e->n_plain, sizeof(struct call_class *));
		memset(e->plain + n, 0, (e->n_plain - n) * sizeof(struct call_class *));
	}
	if (!e->plain[i]) {
		e->plain[i] = add_class(e, class_key_bits(&key));
		if (e->settled)
			settle(e, e->plain[i]);
	}
	return e->plain[i];
}

bool expect_cold_slow(struct expect *e, const struct record *record)
{
	uint32_t value;

	return cold_first(&e->processes[record->process], record, record->fn, record->contract,
			  &value) != COLD_NOT;
}

static void free_names(char **names, size_t n)
{
	while (n)
		free(names[--n]);
	free(names);
}

void expect_release(struct expect *e)
{
	phases_release(&e->phases);
	for (size_t i = 0; i < e->n_classes; i++) {
		histogram_release(&e->classes[i]->clean);
		histogram_release(&e->classes[i]->all);
		histogram_release(&e->classes[i]->rested);
		histogram_release(&e->classes[i]->kernel);
		free(e->classes[i]);
	}
	for (size_t i = 0; e->processes && i < e->set->n_traces; i++)
		cold_marks_release(&e->processes[i]);
	free_names(e->machine.drivers, e->machine.n_drivers);
	free_names(e->machine.gpus, e->machine.n_gpus);
	free(e->classes);
	free(e->plain);
	free(e->table);
	free(e->processes);
	free(e->last_ns);
	arena_release(&e->arena);
	*e = (struct expect){0};
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const struct gpu_waits *waits_of(const struct expect *e, const struct call_class *c)
{
	/* What such a call hands over, so far as it matters. */
	const struct spy_rec_copy copy = {
		.direction = c->key.what & 7,
		.captured = !!(c->key.flags & CLASS_CAPTURED),
		.src_kind = (c->key.kinds >> 4) & 15,
		.dst_kind = c->key.kinds & 15,
		.bytes = class_bucket_low(c->key.bucket),
	};
	const struct spy_rec_memory memory = {
		.op = c->key.what & 15,
		.kind = c->key.kinds & 15,
		.pool = (c->key.what >> 4) & 1,
		.address = 1,
	};

	return gpu_wait_of_call(c->key.flags & CLASS_COPY ? &copy : NULL,
				c->key.flags & CLASS_MEMORY ? &memory : NULL,
				expect_contract(e, c->key.fn), &e->set->cuda);
}

static bool may_wait(const struct expect *e, const struct call_class *c)
{
	return gpu_wait_is_for_work(waits_of(e, c));
}

static bool from_file(const struct expect *e, const struct profile *profile,
		      enum expect_source source, struct call_class *c)
{
	struct profile_class found;

	if (!profile ||
	    !profile_find(profile, e->set->functions.all[c->key.fn].name, &c->key, &found))
		return false;
	c->source = source;
	c->expected_ns = found.expected_ns;
	c->spread_ns = found.spread_ns;
	c->samples = found.samples;
	return true;
}

static bool from_profile(const struct expect *e, struct call_class *c)
{
	return from_file(e, e->profile, EXPECT_PROFILE, c);
}

static bool from_prior(const struct expect *e, struct call_class *c)
{
	return from_file(e, e->prior, EXPECT_PRIOR, c);
}

/* The number has just been learnt. */
static void bound(const struct expect *e, struct call_class *c)
{
	struct call_class prior = *c;
	uint64_t most_ns;

	if (!e->prior_fits || c->clean_calls >= EXPECT_STRONG || !from_prior(e, &prior))
		return;
	most_ns = EXPECT_PRIOR_MOST * (prior.expected_ns + prior.spread_ns);
	if (c->expected_ns <= most_ns)
		return;
	c->source = EXPECT_PRIOR;
	c->bounded = true;
	c->expected_ns = most_ns;
	c->spread_ns = 0;
	c->samples = prior.samples;
}

/* What loading a library costs lies in the code, and it waits for nothing: two of PyTorch's take 50
 * us and 20 ms. */
static bool is_any_price(const struct expect *e, const struct call_class *c)
{
	return expect_contract(e, c->key.fn) == SPY_CONTRACT_LIBRARY && !may_wait(e, c);
}

/*
 * So much do clean calls take that it is nothing unusual: all but one in a hundred, or all but
 * four. Of those that hand work over no more than USUAL_MOST times the expected: a queue may have
 * been full, or the thread had no CPU for a moment. Where there were no probes, calls that waited
 * for locks look clean, too: then three of four.
 */
#define USUAL_PART 0.99
#define UNUSUAL_CALLS 4.0
#define USUAL_MOST 8
#define USUAL_PART_UNPROBED 0.75

static uint64_t usual_spread(const struct expect *e, const struct call_class *c,
			     const struct histogram *h, uint64_t n, uint64_t expected_ns)
{
	uint64_t most = histogram_quantile(h, USUAL_PART_UNPROBED), high;
	double part = n ? 1 - UNUSUAL_CALLS / (double)n : 0;

	if (e->probed && part > USUAL_PART_UNPROBED) {
		high = histogram_quantile(h, part < USUAL_PART ? part : USUAL_PART);
		if (waits_of(e, c)->sort == GPU_WAIT_QUEUE)
			high = min_u64(high, (1 + USUAL_MOST) * expected_ns);
		most = high > most ? high : most;
	}
	return most - min_u64(most, expected_ns);
}

/* What only a few of many clean calls took more than: the machine's interrupts, say. */
static uint64_t most_of_clean(const struct expect *e, const struct call_class *c)
{
	double part = 1 - UNUSUAL_CALLS / (double)c->clean_calls;

	if (!e->probed || c->clean_calls < EXPECT_STRONG || may_wait(e, c))
		return 0;
	return min_u64(histogram_quantile(&c->clean, part), (1 + USUAL_MOST) * c->expected_ns);
}

/* Of calls that may wait for the GPU, what goes far beyond the median may be work of libraries that
 * were not seen. */
static bool from_clean_calls(const struct expect *e, struct call_class *c)
{
	if (!c->clean_calls || is_any_price(e, c))
		return false;
	c->source = c->clean_calls >= EXPECT_ENOUGH ? EXPECT_CLEAN : EXPECT_FEW;
	c->samples = c->clean_calls;
	c->expected_ns = histogram_quantile(&c->clean, 0.5);
	c->spread_ns =
		may_wait(e, c) ? 0 : usual_spread(e, c, &c->clean, c->clean_calls, c->expected_ns);
	c->most_ns = most_of_clean(e, c);
	bound(e, c);
	return true;
}

/* The least of a few is what the luckiest of them cost. */
static bool from_all_calls(const struct expect *e, struct call_class *c)
{
	if (c->learnt < EXPECT_ENOUGH || c->key.flags & CLASS_COLD || may_wait(e, c) ||
	    is_any_price(e, c))
		return false;
	c->source = EXPECT_LOW_QUANTILE;
	c->samples = c->learnt;
	c->expected_ns = histogram_quantile(&c->all, 0.1);
	return true;
}

/* After a pause of the thread. */
static void settle_rested(const struct expect *e, struct call_class *c)
{
	uint64_t n = histogram_count(&c->rested);
	struct call_class prior = *c;

	if (n < EXPECT_ENOUGH || c->source == EXPECT_NONE || is_any_price(e, c))
		return;
	c->rested_ns = histogram_quantile(&c->rested, 0.5);
	c->rested_spread_ns = usual_spread(e, c, &c->rested, n, c->rested_ns);
	if (n < EXPECT_STRONG && e->prior_fits && from_prior(e, &prior))
		c->rested_ns = min_u64(c->rested_ns,
				       EXPECT_PRIOR_MOST * (prior.expected_ns + prior.spread_ns));
	if (c->rested_ns <= c->expected_ns)
		c->rested_ns = 0;
	c->rested_samples = n;
}

/* Has it a number of its own? */
static bool is_known(const struct call_class *c)
{
	return c && c->source >= EXPECT_PROFILE && c->source <= EXPECT_FEW;
}

/* What hands a copy over takes as long for any size: the GPU copies. */
static bool is_by_size(const struct expect *e, const struct call_class *c)
{
	return waits_of(e, c)->sort != GPU_WAIT_QUEUE;
}

/* In proportion to the bytes, but for what any call costs. */
static uint64_t scale(const struct call_class *c, const struct call_class *other)
{
	uint64_t floor_ns = min_u64(other->expected_ns, GUESS_CALL_NS);
	uint64_t scaled_ns =
		(uint64_t)((double)other->expected_ns * (double)class_bucket_bytes(c->key.bucket) /
			   (double)class_bucket_bytes(other->key.bucket));

	return scaled_ns > floor_ns ? scaled_ns : floor_ns;
}

static bool from_neighbour(const struct expect *e, struct call_class *c)
{
	bool by_size = is_by_size(e, c);
	struct class_key key = c->key;

	if (!c->key.bucket)
		return false;
	for (int distance = 1; distance <= (by_size ? NEIGHBOUR_BUCKETS : UINT8_MAX); distance++)
		for (int side = -1; side <= 1; side += 2) {
			int bucket = c->key.bucket + side * distance;
			const struct call_class *other;

			if (bucket < 1 || bucket > UINT8_MAX)
				continue;
			key.bucket = (uint8_t)bucket;
			other = expect_place(e, class_key_bits(&key))->class;
			if (!is_known(other))
				continue;
			c->source = EXPECT_NEIGHBOUR;
			c->samples = other->samples;
			c->expected_ns = by_size ? scale(c, other) : other->expected_ns;
			c->spread_ns = other->spread_ns;
			return true;
		}
	return false;
}

/* A few calls do not say how much such calls differ; many of another size do. */
static void widen_spread(const struct expect *e, struct call_class *c)
{
	struct class_key key = c->key;

	if (!is_known(c) || c->source == EXPECT_PROFILE || c->samples >= EXPECT_STRONG ||
	    !c->key.bucket || is_by_size(e, c))
		return;
	for (unsigned int bucket = 1; bucket <= UINT8_MAX; bucket++) {
		const struct call_class *other;

		key.bucket = (uint8_t)bucket;
		other = expect_place(e, class_key_bits(&key))->class;
		if (is_known(other) && other->samples >= EXPECT_STRONG &&
		    other->spread_ns > c->spread_ns)
			c->spread_ns = other->spread_ns;
	}
}

static bool from_guess(struct call_class *c)
{
	if (!(c->key.flags & CLASS_COPY) || c->key.flags & CLASS_CAPTURED)
		return false;
	c->source = EXPECT_DEFAULT;
	c->expected_ns = GUESS_CALL_NS + class_bucket_bytes(c->key.bucket) / GUESS_BYTES_PER_NS;
	return true;
}

/* Without own calls to learn from. A prior of another GPU comes behind what the trace tells, and is
 * for calls that may wait: what others take is their own work, or was seen. */
static void settle_poor(struct expect *e, struct call_class *c)
{
	if (e->prior_fits && from_prior(e, c))
		return;
	if (!from_all_calls(e, c) && !from_neighbour(e, c) && !(may_wait(e, c) && from_prior(e, c)))
		from_guess(c);
}

static void settle(struct expect *e, struct call_class *c)
{
	if (!from_profile(e, c) && !from_clean_calls(e, c))
		settle_poor(e, c);
}

void expect_settle(struct expect *e, const struct profile *profile, const struct profile *prior)
{
	e->profile = profile;
	e->prior = prior;
	e->prior_fits = prior && prior_is_of(prior, &e->machine);
	for (size_t i = 0; i < e->n_classes; i++)
		if (!from_profile(e, e->classes[i]))
			from_clean_calls(e, e->classes[i]);
	for (size_t i = 0; i < e->n_classes; i++)
		if (e->classes[i]->source == EXPECT_NONE)
			settle_poor(e, e->classes[i]);
	for (size_t i = 0; i < e->n_classes; i++) {
		widen_spread(e, e->classes[i]);
		settle_rested(e, e->classes[i]);
	}
	e->settled = true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static const char *prior_text(struct expect *e, const struct call_class *c)
{
	char *profile = profile_describe(e->prior);
	const char *text;

	if (c->bounded)
		text = arena_printf(
			&e->arena, "%d times the prior, the %s: few unobstructed calls took longer",
			EXPECT_PRIOR_MOST, profile);
	else
		text = arena_printf(&e->arena, "prior%s: the %s",
				    e->prior_fits ? "" : " of another GPU", profile);
	free(profile);
	return text;
}

const char *expect_source_text(struct expect *e, const struct call_class *c)
{
	char count[32], *profile, *text;

	format_count(count, sizeof(count), c->samples);
	switch (c->source) {
	case EXPECT_PROFILE:
		profile = profile_describe(e->profile);
		text = arena_printf(&e->arena, "%s (%s calls)", profile, count);
		free(profile);
		return text;
	case EXPECT_CLEAN:
		return arena_printf(&e->arena, "median of %s unobstructed calls", count);
	case EXPECT_FEW:
		if (c->samples == 1)
			return "the only unobstructed call";
		return arena_printf(&e->arena, "median of only %s unobstructed calls", count);
	case EXPECT_PRIOR:
		return prior_text(e, c);
	case EXPECT_LOW_QUANTILE:
		return arena_printf(&e->arena,
				    "fastest tenth of %s calls, none of them unobstructed", count);
	case EXPECT_NEIGHBOUR:
		return "calls of another size";
	case EXPECT_DEFAULT:
		return "a guess: 5 us and 10 GB/s";
	default:
		return "not known";
	}
}

static char *size_text(struct expect *e, uint8_t bucket)
{
	uint64_t low = class_bucket_low(bucket), next;
	char from[32], to[32];

	format_bytes(from, sizeof(from), low);
	if (bucket == UINT8_MAX)
		return arena_printf(&e->arena, "%s or more", from);
	next = class_bucket_low(bucket + 1);
	format_bytes(to, sizeof(to), next);
	if (next <= low + 1)
		return arena_printf(&e->arena, "%s", from);
	return arena_printf(&e->arena, "%s to %s", from, to);
}

const char *expect_class_text(struct expect *e, const struct call_class *c)
{
	const struct class_key *key = &c->key;
	const char *cold = key->flags & CLASS_COLD ? "first one" : "", *text = "", *size = "";

	if (key->flags & CLASS_CAPTURED)
		text = "captured";
	else if (key->flags & CLASS_COPY)
		text = arena_printf(&e->arena, "%s %s to %s", name_direction(key->what),
				    name_memory_kind(key->kinds >> 4),
				    name_memory_kind(key->kinds & 15));
	else if (key->flags & CLASS_MEMORY)
		text = arena_printf(&e->arena, "%s %s%s", name_memory_op(key->what & 15),
				    name_memory_kind(key->kinds),
				    key->what >> 4 ? " of a pool" : "");
	if (key->bucket)
		size = size_text(e, key->bucket);
	return arena_printf(&e->arena, "%s%s%s%s%s", text, *text && *size ? ", " : "", size,
			    *cold && *text ? ", " : "", cold);
}
