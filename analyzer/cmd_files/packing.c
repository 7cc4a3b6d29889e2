/*
 * analyzer/cmd_files/packing.c: traces of a set become containers. Called by `cudaspy pack` and `cudaspy run --pack`.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "packing.h"
#include "live/processes.h"
#include "pack/pack.h"

/* ---- which are finished ----------------------------------------------------------------------- */

static bool is_mapped(const struct trace *trace)
{
	char *path = xasprintf("%s/.board", trace->dir);
	struct stat st;
	bool yes = !stat(path, &st) && recorded_has(st.st_ino);

	free(path);
	return yes;
}

/* Has its process ended, so that the trace is what it will be? False after a message. */
static bool packing_is_finished(const struct packing *p, const struct trace *trace)
{
	if (trace->container || !trace->board.present || trace->board.head.ended)
		return true;
	if (is_mapped(trace)) {
		warn("%s: %s: process %u is running: not packed", p->verb, trace->dir, trace->pid);
		return false;
	}
	if (trace->live && !p->unfinished) {
		warn("%s: %s: process %u did not end in order, and whether it still runs%s%s cannot be "
		     "known here: not packed (--unfinished packs it)",
		     p->verb, trace->dir, trace->pid, trace->alive ? "" : " on ",
		     trace->alive ? ""
				  : metadata_text(&trace->metadata, "hostname") ?: "another host");
		return false;
	}
	return true;
}

static void count(struct packing *p, bool packed)
{
	if (packed)
		p->packed++;
	else
		p->left++;
}

/* ---- where they are --------------------------------------------------------------------------- */

void packing_in_place(struct packing *p, const struct trace_set *set)
{
	for (size_t i = 0; i < set->n_traces; i++)
		if (!set->traces[i]->container)
			count(p, packing_is_finished(p, set->traces[i]) &&
					 !pack_in_place(set->traces[i]->dir));
}

/* ---- elsewhere -------------------------------------------------------------------------------- */

/* What its folder is called: as where it lies. The caller frees. */
static char *name_of(const struct trace *trace)
{
	const char *folder =
		trace->container ? trace->container->members[trace->first_member].folder : "";
	char *real = *folder ? NULL : realpath(trace->dir, NULL);
	char *name = xstrdup(path_basename(*folder ? folder : real ? real : trace->dir));

	free(real);
	return name;
}

/* Is that name taken by another trace of the set, before it? On several hosts processes may have the same numbers. */
static bool is_taken(char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* The names of all of them, each another one; the caller frees both. */
static char **names_of(const struct trace_set *set)
{
	char **names = xcalloc(set->n_traces, sizeof(*names));

	for (size_t i = 0; i < set->n_traces; i++) {
		const struct trace *trace = set->traces[i];
		const char *host = metadata_text(&trace->metadata, "hostname");
		unsigned int number = 2;
		char *name = name_of(trace), *base = name;

		if (is_taken(names, i, name) && host && *host && !strchr(host, '/'))
			name = xasprintf("%s-%s", host, base);
		while (is_taken(names, i, name)) {
			if (name != base)
				free(name);
			name = xasprintf("%u-%s", number++, base);
		}
		if (name != base)
			free(base);
		names[i] = name;
	}
	return names;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int add(struct writer *w, const struct trace *trace, const char *folder)
{
	return trace->container ? pack_add_packed(w, trace->container, trace->first_member, folder)
				: pack_add_directory(w, trace->dir, folder);
}

/* What the container's mode is taken from: a directory, or another container. */
static const char *like(const struct trace *trace)
{
	return trace->container ? trace->container->path : trace->dir;
}

static void remove_packed(const struct trace_set *set, const bool *packed)
{
	for (size_t i = 0; i < set->n_traces; i++)
		if (packed[i] && !set->traces[i]->container)
			pack_remove_directory(set->traces[i]->dir);
}

void packing_into_file(struct packing *p, const struct trace_set *set, const char *path,
		       bool remove)
{
	bool *packed = xcalloc(set->n_traces, sizeof(*packed));
	char **names = names_of(set);
	struct writer w;
	size_t i, first = SIZE_MAX;
	int err = make_parents(path) ?: writer_begin(&w, path);

	if (err) {
		p->left += set->n_traces;
	} else {
		for (i = 0; !err && i < set->n_traces; i++) {
			packed[i] = packing_is_finished(p, set->traces[i]);
			if (packed[i]) {
				first = first == SIZE_MAX ? i : first;
				err = add(&w, set->traces[i], names[i]);
			}
		}
		err = err
			      ?: first == SIZE_MAX ? -ENOENT
						   : pack_finish(&w, like(set->traces[first]));
		if (err)
			writer_abandon(&w);
		writer_release(&w);
		for (i = 0; i < set->n_traces; i++)
			count(p, !err && packed[i]);
		if (!err && remove)
			remove_packed(set, packed);
	}
	free_names(names, set->n_traces);
	free(packed);
}

static int pack_one(const struct trace *trace, const char *path, const char *folder)
{
	struct writer w;
	struct stat st;
	int err;

	if (!lstat(path, &st)) {
		warn("%s: is there already: nothing is packed over it", path);
		return -EEXIST;
	}
	err = writer_begin(&w, path);
	if (err)
		return err;
	err = add(&w, trace, folder) ?: pack_finish(&w, like(trace));
	if (err)
		writer_abandon(&w);
	writer_release(&w);
	return err;
}

void packing_into_folder(struct packing *p, const struct trace_set *set, const char *folder,
			 bool remove)
{
	bool *packed = xcalloc(set->n_traces, sizeof(*packed));
	char **names = names_of(set);

	for (size_t i = 0; i < set->n_traces; i++) {
		char *path = xasprintf("%s/%s", folder, names[i]);

		packed[i] = packing_is_finished(p, set->traces[i]) &&
			    !pack_one(set->traces[i], path, names[i]);
		count(p, packed[i]);
		free(path);
	}
	if (remove)
		remove_packed(set, packed);
	free_names(names, set->n_traces);
	free(packed);
}
