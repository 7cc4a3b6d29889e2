/*
 * analyzer/job/load.c: a job's ranks out of their digests. Called by `report`, before anything is compared.
 */
#include <stdlib.h>
#include "job.h"
#include "account/buckets.h"

/* ---- words ----------------------------------------------------------------------------------- */

const char *job_cause_text(const char *code)
{
	enum idle_cause cause = idle_cause_of_code(code);

	return cause < IDLE_CAUSE_COUNT ? idle_cause_texts[cause] : code;
}

uint8_t job_cause_index(struct job *job, const char *code)
{
	for (size_t i = 0; i < job->n_causes; i++)
		if (!strcmp(job->causes[i], code))
			return (uint8_t)i;
	if (job->n_causes == JOB_CAUSES_MOST)
		return JOB_CAUSES_MOST - 1;
	job->causes[job->n_causes] = code;
	return (uint8_t)job->n_causes++;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct loading {
	struct job *job;
	const struct digest_data *data;
	struct job_rank *rank;
	uint32_t index;
	struct named {
		UT_hash_handle hh;
		uint32_t index;
		char name[];
	} * hosts, *gpus, *jobs;
};

static const char *text_at(const struct loading *l, uint32_t table, uint32_t row, uint32_t column)
{
	return digest_texts_at(&l->job->digest->texts, digest_cell(l->data, table, row, column));
}

static uint64_t number_at(const struct loading *l, uint32_t table, uint32_t row, uint32_t column)
{
	return digest_cell(l->data, table, row, column);
}

/* The index of a name; *is_new: it is the next one. */
static uint32_t index_of(struct named **names, const char *name, bool *is_new)
{
	struct named *named;

	HASH_FIND_STR(*names, name, named);
	*is_new = !named;
	if (named)
		return named->index;
	named = xcalloc(1, sizeof(*named) + strlen(name) + 1);
	memcpy(named->name, name, strlen(name));
	named->index = HASH_COUNT(*names);
	HASH_ADD_KEYPTR(hh, *names, named->name, strlen(named->name), named);
	return named->index;
}

static void names_release(struct named *names)
{
	struct named *named, *next;

	HASH_EMPTY (names, named, next)
		free(named);
}

/* Two hosts of one name differ in their boots. */
static uint32_t host_of(struct loading *l)
{
	const char *name = text_at(l, D_RANK, 0, D_RANK_host);
	const char *boot = text_at(l, D_RANK, 0, D_RANK_boot);
	char *key = xasprintf("%s\n%s", name, boot);
	struct job *job = l->job;
	bool is_new;
	uint32_t index = index_of(&l->hosts, key, &is_new);

	free(key);
	if (is_new) {
		job->hosts = grow(job->hosts, job->n_hosts, sizeof(*job->hosts));
		job->hosts[job->n_hosts++] =
			(struct job_host){.name = *name ? name : "unknown", .boot = boot};
	}
	job->hosts[index].ranks++;
	return index;
}

/* The first GPU of a rank. A simulated one may have no number that is its own: then it is its host's. */
static uint32_t gpu_of(struct loading *l)
{
	const char *uuid;
	struct job *job = l->job;
	uint32_t index;
	bool is_new;
	char *key;

	if (!l->data->tables[D_GPU].n)
		return UINT32_MAX;
	uuid = text_at(l, D_GPU, 0, D_GPU_uuid);
	key = xasprintf("%s\n%u", uuid, l->rank->host);
	index = index_of(&l->gpus, key, &is_new);
	free(key);
	if (is_new) {
		job->gpus = grow(job->gpus, job->n_gpus, sizeof(*job->gpus));
		job->gpus[job->n_gpus++] = (struct job_gpu){uuid, l->rank->host};
	}
	return index;
}

static const char *name_of(struct loading *l)
{
	const struct job_rank *r = l->rank;
	const char *place = text_at(l, D_RANK, 0, D_RANK_place);

	if (!r->number_1 || (*place && !r->world_size))
		return arena_printf(&l->job->texts, "%s.%llu", *r->program ? r->program : "?",
				    (unsigned long long)r->pid);
	if (r->restarts)
		return arena_printf(&l->job->texts, "rank %llu (start %llu)",
				    (unsigned long long)r->number_1 - 1,
				    (unsigned long long)r->restarts + 1);
	return arena_printf(&l->job->texts, "rank %llu", (unsigned long long)r->number_1 - 1);
}

static void load_identity(struct loading *l)
{
	struct job_rank *r = l->rank;
	bool is_new;

	r->job = text_at(l, D_RANK, 0, D_RANK_job);
	r->program = text_at(l, D_RANK, 0, D_RANK_program);
	r->number_1 = number_at(l, D_RANK, 0, D_RANK_rank_1);
	r->world_size = number_at(l, D_RANK, 0, D_RANK_world_size);
	r->restarts = number_at(l, D_RANK, 0, D_RANK_restarts);
	r->pid = number_at(l, D_RANK, 0, D_RANK_pid);
	r->host = host_of(l);
	r->gpu = UINT32_MAX;
	r->name = name_of(l);
	index_of(&l->jobs, r->job, &is_new);
	l->job->n_jobs += is_new;
	l->job->world_size = max_u64(l->job->world_size, r->world_size);
}

static const struct {
	uint32_t of_role;
	enum bucket bucket;
} losses[JOB_LOST_TO] = {
	[JOB_LOST_TO_LOCKS] = {D_ROLE_lock_ns, BUCKET_LOCK},
	[JOB_LOST_TO_OTHERS] = {D_ROLE_not_running_ns, BUCKET_NOT_RUNNING},
	[JOB_LOST_TO_IOCTLS] = {D_ROLE_ioctl_ns, BUCKET_IOCTL},
};

/* The worst calls are there: one that lost most for this reason; else those that are not have lost less than any of them. */
static void find_longest(struct loading *l, enum job_loss_of loss)
{
	const char *why = bucket_names[losses[loss].bucket];
	uint64_t longest_ns = 0, least_ns = UINT64_MAX, lost_ns;

	for (uint32_t i = 0; i < l->data->tables[D_WORST].n; i++) {
		lost_ns = number_at(l, D_WORST, i, D_WORST_lost_ns);
		least_ns = min_u64(least_ns, lost_ns);
		if (!strcmp(text_at(l, D_WORST, i, D_WORST_why), why))
			longest_ns = max_u64(longest_ns, lost_ns);
	}
	if (longest_ns || least_ns != UINT64_MAX)
		l->rank->lost[loss].longest_ns =
			max_u64(l->rank->lost[loss].longest_ns, longest_ns ?: least_ns);
}

/* Between parts that do not follow one another nothing was recorded, as far as is known. */
static void load_time(struct loading *l, bool is_first)
{
	struct job_rank *r = l->rank;
	struct job *job = l->job;
	uint64_t begin_ns = number_at(l, D_RANK, 0, D_RANK_begin_ns), until_ns;
	uint64_t end_ns = add_capped(begin_ns, number_at(l, D_RANK, 0, D_RANK_span_ns));

	if (is_first) {
		r->begin_ns = begin_ns;
		r->span_ns = end_ns - begin_ns;
	} else {
		until_ns = add_capped(r->begin_ns, r->span_ns);
		r->dormant_ns = add_capped(r->dormant_ns, begin_ns - min_u64(until_ns, begin_ns));
		r->begin_ns = min_u64(r->begin_ns, begin_ns);
		r->span_ns = max_u64(until_ns, end_ns) - r->begin_ns;
	}
	job->span_ns = max_u64(job->span_ns, r->span_ns);
}

static uint64_t add_to(uint64_t *sum, uint64_t value)
{
	*sum = add_capped(*sum, value);
	return value;
}

static void load_lost(struct loading *l, enum job_loss_of loss)
{
	for (uint32_t i = 0; i < l->data->tables[D_ROLE].n; i++)
		add_to(&l->rank->lost[loss].ns, number_at(l, D_ROLE, i, losses[loss].of_role));
	find_longest(l, loss);
}

static void load_sums(struct loading *l)
{
	struct job_rank *r = l->rank;
	struct job *job = l->job;
	enum job_loss_of loss;

#define SUM(member) add_to(&r->member, number_at(l, D_RANK, 0, D_RANK_##member))
	SUM(dormant_ns);
	add_to(&job->records, SUM(records));
	add_to(&job->lost_records, SUM(lost_records));
	add_to(&job->calls, SUM(calls));
	add_to(&job->calls_ns, SUM(calls_ns));
	add_to(&job->lost_ns, SUM(lost_ns));
	SUM(outside_ns);
	SUM(operations);
	SUM(timed);
#undef SUM
	r->cost_ppm_1 = max_u64(r->cost_ppm_1, number_at(l, D_RANK, 0, D_RANK_cost_ppm));
	r->place = "";
	for (loss = 0; loss < JOB_LOST_TO; loss++)
		load_lost(l, loss);
	if (l->data->tables[D_GPU].n && number_at(l, D_GPU, 0, D_GPU_exact)) {
		add_to(&r->own_ns, number_at(l, D_GPU, 0, D_GPU_own_ns));
		add_to(&r->own_operations, number_at(l, D_GPU, 0, D_GPU_own_operations));
	}
}

/* ---- operations ------------------------------------------------------------------------------ */

static void load_row(struct loading *l, uint32_t table, uint32_t row)
{
	uint64_t base_ns = number_at(l, D_RANK, 0, D_RANK_base_ns);
	uint64_t timer_ns = number_at(l, D_RANK, 0, D_RANK_timer_base_ns);
	uint64_t host_1_ns = number_at(l, table, row, D_MEET_host_1_ns);
	struct job *job = l->job;
	struct operation_row *m;

	job->rows = grow(job->rows, job->n_rows, sizeof(*job->rows));
	m = &job->rows[job->n_rows++];
	*m = (struct operation_row){
		.key = number_at(l, table, row, D_MEET_key),
		.comm = number_at(l, table, row, D_MEET_comm),
		.bytes = number_at(l, table, row, D_MEET_bytes),
		.function = (uint8_t)number_at(l, table, row, D_MEET_function),
		.rank = l->index,
		.slow = table == D_SLOW,
		.by_host = number_at(l, table, row, D_MEET_by_host),
		.continues = number_at(l, table, row, D_MEET_continues),
		.first = number_at(l, table, row, D_MEET_first),
		.submit_ns = add_capped(base_ns, number_at(l, table, row, D_MEET_submit_ns)),
		.submitted_ns = add_capped(base_ns, number_at(l, table, row, D_MEET_submitted_ns)),
		.host_error_ns = number_at(l, table, row, D_MEET_host_error_ns),
		.host_ns = host_1_ns ? add_capped(base_ns, host_1_ns - 1) : 0,
		.begin_ns = add_capped(timer_ns, number_at(l, table, row, D_MEET_begin_ns)),
		.period_ns = number_at(l, table, row, D_MEET_period_ns),
		.work = number_at(l, table, row, D_MEET_work),
		.place = text_at(l, table, row, D_MEET_place)};
	m->end_ns = add_capped(m->begin_ns, number_at(l, table, row, D_MEET_took_ns));
	for (uint32_t i = 0; i < DIGEST_OPERATION_CAUSES; i++) {
		const char *code = text_at(l, table, row, D_MEET_cause_a + 2 * i);

		m->causes[i].cause = job_cause_index(job, code);
		m->causes[i].ns = number_at(l, table, row, D_MEET_ns_a + 2 * i);
		m->causes[i].where = number_at(l, table, row, D_MEET_where_a + i);
	}
}

/* ---- places ---------------------------------------------------------------------------------- */

static void see_top(struct job_site *site, uint32_t rank, uint64_t ns)
{
	size_t n = ARRAY_SIZE(site->top), i = n;

	while (i && (site->top[i - 1].rank == UINT32_MAX || site->top[i - 1].ns < ns))
		i--;
	if (i == n)
		return;
	memmove(&site->top[i + 1], &site->top[i], (n - i - 1) * sizeof(site->top[0]));
	site->top[i] = (struct job_top){rank, ns};
}

static void forget_top(struct job_site *site, uint32_t rank)
{
	size_t n = ARRAY_SIZE(site->top), i = 0;

	while (i < n && site->top[i].rank != rank)
		i++;
	if (i == n)
		return;
	memmove(&site->top[i], &site->top[i + 1], (n - i - 1) * sizeof(site->top[0]));
	site->top[n - 1] = (struct job_top){UINT32_MAX, 0};
}

/* Takes the key, which tells it from others. */
static struct job_site *site_of_key(struct job *job, char *key, const struct job_site *like)
{
	struct job_site *site;

	HASH_FIND_STR(job->sites, key, site);
	if (!site) {
		site = xcalloc(1, sizeof(*site) + strlen(key) + 1);
		*site = *like;
		site->severity = UINT64_MAX;
		for (size_t i = 0; i < ARRAY_SIZE(site->top); i++)
			site->top[i].rank = UINT32_MAX;
		memcpy(site->key, key, strlen(key) + 1);
		HASH_ADD_STR(job->sites, key, site);
	}
	free(key);
	return site;
}

static char *site_key(const struct job_site *like)
{
	return xasprintf("%s\n%s\n%s\n%s\n%s\n%s\n%llu\n%llu", like->detector, like->function,
			 like->module, like->caller, like->file, like->python,
			 (unsigned long long)like->line,
			 (unsigned long long)(*like->file && like->line ? 0 : like->offset));
}

static struct job_site *site_of(struct loading *l, uint32_t row)
{
	struct job_site like = {
		.detector = text_at(l, D_SITE, row, D_SITE_detector),
		.function = text_at(l, D_SITE, row, D_SITE_function),
		.module = text_at(l, D_SITE, row, D_SITE_module),
		.caller = text_at(l, D_SITE, row, D_SITE_caller),
		.file = text_at(l, D_SITE, row, D_SITE_file),
		.python = text_at(l, D_SITE, row, D_SITE_python),
		.offset = number_at(l, D_SITE, row, D_SITE_offset),
		.line = number_at(l, D_SITE, row, D_SITE_line),
	};

	return site_of_key(l->job, site_key(&like), &like);
}

struct job_site *job_site_nowhere(struct job *job, const char *detector)
{
	struct job_site like = {.detector = detector,
				.function = "",
				.module = "",
				.caller = "",
				.file = "",
				.python = ""};

	return site_of_key(job, site_key(&like), &like);
}

/* Parts of a rank are of one rank. */
static void count_rank(struct job_site *site, uint32_t rank, uint64_t weight_ns, bool is_problem)
{
	if (site->rank_1 != rank + 1) {
		site->rank_1 = rank + 1;
		site->rank_weight_ns = 0;
		site->rank_has_problem = false;
		site->ranks++;
	} else {
		forget_top(site, rank);
	}
	site->problems += is_problem && !site->rank_has_problem;
	site->rank_has_problem |= is_problem;
	site->rank_weight_ns = add_capped(site->rank_weight_ns, weight_ns);
	see_top(site, rank, site->rank_weight_ns);
}

static void load_site(struct loading *l, uint32_t row)
{
	struct job_site *site;
	uint64_t severity = number_at(l, D_SITE, row, D_SITE_severity), weight;

	if (digest_is_rest(l->data, D_SITE, row))
		return;
	site = site_of(l, row);
	weight = number_at(l, D_SITE, row, D_SITE_weight_ns);
#define SUM(member) \
	site->member = add_capped(site->member, number_at(l, D_SITE, row, D_SITE_##member))
	SUM(count);
	SUM(own_ns);
	SUM(others_ns);
	SUM(gain_low_ns);
	SUM(gain_high_ns);
	SUM(idle_gpu_ns);
	SUM(weight_ns);
#undef SUM
	site->severity = min_u64(site->severity, severity);
	site->share_ppm = max_u64(site->share_ppm, number_at(l, D_SITE, row, D_SITE_share_ppm));
	count_rank(site, l->index, weight, !severity);
}

/* ---- tenants of GPUs ------------------------------------------------------------------------- */

/* The last one, with an earlier one that is the same process on the same GPU, in an earlier part. */
static void join_tenant(struct job *job)
{
	const struct job_tenant *t = &job->tenants[job->n_tenants - 1];

	for (size_t i = job->n_tenants - 1; i && job->tenants[i - 1].rank == t->rank; i--) {
		struct job_tenant *earlier = &job->tenants[i - 1];

		if (earlier->pid != t->pid || strcmp(earlier->uuid, t->uuid) != 0)
			continue;
		earlier->until_ns = max_u64(earlier->until_ns, t->until_ns);
		earlier->waited_ns = add_capped(earlier->waited_ns, t->waited_ns);
		earlier->turn_ns = max_u64(earlier->turn_ns, t->turn_ns);
		job->n_tenants--;
		return;
	}
}

static void load_tenant(struct loading *l, uint32_t row)
{
	const char *boot = text_at(l, D_RANK, 0, D_RANK_boot);
	struct job *job = l->job;
	struct job_tenant *t;

	job->tenants = grow(job->tenants, job->n_tenants, sizeof(*job->tenants));
	t = &job->tenants[job->n_tenants++];
	*t = (struct job_tenant){.rank = l->index,
				 .place = *boot ? boot : job->hosts[l->rank->host].name,
				 .uuid = text_at(l, D_TENANT, row, D_TENANT_uuid),
				 .gpu = text_at(l, D_TENANT, row, D_TENANT_name),
				 .directory = text_at(l, D_TENANT, row, D_TENANT_directory),
				 .percentage = text_at(l, D_TENANT, row, D_TENANT_percentage),
				 .pid = number_at(l, D_TENANT, row, D_TENANT_pid),
				 .user = number_at(l, D_TENANT, row, D_TENANT_user),
				 .from_ns =
					 add_capped(number_at(l, D_RANK, 0, D_RANK_begin_ns),
						    number_at(l, D_TENANT, row, D_TENANT_from_ns)),
				 .waited_ns = number_at(l, D_TENANT, row, D_TENANT_waited_ns),
				 .server = number_at(l, D_TENANT, row, D_TENANT_server),
				 .turn_ns = number_at(l, D_TENANT, row, D_TENANT_turn_ns),
				 .server_user = number_at(l, D_TENANT, row, D_TENANT_server_user),
				 .client = number_at(l, D_TENANT, row, D_TENANT_client)};
	t->until_ns = add_capped(t->from_ns, number_at(l, D_TENANT, row, D_TENANT_used_ns));
	join_tenant(job);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void load_loss(struct loading *l, uint32_t row)
{
	const char *kind = text_at(l, D_LOSS, row, D_LOSS_kind);
	struct job *job = l->job;
	struct job_loss *loss;
	size_t i = 0;

	while (i < job->n_losses && strcmp(job->losses[i].kind, kind) != 0)
		i++;
	if (i == job->n_losses) {
		job->losses = grow(job->losses, job->n_losses, sizeof(*job->losses));
		job->losses[job->n_losses++] = (struct job_loss){.kind = kind};
	}
	loss = &job->losses[i];
	loss->count = add_capped(loss->count, number_at(l, D_LOSS, row, D_LOSS_count));
	if (loss->last_1 == l->index + 1)
		return;
	loss->last_1 = l->index + 1;
	if (loss->ranks < JOB_NAMED)
		loss->first[loss->ranks] = l->index;
	loss->ranks++;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void load_part(struct loading *l, uint32_t row)
{
	struct job_part **last = &l->rank->parts;
	uint64_t begin_ns = number_at(l, D_RANK, 0, D_RANK_begin_ns);
	struct job_part *part = arena_take(&l->job->texts, xcalloc(1, sizeof(*part)));

	*part = (struct job_part){
		.recording = text_at(l, D_PART, row, D_PART_recording),
		.first = number_at(l, D_PART, row, D_PART_first),
		.last = number_at(l, D_PART, row, D_PART_last),
		.parts = number_at(l, D_PART, row, D_PART_parts),
		.removed_calls = number_at(l, D_PART, row, D_PART_removed_calls),
		.newest = number_at(l, D_PART, row, D_PART_newest),
		.from_ns = add_capped(begin_ns, number_at(l, D_PART, row, D_PART_from_ns)),
	};
	part->until_ns = add_capped(part->from_ns, number_at(l, D_PART, row, D_PART_lasted_ns));
	while (*last)
		last = &(*last)->next;
	*last = part;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Or parts of a rank, behind those that are loaded already. */
static void load_rank(struct loading *l, bool is_first)
{
	if (is_first)
		load_identity(l);
	if (l->rank->gpu == UINT32_MAX)
		l->rank->gpu = gpu_of(l);
	load_time(l, is_first);
	load_sums(l);
	l->rank->sampled |=
		l->data->tables[D_MEET].n >=
		digest_rows_at(&l->job->digest->schema.tables[D_MEET], l->job->digest->level);
	for (uint32_t i = 0; i < l->data->tables[D_MEET].n; i++)
		load_row(l, D_MEET, i);
	for (uint32_t i = 0; i < l->data->tables[D_SLOW].n; i++)
		load_row(l, D_SLOW, i);
	for (uint32_t i = 0; i < l->data->tables[D_SITE].n; i++)
		load_site(l, i);
	for (uint32_t i = 0; i < l->data->tables[D_LOSS].n; i++)
		load_loss(l, i);
	for (uint32_t i = 0; i < l->data->tables[D_TENANT].n; i++)
		load_tenant(l, i);
	for (uint32_t i = 0; i < l->data->tables[D_PART].n; i++)
		load_part(l, i);
	job_sum_add(l->job, l->data, l->index);
}

#define BOOT_BYTES 8 /* of it, to tell hosts apart */

/* Where several have one name, it says more. */
static void distinguish_hosts(struct job *job)
{
	uint32_t *hosts = xcalloc(job->n_hosts + 1, sizeof(*hosts)); /* by the index of a name */
	uint32_t *name = xcalloc(job->n_hosts + 1, sizeof(*name));
	struct named *names = NULL;
	bool is_new;

	for (size_t i = 0; i < job->n_hosts; i++) {
		name[i] = index_of(&names, job->hosts[i].name, &is_new);
		hosts[name[i]]++;
	}
	for (size_t i = 0; i < job->n_hosts; i++) {
		struct job_host *host = &job->hosts[i];

		if (hosts[name[i]] > 1)
			host->name = arena_printf(&job->texts, "%s (boot %.*s)", host->name,
						  BOOT_BYTES, *host->boot ? host->boot : "unknown");
	}
	names_release(names);
	free(hosts);
	free(name);
}

static void distinguish_jobs(struct job *job)
{
	for (size_t i = 0; job->n_jobs > 1 && i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];

		if (*r->job)
			r->name = arena_printf(&job->texts, "%s of job %s", r->name, r->job);
	}
}

/* Of one job whose size is known: the numbers that nobody has. */
static void find_missing(struct job *job)
{
	uint8_t *there;

	if (job->n_jobs != 1 || !job->world_size || job->world_size > 1u << 24)
		return;
	there = xcalloc(job->world_size, 1);
	for (uint64_t i = 0; i < job->n_ranks; i++)
		if (job->ranks[i].number_1 && job->ranks[i].number_1 <= job->world_size)
			there[job->ranks[i].number_1 - 1] = 1;
	for (uint64_t i = 0; i < job->world_size; i++) {
		if (there[i])
			continue;
		job->missing = grow(job->missing, job->n_missing, sizeof(*job->missing));
		job->missing[job->n_missing++] = (uint32_t)i;
	}
	free(there);
}

void job_init(struct job *job, const struct digest *digest)
{
	struct digest_rank **ranks;
	struct digest_data data;
	struct loading l = {.job = job, .data = &data};
	size_t n, i;

	*job = (struct job){.digest = digest, .straggler = UINT32_MAX};
	job_cause_index(job, "");
	ranks = digest_ranks(digest, &n);
	job->ranks = xcalloc(n + 1, sizeof(*job->ranks));
	for (i = 0; i < n; i++) {
		bool is_first = !i || !digest_rank_is_same(ranks[i - 1], ranks[i]);

		job->n_ranks += is_first;
		l.index = (uint32_t)job->n_ranks - 1;
		l.rank = &job->ranks[l.index];
		digest_rank_data(digest, ranks[i], &data);
		load_rank(&l, is_first);
		digest_data_release(&data);
	}
	free(ranks);
	names_release(l.hosts);
	names_release(l.gpus);
	names_release(l.jobs);
	distinguish_hosts(job);
	distinguish_jobs(job);
	find_missing(job);
	job_share(job);
	job_align_hosts(job);
	job_begin(job);
	job_match(job);
	job_cover(job);
	job_differ(job);
}

void job_release(struct job *job)
{
	struct job_site *site, *next;

	HASH_EMPTY (job->sites, site, next)
		free(site);
	job_sums_release(job);
	free(job->ranks);
	free(job->hosts);
	free(job->gpus);
	free(job->missing);
	free(job->findings);
	free(job->losses);
	free(job->tenants);
	free(job->rows);
	rank_parts_release(&job->parts);
	arena_release(&job->texts);
}
