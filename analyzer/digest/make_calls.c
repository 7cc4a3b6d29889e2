/*
 * analyzer/digest/make_calls.c: the calls of a rank: by function, by role of their threads; locks, who waited for whom, the
 * calls that lost most. Called by make.c.
 */
#include <ctype.h>
#include <stdlib.h>
#include "make.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

const char *digest_role(struct digest_builder *m, const struct thread *thread)
{
	char *role, *from, *to;

	if (!thread)
		return "?";
	if (thread->tid == thread->process->trace->pid)
		return "main";
	role = to = arena_printf(&m->texts, "%s", thread_name(thread));
	for (from = role; *from; from++) {
		if (!isdigit((unsigned char)*from))
			*to++ = *from;
		else if (to == role || to[-1] != '#')
			*to++ = '#';
	}
	*to = '\0';
	return *role ? role : "?";
}

/* The row with the same texts in its first n columns, made if it is new. */
static uint64_t *row_of(struct digest_builder *m, uint32_t table, const uint64_t *key, uint32_t n)
{
	const struct digest_rows *rows = &m->data.tables[table];
	uint64_t *row;

	for (uint32_t i = 0; i < rows->n; i++) {
		row = &rows->cells[(size_t)i * rows->columns];
		if (!memcmp(row, key, n * sizeof(*key)))
			return row;
	}
	row = digest_data_add(&m->data, table);
	memcpy(row, key, n * sizeof(*key));
	return row;
}

/* ---- functions ------------------------------------------------------------------------------- */

static unsigned int bucket_of(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned int bucket = us ? 64 - (unsigned int)__builtin_clzll(us) : 0;

	return bucket < DIGEST_BUCKETS ? bucket : DIGEST_BUCKETS - 1;
}

static void add_histogram(uint64_t *row, const struct histogram *h)
{
	for (unsigned int octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned int i = 0; h->octaves[octave] && i < HISTOGRAM_SUB; i++) {
			uint64_t ns = octave ? (uint64_t)(HISTOGRAM_SUB + i) << (octave - 1) : i;

			row[D_FUNC_us_1 + bucket_of(ns)] += h->octaves[octave][i];
		}
}

/* By function, what the calls of all threads lost. The caller frees it. */
static uint64_t *losses_of(const struct digest_builder *m)
{
	const struct model *model = &m->a->model;
	uint32_t n = m->a->stats.n_functions, j;
	uint64_t *lost_ns = xcalloc((size_t)n + 1, sizeof(*lost_ns));

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread_account *c =
			thread_account_of(&m->a->accounts, model->threads[i]);

		for (j = 0; c && j < c->functions.n; j++)
			lost_ns[c->functions.fns[j]] += account_lost(&c->functions.all[j]);
	}
	return lost_ns;
}

static void add_function(struct digest_builder *m, uint32_t fn, const struct calls *calls,
			 bool nested, uint64_t lost_ns)
{
	uint64_t counted = nested ? 0 : m->a->stats.counted[fn], *row;

	if (!calls->count && !counted)
		return;
	row = digest_data_add(&m->data, D_FUNC);
	row[D_FUNC_function] = digest_text(m, text_function(m->a->set, fn));
	row[D_FUNC_nested] = nested;
	row[D_FUNC_count] = calls->count + counted;
	row[D_FUNC_failed] = calls->failed;
	row[D_FUNC_total_ns] = calls->total_ns;
	row[D_FUNC_longest_ns] = calls->durations_ns.max;
	row[D_FUNC_lost_ns] = lost_ns;
	add_histogram(row, &calls->durations_ns);
}

