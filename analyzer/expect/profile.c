/*
 * analyzer/expect/profile.c: what calls cost on a machine, as a JSON file. Written by calibrate,
 * read by report.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "profile.h"
#include "base/outfile.h"
#include "trace/names.h"
#include "base/median.h"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

/* Sizes beyond the largest one measured are told from it up to this many times it. */
#define BEYOND 4

/* Cold calls there must be to write down what one costs. */
#define COLD_ENOUGH 8

/* ---- in memory ------------------------------------------------------------------------------- */

void profile_release(struct profile *p)
{
	for (size_t i = 0; i < p->n_classes; i++)
		free(p->classes[i].function);
	for (size_t i = 0; i < p->n_gpus; i++)
		free(p->gpus[i]);
	free(p->classes);
	free(p->gpus);
	free(p->path);
	free(p->version);
	free(p->driver);
	free(p->date);
	*p = (struct profile){0};
}

/* All of a key but the size. */
static uint64_t kind_of_key(const struct class_key *key)
{
	return (uint64_t)key->flags << 16 | (uint64_t)key->what << 8 | key->kinds;
}

static int by_class(const void *a, const void *b)
{
	const struct profile_class *x = a, *y = b;

	return strcmp(x->function, y->function) ?:
	       COMPARE(kind_of_key(&x->key), kind_of_key(&y->key)) ?:
	       COMPARE(x->key.bucket, y->key.bucket);
}

static void sort_classes(struct profile *p)
{
	if (p->n_classes)
		qsort(p->classes, p->n_classes, sizeof(*p->classes), by_class);
}

static void add_class(struct profile *p, const char *function, const struct profile_class *class)
{
	p->classes = grow(p->classes, p->n_classes, sizeof(*p->classes));
	p->classes[p->n_classes] = *class;
	p->classes[p->n_classes].key.fn = 0;
	p->classes[p->n_classes++].function = xstrdup(function);
}

static void add_gpu(struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_gpus; i++)
		if (!strcmp(p->gpus[i], name))
			return;
	p->gpus = grow(p->gpus, p->n_gpus, sizeof(char *));
	p->gpus[p->n_gpus++] = xstrdup(name);
}

static char *date_now(void)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return xstrdup(text);
}

/* Undisturbed calls: their median is the cost. Few cold ones count as clean, but here all are. */
static bool measured(const struct call_class *c, uint8_t contract, struct profile_class *class)
{
	const struct histogram *h = &c->clean;
	uint64_t high;

	/* What these cost lies in the graph or the code, of which no class knows. */
	if (c->key.flags & CLASS_CAPTURED || contract == SPY_CONTRACT_GRAPH_BUILD ||
	    contract == SPY_CONTRACT_MODULE || contract == SPY_CONTRACT_LIBRARY)
		return false;
	if (c->key.flags & CLASS_COLD)
		h = &c->all;
	class->samples = c->key.flags & CLASS_COLD ? c->learnt : c->clean_calls;
	if (class->samples < (c->key.flags & CLASS_COLD ? COLD_ENOUGH : EXPECT_ENOUGH))
		return false;
	class->key = c->key;
	class->bytes = class_bucket_low(c->key.bucket);
	class->expected_ns = histogram_quantile(h, 0.5);
	high = histogram_quantile(h, 0.9);
	class->spread_ns = high > class->expected_ns ? high - class->expected_ns : 0;
	return true;
}

