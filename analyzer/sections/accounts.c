/*
 * analyzer/sections/accounts.c: what calls took, should have taken and lost, by function and
 * thread; and the kernel module's part by request. Called by waits.c.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "text/text.h"
#include "base/median.h"

/* ---- the kernel module ---------------------------------------------------------------------- */

struct ioctl_row {
	const char *request;
	uint64_t count, total_ns;
};

static const struct column ioctl_columns[] = {
	COLUMN(struct ioctl_row, request, "request", UNIT_TEXT),
	COLUMN(struct ioctl_row, count, "times", UNIT_COUNT),
	COLUMN(struct ioctl_row, total_ns, "in all", UNIT_NS),
};

static const struct table_kind ioctl_kind = {
	TABLE("ioctls", "KERNEL MODULE: ioctl by request", struct ioctl_row, ioctl_columns),
	.detail = true,
	.text_rows = 6,
};

static int by_ioctl(const void *a, const void *b)
{
	const struct ioctl_row *x = a, *y = b;

	return COMPARE(y->total_ns, x->total_ns);
}

void report_ioctls(struct report *report, const struct accounting *a)
{
	struct ioctl_row *rows = xcalloc(a->n_ioctls + 1, sizeof(*rows));

	for (size_t i = 0; i < a->n_ioctls; i++)
		rows[i] = (struct ioctl_row){
			.request = report_text(report, "0x%llx",
					       (unsigned long long)a->ioctls[i].request),
			.count = a->ioctls[i].count,
			.total_ns = a->ioctls[i].ns};
	qsort(rows, a->n_ioctls, sizeof(*rows), by_ioctl);
	report_add(report, &ioctl_kind, rows, a->n_ioctls);
}

/* ---- accounts ------------------------------------------------------------------------------- */

struct account_row {
	const char *process, *function, *mostly;
	uint64_t pid, thread, calls, total_ns, expected_ns, lost_ns, kernel_work_ns;
#define BUCKET(name, key, text) uint64_t key##_ns;
	BUCKETS(BUCKET)
#undef BUCKET
};

static const struct column function_columns[] = {
	COLUMN(struct account_row, function, "function", UNIT_TEXT),
	COLUMN(struct account_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct account_row, total_ns, "took", UNIT_NS),
	COLUMN(struct account_row, expected_ns, "expected", UNIT_NS_IF_KNOWN),
	COLUMN(struct account_row, gpu_intended_ns, "GPU", UNIT_NS),
	COLUMN(struct account_row, lost_ns, "lost", UNIT_NS),
	COLUMN_TEXT(struct account_row, mostly, "most by"),
	COLUMN_JSON(struct account_row, kernel_work_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, own_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, loading_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, gpu_hidden_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, lock_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, ioctl_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, queue_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, not_running_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, unexplained_ns, UNIT_NS),
};

static const struct column account_columns[] = {
	COLUMN_JSON(struct account_row, process, UNIT_TEXT),
	COLUMN_JSON(struct account_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct account_row, thread, UNIT_PLAIN),
	COLUMN_JSON(struct account_row, function, UNIT_TEXT),
	COLUMN_JSON(struct account_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct account_row, total_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, expected_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct account_row, lost_ns, UNIT_NS),
	COLUMN_JSON(struct account_row, kernel_work_ns, UNIT_NS),
#define BUCKET(name, key, text) COLUMN_JSON(struct account_row, key##_ns, UNIT_NS),
	BUCKETS(BUCKET)
#undef BUCKET
};

static const struct table_kind function_kind = {
	TABLE("function_accounts", "ACCOUNTS: what calls took, should have taken, and lost",
	      struct account_row, function_columns),
	.detail = true,
	.text_rows = 12,
};

static const struct table_kind account_kind = {
	TABLE("accounts", "ACCOUNTS, by thread", struct account_row, account_columns),
	.detail = true,
	.json_only = true,
};

static int by_loss(const void *a, const void *b)
{
	const struct account_row *x = a, *y = b;

	return COMPARE(y->lost_ns, x->lost_ns) ?: COMPARE(y->total_ns, x->total_ns) ?:
	       COMPARE(x->thread, y->thread) ?: strcmp(x->function, y->function);
}

static struct account_row account_row(const struct accounting *a, uint32_t fn,
				      const struct account *account)
{
	size_t i, best = BUCKET_UNEXPLAINED;
	struct account_row row = {.function = text_function(a->model->set, fn),
				  .calls = account->calls,
				  .total_ns = account->total_ns,
				  .expected_ns = account->expected_ns,
				  .lost_ns = account_lost(account),
				  .kernel_work_ns = account->kernel_ns,
#define BUCKET(name, key, text) .key##_ns = account->bucket_ns[BUCKET_##name],
				  BUCKETS(BUCKET)
#undef BUCKET
	};

	for (i = 0; i < BUCKET_COUNT; i++)
		if (account_lost_by(account, (enum bucket)i) >
		    account_lost_by(account, (enum bucket)best))
			best = i;
	row.mostly = row.lost_ns ? bucket_names[best] : NULL;
	return row;
}

static bool is_about(const struct subject *s, const struct thread_account *c, uint32_t fn)
{
	return (s->kind != SUBJECT_THREAD || subject_is_thread(s, c->thread)) &&
	       (s->kind != SUBJECT_CALL || fn == s->fn);
}

static void add_functions(struct report *report, const struct accounting *a,
			  const struct subject *s)
{
	size_t n_functions = a->model->set->functions.count, i, j, n = 0;
	struct account *sums = xcalloc(n_functions, sizeof(*sums));
	struct account_row *rows = xcalloc(n_functions, sizeof(*rows));

	for (i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		for (j = 0; c && j < c->functions.n; j++)
			if (is_about(s, c, c->functions.fns[j]))
				account_add(&sums[c->functions.fns[j]], &c->functions.all[j]);
	}
	for (i = 0; i < n_functions; i++)
		if (sums[i].calls)
			rows[n++] = account_row(a, (uint32_t)i, &sums[i]);
	qsort(rows, n, sizeof(*rows), by_loss);
	report_add(report, &function_kind, rows, n);
	free(sums);
}

static void add_accounts(struct report *report, const struct accounting *a, const struct subject *s)
{
	struct account_row *rows = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		for (j = 0; c && j < c->functions.n; j++) {
			if (!is_about(s, c, c->functions.fns[j]))
				continue;
			rows = grow(rows, n, sizeof(*rows));
			rows[n] = account_row(a, c->functions.fns[j], &c->functions.all[j]);
			rows[n].process = text_process(&report->arena, c->thread->process->trace);
			rows[n].pid = c->thread->process->trace->pid;
			rows[n++].thread = c->thread->tid;
		}
	}
	if (rows)
		qsort(rows, n, sizeof(*rows), by_loss);
	report_add(report, &account_kind, rows, n);
}

void report_accounts(struct report *report, const struct accounting *a, const struct subject *s)
{
	if (report_rows(report, &function_kind, 1))
		add_functions(report, a, s);
	if (report_rows(report, &account_kind, 1))
		add_accounts(report, a, s);
}