static void make_functions(struct digest_builder *m)
{
	const struct callstats *s = &m->a->stats;
	uint64_t *lost_ns = losses_of(m);

	for (uint32_t fn = 0; fn < s->n_functions; fn++) {
		add_function(m, fn, &s->direct[fn], false, lost_ns[fn]);
		add_function(m, fn, &s->nested[fn], true, 0);
	}
	free(lost_ns);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void add_account(uint64_t *row, const struct account *account)
{
	row[D_ROLE_calls] += account->calls;
	row[D_ROLE_total_ns] += account->total_ns;
	row[D_ROLE_lost_ns] += account_lost(account);
#define BUCKET(name, key, text) row[D_ROLE_##key##_ns] += account->bucket_ns[BUCKET_##name];
	BUCKETS(BUCKET)
#undef BUCKET
}

static void make_roles(struct digest_builder *m)
{
	const struct model *model = &m->a->model;
	uint64_t role, *row;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread_account *c =
			thread_account_of(&m->a->accounts, model->threads[i]);

		if (!c || !c->functions.n)
			continue;
		role = digest_text(m, digest_role(m, model->threads[i]));
		row = row_of(m, D_ROLE, &role, 1);
		row[D_ROLE_threads]++;
		for (uint32_t j = 0; j < c->functions.n; j++)
			add_account(row, &c->functions.all[j]);
	}
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void make_locks(struct digest_builder *m)
{
	const struct locks *locks = &m->a->accounts.locks;

	for (size_t i = 0; i < locks->count; i++) {
		const struct lock *lock = locks->all[i];
		uint64_t key[3], *row;
		char *place;

		if (!lock->waits)
			continue;
		place = lock_place(lock->process, lock->key.address, lock->first_ns);
		key[D_LOCK_place] = digest_text(m, place);
		key[D_LOCK_kind] = digest_text(m, name_wait(lock->kind));
		key[D_LOCK_function] = digest_text(m, text_function(m->a->set, lock->first_fn));
		free(place);
		row = row_of(m, D_LOCK, key, 3);
		row[D_LOCK_locks]++;
		row[D_LOCK_waits] += lock->waits;
		row[D_LOCK_waited_ns] += lock->waited_ns;
		row[D_LOCK_longest_ns] = max_u64(row[D_LOCK_longest_ns], lock->longest_ns);
	}
}

/* ---- who waited for whom --------------------------------------------------------------------- */

static void make_edges(struct digest_builder *m)
{
	const struct blame_edge *edge;

	EDGES_ITER (edge, &m->a->blame.roots) {
		const union blame_key *k = &edge->key;
		uint64_t key[6], *row;

		key[D_EDGE_waiter] =
			digest_text(m, digest_role(m, edge_thread(&m->a->model, k->waiter)));
		key[D_EDGE_waiter_function] =
			digest_text(m, text_function(m->a->set, k->waiter_fn));
		key[D_EDGE_holder] =
			digest_text(m, digest_role(m, edge_thread(&m->a->model, k->holder)));
		key[D_EDGE_holder_function] =
			digest_text(m, text_function(m->a->set, k->holder_fn));
		key[D_EDGE_cause] = digest_text(m, cause_keys[k->cause]);
		key[D_EDGE_inferred] = k->inferred;
		row = row_of(m, D_EDGE, key, 6);
		row[D_EDGE_waits] += edge->waits;
		row[D_EDGE_waited_ns] += (uint64_t)edge->waited_ns;
	}
}

/* ---- the worst calls ------------------------------------------------------------------------- */

static enum bucket largest_loss(const struct worst_call *w)
{
	enum bucket most = BUCKET_UNEXPLAINED, i;

	for (i = 0; i < BUCKET_COUNT; i++)
		if (bucket_is_lost(i) && w->bucket_ns[i] > w->bucket_ns[most])
			most = i;
	return most;
}

static int by_lost(const void *a, const void *b)
{
	const struct worst_call *x = *(const struct worst_call *const *)a;
	const struct worst_call *y = *(const struct worst_call *const *)b;

	return COMPARE(y->lost_ns, x->lost_ns) ?: COMPARE(x->begin_ns, y->begin_ns);
}

static void make_worst(struct digest_builder *m)
{
	const struct worst_call *all[WORST_CALLS];
	size_t n = 0, i;

	for (i = 0; i < WORST_CALLS; i++)
		if (m->a->blame.worst_calls[i].serial)
			all[n++] = &m->a->blame.worst_calls[i];
	qsort(all, n, sizeof(*all), by_lost);
	for (i = 0; i < n; i++) {
		uint64_t *row = digest_data_add(&m->data, D_WORST);

		row[D_WORST_function] = digest_text(m, text_function(m->a->set, all[i]->fn));
		row[D_WORST_role] = digest_text(m, digest_role(m, all[i]->thread));
		row[D_WORST_at_ns] = all[i]->begin_ns - min_u64(m->begin_ns, all[i]->begin_ns);
		row[D_WORST_took_ns] = all[i]->end_ns - all[i]->begin_ns;
		row[D_WORST_lost_ns] = all[i]->lost_ns;
		row[D_WORST_why] = digest_text(m, bucket_names[largest_loss(all[i])]);
		if (all[i]->holder)
			row[D_WORST_holder_function] =
				digest_text(m, text_function(m->a->set, all[i]->holder_fn));
	}
}

void digest_make_calls(struct digest_builder *m)
{
	make_functions(m);
	make_roles(m);
	make_locks(m);
	make_edges(m);
	make_worst(m);
}
