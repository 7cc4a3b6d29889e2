/*
 * analyzer/findings/baseline.c: findings that were there before. Called by the gate and by
 * `report`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "baseline.h"
#include "detector.h"

#define SCHEMA "cudaspy-report-2"

/* ---- the report of then ---------------------------------------------------------------------- */

static const char *text_of(json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static uint64_t number_of(json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	return value > 0 ? (uint64_t)value : 0;
}

static int wrong(const char *path, const char *what)
{
	warn("%s: %s", path, what);
	return -EINVAL;
}

int baseline_take(struct baseline *b, const char *path, json_t *root)
{
	const char *schema = text_of(root, "schema");
	json_t *findings = json_object_get(root, "findings"), *row;
	size_t i;

	b->path = path;
	b->root = root;
	if (!schema || strcmp(schema, SCHEMA) || !json_is_array(findings))
		return wrong(path, "not a report of cudaspy (" SCHEMA ") in JSON");
	b->all = xcalloc(json_array_size(findings), sizeof(*b->all));
	json_array_foreach(findings, i, row)
	{
		struct known_finding *known = &b->all[b->n++];

		*known = (struct known_finding){
			.id = text_of(row, "id"),
			.function = text_of(row, "function"),
			.module = text_of(row, "module"),
			.caller = text_of(row, "caller"),
			.file = text_of(row, "file"),
			.library_caller = text_of(row, "library_caller"),
			.line = number_of(row, "line"),
			.elsewhere = !strcmp(text_of(row, "elsewhere") ?: "no", "yes"),
			.cost_ns = number_of(row, "cost_ns"),
		};
		/* Older reports have a number there, which says nothing. */
		if (!strcmp(text_of(row, "cost_known") ?: "yes", "no"))
			known->cost_ns = UNKNOWN_NS;
		if (!known->id)
			return wrong(path, "a finding without an id");
	}
	return 0;
}

int baseline_read(struct baseline *b, const char *path)
{
	FILE *in = open_regular(path);
	json_error_t error;
	json_t *root;

	if (!in) {
		int err = -errno;

		if (err == -ENOENT)
			warn("%s: %s", path, strerror(ENOENT));
		return err;
	}
	root = json_loadf(in, 0, &error);
	fclose(in);
	if (root)
		return baseline_take(b, path, root);
	warn("%s:%d: no JSON: %s", path, error.line, error.text);
	return -EINVAL;
}

void baseline_release(struct baseline *b)
{
	free(b->all);
	json_decref(b->root);
	*b = (struct baseline){0};
}

/* ---- then and now ---------------------------------------------------------------------------- */

static bool alike(const char *x, const char *y)
{
	return !strcmp(x ?: "", y ?: "");
}

static bool matches(const struct known_finding *known, const struct finding_place *place,
		    bool exactly)
{
	if (known->taken || !alike(known->function, place->function) ||
	    !alike(path_basename(known->module), path_basename(place->module)))
		return false;
	/* Which place costs most may change. */
	if (!exactly && known->elsewhere && place->elsewhere)
		return true;
	/* The caller of NVIDIA's library is known from stacks, which are a sample; older reports
	 * had none. */
	if (!exactly && place->library && (!known->library_caller || !place->library_caller))
		return true;
	return alike(known->caller, place->caller) &&
	       alike(known->library_caller, place->library_caller) &&
	       alike(path_basename(known->file), path_basename(place->file)) &&
	       (!exactly || known->line == place->line);
}

static void pair(struct baseline *b, struct finding *f, struct known_finding *known)
{
	uint64_t was = known->cost_ns, is = cost_known_ns(&f->cost);
	/* A cost that was unknown and now is known is no change for the worse. */
	bool worse = was != UNKNOWN_NS && is > was + was / BASELINE_WORSE_PART &&
		     is > was + BASELINE_WORSE_NS;

	known->taken = true;
	f->gate.before_ns = known->cost_ns;
	f->gate.compared = worse ? COMPARED_WORSE : COMPARED_SAME;
	*(worse ? &b->worse : &b->same) += 1;
}

static void look_up(struct baseline *b, struct finding *f, bool exactly)
{
	for (size_t i = 0; i < b->n && !f->gate.compared; i++)
		if (!strcmp(b->all[i].id, f->detector->id) &&
		    matches(&b->all[i], &f->place, exactly))
			pair(b, f, &b->all[i]);
}

void baseline_compare(struct baseline *b, struct finding *findings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		look_up(b, &findings[i], true);
	for (size_t i = 0; i < n; i++) {
		look_up(b, &findings[i], false);
		if (findings[i].gate.compared)
			continue;
		findings[i].gate.compared = COMPARED_NEW;
		findings[i].gate.before_ns = UNKNOWN_NS;
		b->fresh++;
	}
	b->gone = b->n - b->worse - b->same;
}
