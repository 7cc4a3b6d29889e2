/*
 * analyzer/digest/make_sharing.c: which GPUs the processes of a rank used, when, and what of MPS they found: from which the
 * report of all ranks tells who shared one. Called by make.c.
 */
#include <stdlib.h>
#include "make.h"
#include "findings/sharing.h"

static uint64_t gpu_waits_ns(const struct digest_builder *m, const struct process *process)
{
	const struct account sum = account_sum(&m->a->accounts, process);

	return sum.bucket_ns[BUCKET_GPU_INTENDED] + sum.bucket_ns[BUCKET_GPU_HIDDEN] +
	       sum.bucket_ns[BUCKET_QUEUE];
}

static void add_tenant(struct digest_builder *m, const struct tenant *t)
{
	const struct mps *mps = &t->process->mps;
	uint64_t *row = digest_data_add(&m->data, D_TENANT);

	row[D_TENANT_uuid] = digest_text(m, t->gpu->uuid);
	row[D_TENANT_name] = digest_text(m, t->gpu->name);
	row[D_TENANT_pid] = t->process->trace->pid;
	row[D_TENANT_from_ns] = t->use->first_ns - min_u64(m->begin_ns, t->use->first_ns);
	row[D_TENANT_used_ns] = t->use->last_ns - min_u64(t->use->first_ns, t->use->last_ns);
	row[D_TENANT_waited_ns] = gpu_waits_ns(m, t->process);
	row[D_TENANT_client] = t->client;
	row[D_TENANT_turn_ns] = sharing_turn_ns(&m->a->stats, t->process);
	if (row[D_TENANT_turn_ns])
		row[D_TENANT_server_user] = t->process->mps_before.server_uid;
	if (!mps->ns)
		return;
	row[D_TENANT_user] = mps->uid;
	row[D_TENANT_server] = mps->server;
	row[D_TENANT_directory] = digest_text(m, mps->directory);
	row[D_TENANT_percentage] = digest_text(m, mps->percentage);
}

void digest_make_sharing(struct digest_builder *m)
{
	struct tenant *tenants;
	size_t i, n;

	tenants = tenants_find(&m->a->stats, &n);
	for (i = 0; i < n; i++)
		add_tenant(m, &tenants[i]);
	free(tenants);
}
