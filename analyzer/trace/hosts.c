/*
 * analyzer/trace/hosts.c: the machines that the traces of a set were made on, and their clocks.
 * Called once, when all traces are open and in order.
 */
#include <stdlib.h>
#include <string.h>
#include "trace.h"
#include "base/hash.h"

/* Number of a key, such as a boot id. */
struct numbered {
	char *key;
	size_t number;
	UT_hash_handle hh;
};

/* The key's number; the next one, *n, if it is new. Takes the key. */
static size_t number_of(struct numbered **all, char *key, size_t *n)
{
	struct numbered *found;

	HASH_FIND_STR(*all, key, found);
	if (found) {
		free(key);
		return found->number;
	}
	found = xcalloc(1, sizeof(*found));
	found->key = key;
	found->number = (*n)++;
	HASH_ADD_KEYPTR(hh, *all, found->key, strlen(found->key), found);
	return found->number;
}

static void free_numbers(struct numbered *all)
{
	struct numbered *one, *next;

	HASH_EMPTY (all, one, next) {
		free(one->key);
		free(one);
	}
}

/* ---- hosts ---------------------------------------------------------------------------------- */

static const char *known(const struct trace *trace, const char *key)
{
	const char *text = metadata_text(&trace->metadata, key);

	return text && *text ? text : NULL;
}

/* NULL: unknown. */
static char *host_key(const struct trace *trace)
{
	const char *boot = known(trace, "boot_id"), *name = known(trace, "hostname");

	if (boot)
		return xasprintf("boot %s", boot);
	return name ? xasprintf("name %s", name) : NULL;
}

static void join(struct trace_set *set, struct trace *trace, size_t number)
{
	int64_t cpus = metadata_number(&trace->metadata, "cpus", 0);
	struct host *host;

	while (set->n_hosts <= number) {
		set->hosts = grow(set->hosts, set->n_hosts, sizeof(*set->hosts));
		set->hosts[set->n_hosts++] = (struct host){0};
	}
	host = &set->hosts[number];
	host->traces++;
	host->name = host->name ?: known(trace, "hostname");
	host->boot = host->boot ?: known(trace, "boot_id");
	if (cpus > 0 && (!host->cpus || (uint64_t)cpus < host->cpus))
		host->cpus = (uint64_t)cpus;
}

#define BOOT_SHOWN 8 /* characters of a boot id that tell two apart */

/* another: a host has the same name. */
static char *label_of(const struct host *host, bool another)
{
	if (!host->name)
		return host->boot ? xasprintf("boot:%.*s", BOOT_SHOWN, host->boot)
				  : xstrdup("unknown");
	if (another && host->boot)
		return xasprintf("%s:%.*s", host->name, BOOT_SHOWN, host->boot);
	return xstrdup(host->name);
}

static void name_hosts(struct trace_set *set)
{
	struct numbered *names = NULL;
	size_t *numbers = xcalloc(set->n_hosts, sizeof(*numbers));
	size_t *uses = xcalloc(set->n_hosts, sizeof(*uses)), i, n = 0;

	for (i = 0; i < set->n_hosts; i++) {
		numbers[i] = number_of(&names, xstrdup(set->hosts[i].name ?: ""), &n);
		uses[numbers[i]]++;
	}
	for (i = 0; i < set->n_hosts; i++) {
		struct host *host = &set->hosts[i];

		host->index = (uint32_t)i;
		host->alone = set->n_hosts == 1;
		host->label = label_of(host, uses[numbers[i]] > 1);
	}
	free_numbers(names);
	free(numbers);
	free(uses);
}

/* ---- clocks --------------------------------------------------------------------------------- */

/* A trace whose metadata is lost: was it made on the clock of the other one? Clocks of one boot are
 * measured to a few parts in a million. */
static bool same_frequency(const struct trace *lost, const struct trace *other)
{
	uint64_t a = lost->board.head.frequency, b = other->metadata.frequency;

	return a && b && (a > b ? a - b : b - a) < b / 10000;
}

/* The trace on whose clock one without metadata is taken to be; NULL: none, or it knows its own. */
static const struct trace *clock_of(const struct trace *lost, const struct trace_set *set)
{
	for (size_t i = 0; i < set->n_traces && !lost->metadata.frequency; i++)
		if (same_frequency(lost, set->traces[i]))
			return set->traces[i];
	return NULL;
}

/* Traces of one host that count with the same counter get the timeline of the first of them. */
static void share_timelines(struct trace_set *set)
{
	struct numbered *clocks = NULL;
	size_t *firsts = xcalloc(set->n_traces, sizeof(*firsts)), i, n = 0;

	for (i = 0; i < set->n_traces; i++) {
		struct trace *trace = set->traces[i];
		const char *boot = known(trace, "boot_id"), *source = known(trace, "clock_source");
		size_t before = n, number;

		if (!boot || !source || !trace->metadata.frequency)
			continue;
		number = number_of(&clocks, xasprintf("%s\n%s", boot, source), &n);
		if (number == before)
			firsts[number] = i;
		trace->timeline = set->traces[firsts[number]]->timeline;
	}
	free_numbers(clocks);
	free(firsts);
}

/* ---- all of it ------------------------------------------------------------------------------ */

#define UNTOLD SIZE_MAX

/* The host of each trace, or UNTOLD; returns how many are known. */
static size_t number_hosts(const struct trace_set *set, size_t *hosts)
{
	struct numbered *numbers = NULL;
	size_t i, n = 0;

	for (i = 0; i < set->n_traces; i++) {
		char *key = host_key(set->traces[i]);

		hosts[i] = key ? number_of(&numbers, key, &n) : UNTOLD;
	}
	free_numbers(numbers);
	return n;
}

/* Clock and host of a trace that does not tell them, as far as others do. */
static size_t complete(struct trace *trace, const struct trace_set *set, const size_t *hosts,
		       size_t n)
{
	const struct trace *like = clock_of(trace, set);

	if (like) {
		warn("%s: no metadata: its times are taken to be on the clock of %s", trace->dir,
		     like->dir);
		trace->timeline = like->timeline;
	}
	if (hosts[trace->index] != UNTOLD)
		return hosts[trace->index];
	if (like && hosts[like->index] != UNTOLD)
		return hosts[like->index];
	return n > 1 ? n : 0;
}

void hosts_find(struct trace_set *set)
{
	size_t *known = xcalloc(set->n_traces, sizeof(*known));
	size_t *hosts = xcalloc(set->n_traces, sizeof(*hosts));
	size_t i, n = number_hosts(set, known);

	share_timelines(set);
	for (i = 0; i < set->n_traces; i++) {
		hosts[i] = complete(set->traces[i], set, known, n);
		join(set, set->traces[i], hosts[i]);
	}
	name_hosts(set);
	for (i = 0; i < set->n_traces; i++)
		set->traces[i]->host = &set->hosts[hosts[i]];
	free(known);
	free(hosts);
}

void hosts_release(struct trace_set *set)
{
	for (size_t i = 0; i < set->n_hosts; i++)
		free(set->hosts[i].label);
	free(set->hosts);
}
