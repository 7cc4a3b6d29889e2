/*
 * analyzer/expect/priors.c: the machines whose priors are shipped. Called once, by report, before
 * expectations settle.
 */
#include <string.h>
#include "priors.h"

/*
 * One row a file of priors/, as `cudaspy calibrate -o` wrote it: a name, the GPU and the driver,
 * which the file has, too. The first one stands for GPUs that have none.
 */
/* clang-format off */
#define PRIORS(PRIOR) \
	PRIOR(h200_13000, "NVIDIA H200",           "13000", "h200-13000.json") \
	PRIOR(h100_13000, "NVIDIA H100 80GB HBM3", "13000", "h100-13000.json")
/* clang-format on */

#define PRIOR(name, gpu, driver, file) \
	__asm__(".pushsection .rodata\n" \
		"prior_" #name ":\n" \
		".incbin \"analyzer/expect/priors/" file "\"\n" \
		"prior_" #name "_end:\n" \
		".popsection\n"); \
	extern const char prior_##name[], prior_##name##_end[];
PRIORS(PRIOR)
#undef PRIOR

static const struct row {
	const char *gpu, *driver, *begin, *end;
} rows[] = {
#define PRIOR(name, gpu, driver, file) {gpu, driver, prior_##name, prior_##name##_end},
	PRIORS(PRIOR)
#undef PRIOR
};

const char *priors_row(size_t i, const char **gpu, const char **driver, size_t *size)
{
	if (i >= ARRAY_SIZE(rows))
		return NULL;
	*gpu = rows[i].gpu;
	*driver = rows[i].driver;
	*size = (size_t)(rows[i].end - rows[i].begin);
	return rows[i].begin;
}

bool prior_is_of(const struct profile *p, const struct machine *machine)
{
	for (size_t i = 0; i < p->n_gpus; i++)
		if (profile_names(machine->gpus, machine->n_gpus, p->gpus[i]))
			return true;
	return false;
}

bool priors_choose(struct profile *p, const struct machine *machine)
{
	const struct row *best = &rows[0];
	int most = 0;

	*p = (struct profile){0};
	if (!machine->n_gpus)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int fits = 0;

		if (profile_names(machine->gpus, machine->n_gpus, rows[i].gpu))
			fits = profile_names(machine->drivers, machine->n_drivers, rows[i].driver)
				       ? 2
				       : 1;
		if (fits > most) {
			most = fits;
			best = &rows[i];
		}
	}
	return !profile_parse(p, best->begin, (size_t)(best->end - best->begin), "a prior");
}
