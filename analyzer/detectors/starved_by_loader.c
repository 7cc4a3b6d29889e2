/*
 * analyzer/detectors/starved_by_loader.c: a thread that submits work waits for the next batch of a data loader.
 */
#include "starved.h"
#include "table.h"

static void conclude(const struct idle *idle, struct found *found)
{
	starved_conclude(&detector_starved_by_loader, IDLE_LOADER, "waited for a data loader", idle,
			 found);
}

const struct detector detector_starved_by_loader = {
	.id = "starved-by-loader",
	.title = "the program waits for its data loader",
	.sees = "Waits between CUDA calls in a data loader's functions (PyTorch's DataLoader, "
		"DALI, webdataset, tf.data, grain), from a tenth of a thread's working time on.",
	.blind = "What the loader's workers did meanwhile; loaders of which no file is known to "
		 "cudaspy. A wait without a stack is taken for what the last one with a stack at "
		 "the same place was.",
	.fix = "More workers (num_workers), batches ahead (prefetch_factor), "
	       "persistent_workers; do less for each sample, or do it on the GPU; keep decoded "
	       "data; faster storage.",
	.of_function = true,
	.of_idle = true,
	.conclude_idle = conclude,
};
