/*
 * analyzer/detectors/gil_contention.c: threads that submit work wait for the lock of Python's interpreter.
 */
#include "starved.h"
#include "table.h"

static void conclude(const struct idle *idle, struct found *found)
{
	starved_conclude(&detector_gil_contention, IDLE_GIL, "waited for Python's GIL", idle,
			 found);
}

const struct detector detector_gil_contention = {
	.id = "gil-contention",
	.title = "threads wait for Python's GIL",
	.sees = "Waits between CUDA calls for the lock of the main interpreter, from a tenth of a "
		"thread's working time on.",
	.blind =
		"Who had the lock, without samples (--sample=0). Interpreters beside the main one, "
		"Pythons before 3.8, and waits shorter than 20 us.",
	.fix = "Processes instead of threads for what runs Python (multiprocessing, a server's "
	       "workers); less Python in the threads beside: libraries give the lock back while "
	       "they compute; sys.setswitchinterval for threads that only poll; or a Python "
	       "without the GIL.",
	.conclude_idle = conclude,
};
