/*
 * analyzer/model/modules.c: the objects that lay in the memory of processes, and when. Called by the readings
 * as records come, and by whoever asks.
 */
#include <string.h>
#include "apply.h"
#include "base/redact.h"

/* Of the objects that lie or lay at an address, the youngest. */
struct search {
	const struct process *process;
	uint64_t address, ns;
	const struct module *found; /* of those that fit and had not gone by then */
	const struct module *unloaded; /* of those that fit and had */
	uint64_t times; /* they were unloaded */
};

static struct place_of_module *place_of(struct process *process, const struct module *module)
{
	return places_get(&process->places, &(struct place_of_module){.base = module->base,
								      .span_end = module->span_end,
								      .begin = module->begin,
								      .end = module->end});
}

/* Unloaded is the youngest that begins there. */
static bool look_for_loaded(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (place->begin == s->address && module->unloaded_ns == UINT64_MAX &&
	    (!s->found || module > s->found))
		s->found = module;
	return true;
}

static void module_goes(struct process *process, const struct spy_rec_module *of, uint64_t ns)
{
	struct search s = {.process = process, .address = of->begin};
	struct module *module;

	places_at(&process->places, of->begin, look_for_loaded, &s);
	if (!s.found)
		return;
	module = &process->modules[s.found - process->modules];
	module->unloaded_ns = ns;
	place_of(process, module)->unloaded++;
}

void model_place_module(struct process *process, uint32_t number)
{
	place_of(process, &process->modules[number])->module = number;
}

void model_apply_module(struct process *process, const struct record *record)
{
	const struct spy_rec_module *of = record_module(record);
	const char *build_id = record_text(record, 0), *path = record_text(record, 1);
	size_t bytes;
	struct module module = {
		.base = of->base,
		.begin = of->begin,
		.end = of->end,
		.span_end = of->base + 4096ull * of->span_pages,
		.unloaded_ns = UINT64_MAX,
	};

	if (of->gone) {
		module_goes(process, of, record->ns);
		return;
	}
	redact_path(path);
	bytes = strlen(build_id) + 1;
	module.build_id = xcalloc(1, bytes + strlen(path) + 1);
	module.path = strcpy(module.build_id + bytes, path);
	memcpy(module.build_id, build_id, bytes);
	process->modules = grow(process->modules, process->n_modules, sizeof(*process->modules));
	process->modules[process->n_modules] = module;
	model_place_module(process, (uint32_t)process->n_modules++);
}

static bool look_for_code(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (s->address < place->begin || s->address >= place->end)
		return true;
	s->times += place->unloaded;
	/* Objects are noticed after they were loaded: a beginning may be late. */
	if (s->ns <= module->unloaded_ns && (!s->found || module > s->found))
		s->found = module;
	else if (s->ns > module->unloaded_ns && (!s->unloaded || module > s->unloaded))
		s->unloaded = module;
	return true;
}

uint32_t model_gone(const struct process *process, uint64_t address)
{
	struct search s = {.process = process, .address = address};

	places_at(&process->places, address, look_for_code, &s);
	return (uint32_t)s.times;
}

const struct module *model_module(const struct process *process, uint64_t address, uint64_t ns)
{
	struct search s = {.process = process, .address = address, .ns = ns};

	places_at(&process->places, address, look_for_code, &s);
	return s.found ? s.found : s.unloaded;
}

static bool look_for_data(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (s->address >= place->base && s->address < place->span_end &&
	    s->ns <= module->unloaded_ns && (!s->found || module > s->found))
		s->found = module;
	return true;
}

const struct module *model_module_of_data(const struct process *process, uint64_t address,
					  uint64_t ns)
{
	struct search s = {.process = process, .address = address, .ns = ns};

	places_at(&process->places, address, look_for_data, &s);
	return s.found;
}