void profile_make(struct profile *p, const struct expect *e)
{
	*p = (struct profile){.version = xstrdup(CUDASPY_VERSION), .date = date_now()};
	p->driver = xstrdup(e->machine.n_drivers ? e->machine.drivers[0] : "unknown");
	for (size_t i = 0; i < e->machine.n_gpus; i++)
		add_gpu(p, e->machine.gpus[i]);
	for (size_t i = 0; i < e->n_classes; i++) {
		const struct function *f = &e->set->functions.all[e->classes[i]->key.fn];
		struct profile_class class = {0};

		if (measured(e->classes[i], f->contract, &class))
			add_class(p, f->name, &class);
	}
	sort_classes(p);
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *class_to_json(const struct profile_class *class)
{
	const struct class_key *key = &class->key;
	json_t *object = json_object();

	json_object_set_new(object, "function", json_string(class->function));
	json_object_set_new(object, "cold", json_boolean(key->flags & CLASS_COLD));
	if (key->flags & CLASS_COPY) {
		json_object_set_new(object, "direction", json_string(name_direction(key->what)));
		json_object_set_new(object, "src", json_string(name_memory_kind(key->kinds >> 4)));
		json_object_set_new(object, "dst", json_string(name_memory_kind(key->kinds & 15)));
	}
	if (key->flags & CLASS_MEMORY) {
		json_object_set_new(object, "op", json_string(name_memory_op(key->what & 15)));
		json_object_set_new(object, "kind", json_string(name_memory_kind(key->kinds)));
		json_object_set_new(object, "pool", json_boolean(key->what >> 4));
	}
	json_object_set_new(object, "bytes", json_integer((json_int_t) class->bytes));
	json_object_set_new(object, "expected_ns", json_integer((json_int_t) class->expected_ns));
	json_object_set_new(object, "spread_ns", json_integer((json_int_t) class->spread_ns));
	json_object_set_new(object, "samples", json_integer((json_int_t) class->samples));
	return object;
}

static json_t *profile_to_json(const struct profile *p)
{
	json_t *root = json_object(), *gpus = json_array(), *classes = json_array();

	for (size_t i = 0; i < p->n_gpus; i++)
		json_array_append_new(gpus, json_string(p->gpus[i]));
	for (size_t i = 0; i < p->n_classes; i++)
		json_array_append_new(classes, class_to_json(&p->classes[i]));
	json_object_set_new(root, "schema", json_string(PROFILE_SCHEMA));
	json_object_set_new(root, "cudaspy", json_string(p->version));
	json_object_set_new(root, "date", json_string(p->date));
	json_object_set_new(root, "driver", json_string(p->driver));
	json_object_set_new(root, "gpus", gpus);
	json_object_set_new(root, "classes", classes);
	return root;
}

int profile_write(const struct profile *p, const char *path)
{
	struct outfile out;
	json_t *root;
	int err = make_parents(path), why = 0;

	if (!err)
		err = outfile_open(&out, path);
	if (err)
		return err;
	root = profile_to_json(p);
	errno = 0;
	if (json_dumpf(root, out.file, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ||
	    fputc('\n', out.file) == EOF || fflush(out.file)) {
		why = errno ? -errno : -EIO;
		warn("%s: cannot be written: %s", path, strerror(-why));
	}
	json_decref(root);
	err = outfile_close(&out, !why);
	return why ?: err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Number of a name, in any of the name_* functions. */
static bool find_name(const char *(*name)(unsigned int), unsigned int count, const char *text,
		      unsigned int *number)
{
	for (*number = 0; *number < count; ++*number)
		if (text && !strcmp(name(*number), text))
			return true;
	return false;
}

static bool read_number(const json_t *object, const char *key, uint64_t *number)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*number = (uint64_t)json_integer_value(value);
	return true;
}

static const char *read_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* NULL, or the key that is missing or wrong. */
static const char *class_from_json(struct profile_class *class, const json_t *object)
{
	unsigned int a, b, c;

	if (!read_text(object, "function"))
		return "function";
	class->key.flags = json_is_true(json_object_get(object, "cold")) ? CLASS_COLD : 0;
	if (json_object_get(object, "direction")) {
		if (!find_name(name_direction, SPY_DIR_H2H + 1, read_text(object, "direction"), &a))
			return "direction";
		if (!find_name(name_memory_kind, SPY_MEM_MIXED + 1, read_text(object, "src"), &b))
			return "src";
		if (!find_name(name_memory_kind, SPY_MEM_MIXED + 1, read_text(object, "dst"), &c))
			return "dst";
		class->key.flags |= CLASS_COPY;
		class->key.what = (uint8_t)a;
		class->key.kinds = (uint8_t)(b << 4 | c);
	} else if (json_object_get(object, "op")) {
		if (!find_name(name_memory_op, SPY_MEMOP_RESERVE + 1, read_text(object, "op"), &a))
			return "op";
		if (!find_name(name_memory_kind, SPY_MEM_MIXED + 1, read_text(object, "kind"), &b))
			return "kind";
		class->key.flags |= CLASS_MEMORY;
		class->key.what =
			(uint8_t)(json_is_true(json_object_get(object, "pool")) << 4 | (int)a);
		class->key.kinds = (uint8_t)b;
	}
	if (!read_number(object, "bytes", &class->bytes))
		return "bytes";
	if (!read_number(object, "expected_ns", &class->expected_ns))
		return "expected_ns";
	if (!read_number(object, "spread_ns", &class->spread_ns))
		return "spread_ns";
	if (!read_number(object, "samples", &class->samples))
		return "samples";
	class->key.bucket = class_bucket(class->bytes);
	return NULL;
}

static int wrong(const char *path, const char *what)
{
	warn("%s: not a profile that can be used: %s", path, what);
	return -EINVAL;
}

static int read_classes(struct profile *p, const json_t *classes)
{
	const json_t *object;
	size_t i;

	json_array_foreach(classes, i, object)
	{
		struct profile_class class = {0};
		const char *fault = class_from_json(&class, object);

		if (fault) {
			warn("%s: not a profile that can be used: class %zu: no valid \"%s\"",
			     p->path, i + 1, fault);
			return -EINVAL;
		}
		add_class(p, read_text(object, "function"), &class);
	}
	sort_classes(p);
	return 0;
}

static int from_json(struct profile *p, const json_t *root)
{
	const json_t *gpus = json_object_get(root, "gpus"), *gpu;
	const json_t *classes = json_object_get(root, "classes");
	const char *schema = read_text(root, "schema"), *driver = read_text(root, "driver");
	size_t i;

	if (!schema || strcmp(schema, PROFILE_SCHEMA) != 0)
		return wrong(p->path, "its \"schema\" is not \"" PROFILE_SCHEMA "\"");
	if (!driver)
		return wrong(p->path, "no text \"driver\"");
	if (!json_is_array(gpus) || !json_is_array(classes))
		return wrong(p->path, "no array \"gpus\" or \"classes\"");
	p->driver = xstrdup(driver);
	p->version = xstrdup(read_text(root, "cudaspy") ?: "unknown");
	p->date = xstrdup(read_text(root, "date") ?: "unknown");
	json_array_foreach(gpus, i, gpu)
	{
		if (!json_is_string(gpu))
			return wrong(p->path, "\"gpus\" are not all texts");
		add_gpu(p, json_string_value(gpu));
	}
	return read_classes(p, classes);
}

/* root: what was loaded, or NULL because of the error. */
static int take_json(struct profile *p, json_t *root, const json_error_t *error)
{
	int err;

	if (!root) {
		warn("%s:%d: no JSON: %s", p->path, error->line, error->text);
		return -EINVAL;
	}
	err = from_json(p, root);
	json_decref(root);
	return err;
}

int profile_read(struct profile *p, const char *path)
{
	json_error_t error;
	json_t *root;
	FILE *file;

	*p = (struct profile){.path = xstrdup(path)};
	file = open_regular(path);
	if (!file)
		return -errno;
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	fclose(file);
	return take_json(p, root, &error);
}

int profile_parse(struct profile *p, const char *text, size_t size, const char *name)
{
	json_error_t error;

	*p = (struct profile){.path = xstrdup(name)};
	return take_json(p, json_loadb(text, size, JSON_REJECT_DUPLICATES, &error), &error);
}

/* ---- finding a class ------------------------------------------------------------------------- */

/* On the line through two sizes of a class. */
static uint64_t between(uint64_t bytes, uint64_t low_bytes, uint64_t low, uint64_t high_bytes,
			uint64_t high)
{
	double part = (double)(bytes - low_bytes) / (double)(high_bytes - low_bytes);

	return (uint64_t)((double)low + part * ((double)high - (double)low));
}

bool profile_find(const struct profile *p, const char *function, const struct class_key *key,
		  struct profile_class *found)
{
	struct profile_class wanted = {.function = (char *)(uintptr_t)function, .key = *key};
	const struct profile_class *below = NULL, *above = NULL;
	uint64_t bytes = class_bucket_low(key->bucket);
	size_t low = 0, high = p->n_classes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_class(&p->classes[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	wanted.key.fn = 0;
	if (low < p->n_classes && !strcmp(p->classes[low].function, function) &&
	    kind_of_key(&p->classes[low].key) == kind_of_key(key))
		above = &p->classes[low];
	if (above && above->key.bucket == key->bucket) {
		*found = *above;
		return true;
	}
	if (low && !strcmp(p->classes[low - 1].function, function) &&
	    kind_of_key(&p->classes[low - 1].key) == kind_of_key(key))
		below = &p->classes[low - 1];
	if (!key->bucket || (below && !below->key.bucket))
		return false; /* of no size */
	if (below && above) {
		*found = *below;
		found->expected_ns = between(bytes, below->bytes, below->expected_ns, above->bytes,
					     above->expected_ns);
		found->spread_ns = between(bytes, below->bytes, below->spread_ns, above->bytes,
					   above->spread_ns);
		return true;
	}
	if (above) { /* smaller than the smallest: that is what any call costs */
		*found = *above;
		return true;
	}
	if (!below || bytes > BEYOND * below->bytes)
		return false;
	*found = *below;
	found->expected_ns =
		(uint64_t)((double)below->expected_ns * (double)bytes / (double)below->bytes);
	return true;
}

/* ---- finding a profile ----------------------------------------------------------------------- */

bool profile_names(char *const *names, size_t n, const char *name)
{
	while (n)
		if (!strcmp(names[--n], name))
			return true;
	return false;
}

char *profile_describe(const struct profile *p)
{
	return xasprintf("profile of %s%s, driver %s", p->n_gpus ? p->gpus[0] : "no GPU",
			 p->n_gpus > 1 ? " and others" : "", p->driver);
}

/* Is it of a GPU and the driver of these traces? Else *why says of what it is, in malloc'ed
 * text. */
static bool profile_fits(const struct profile *p, const struct machine *machine, char **why)
{
	char *described = profile_describe(p);

	*why = NULL;
	if (!machine->n_drivers || !machine->n_gpus)
		*why = xasprintf("%s: the %s: not used, because the traces do not name their "
				 "driver and GPU",
				 p->path, described);
	for (size_t i = 0; i < machine->n_drivers && !*why; i++)
		if (strcmp(machine->drivers[i], p->driver) != 0)
			*why = xasprintf("%s: the %s: not used, because the traces are of "
					 "driver %s",
					 p->path, described, machine->drivers[i]);
	for (size_t i = 0; i < machine->n_gpus && !*why; i++)
		if (!profile_names(p->gpus, p->n_gpus, machine->gpus[i]))
			*why = xasprintf("%s: the %s: not used, because the traces are of a GPU "
					 "%s",
					 p->path, described, machine->gpus[i]);
	free(described);
	return !*why;
}

char *profile_default_path(const char *driver, const char *gpu)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *name = xasprintf("profile-%s-%s.json", driver, gpu), *path = NULL, *c;

	for (c = name; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *c))
			*c = '_';
	if (config && *config == '/')
		path = xasprintf("%s/cudaspy/%s", config, name);
	else if (home && *home)
		path = xasprintf("%s/.config/cudaspy/%s", home, name);
	free(name);
	return path;
}

/* The one calibrate wrote, by its name. */
static int choose_default(struct profile *p, const struct machine *machine)
{
	int err = -ENOENT;

	for (size_t i = 0; i < machine->n_gpus && machine->n_drivers && err == -ENOENT; i++) {
		char *path = profile_default_path(machine->drivers[0], machine->gpus[i]);

		if (path) {
			profile_release(p);
			err = profile_read(p, path);
		}
		free(path);
	}
	return err;
}

int profile_choose(struct profile *p, const char *named, const struct machine *machine, char **why)
{
	int err;

	*p = (struct profile){0};
	*why = NULL;
	if (!named || !*named)
		named = getenv("CUDASPY_PROFILE");
	if (!named || !*named) {
		/* What is wrong with one that was not named is only said. */
		return choose_default(p, machine) ? 0 : profile_fits(p, machine, why);
	}
	err = profile_read(p, named);
	if (err == -ENOENT)
		warn("%s: %s", named, strerror(ENOENT));
	return err ? err : profile_fits(p, machine, why);
}
