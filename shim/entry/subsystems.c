/*
 * shim/entry/subsystems.c: who takes part in the life of a process, of a recording and of a thread: one row a subsystem. What
 * each slot means, and what runs at the same time, stands in state/subsystem.h. A new subsystem is a row here and its own
 * file (docs/ADDING.md).
 *
 * The order counts: a row's functions run behind those of the rows above it, and at the end of a recording before them. What
 * a row needs of others stands in a comment.
 */
#include "describe/describe.h"
#include "entry/selection.h"
#include "entry/subsystems.h"
#include "hook/loader.h"
#include "hook/slots.h"
#include "inspect/host_function.h"
#include "inspect/inspect.h"
#include "lib/bounds.h"
#include "process/elf_scan.h"
#include "stack/unwind.h"
#include "nccl/operations.h"
#include "nccl/profiler.h"
#include "nvtx/inject.h"
#include "nvtx/ranges.h"
#include "parts/parts.h"
#include "probe/outside.h"
#include "probe/probe.h"
#include "probe/waiters.h"
#include "record/notes.h"
#include "record/sched.h"
#include "sample/sampler.h"
#include "stack/python.h"
#include "stack/stack.h"
#include "window/capture.h"
#include "window/cost.h"
#include "window/window.h"

static void look_at_modules(struct spy_thread *thread)
{
	(void)thread;
	spy_modules_look();
}

const struct spy_subsystem spy_all_subsystems[] = {
	{.name = "bounds", .load = spy_bounds_init},
	/* What finds symbols; most of those below look some up as they are loaded. */
	{.name = "elf_scan", .load = spy_elf_scan_init, .forked = spy_elf_scan_forked},
	{.name = "loader", .load = spy_loader_init},
	{.name = "slots",
	 .load = spy_slots_init,
	 .fill_board = spy_slots_list_counters,
	 .begin = spy_slots_begin,
	 .first_records = spy_slots_first_records},
	{.name = "unwind", .load = spy_unwind_init},
	{.name = "inspect", .forked = spy_inspect_forked, .forget_parent = spy_inspect_reset},
	{.name = "waiters",
	 .forked = spy_waiters_forget,
	 .begin = spy_waiters_begin,
	 .thread_sleeps = spy_waiters_leave_at,
	 .thread_ends = spy_waiters_leave},
	{.name = "sched", .begin = spy_sched_begin},
	/* Behind sched: which calls are long. */
	{.name = "stack", .begin = spy_stack_begin},
	{.name = "python",
	 .thread_begins = spy_python_ask,
	 .packet = spy_python_ask,
	 .thread_wakes = spy_python_ask},
	{.name = "sampler",
	 .load = spy_sampler_load,
	 .forked = spy_sampler_forked,
	 .begin = spy_sampler_begin,
	 .look = spy_sampler_look,
	 .thread_begins = spy_sampler_wake,
	 .thread_wakes = spy_sampler_wake,
	 .stop = spy_sampler_stop},
	/* Before all that names places in them. */
	{.name = "modules",
	 .first_records = spy_modules_look,
	 .end = spy_modules_look,
	 .packet = look_at_modules},
	{.name = "notes", .first_records = spy_notes_flush_early},
	{.name = "window",
	 .init = spy_window_init,
	 .forked = spy_window_init,
	 .first_records = spy_window_begin,
	 .end = spy_window_end,
	 .look = spy_window_look,
	 .has_time = spy_window_has_time},
	/* Behind window, which reads the plan. */
	{.name = "capture", .init = spy_capture_init, .forked = spy_capture_init},
	/* Behind window: a phase belongs to the window that is open now. */
	{.name = "cost",
	 .thread_begins = spy_cost_begin_thread,
	 .look = spy_cost_notice,
	 .thread_sleeps = spy_cost_sleep,
	 .thread_wakes = spy_cost_wake,
	 .end = spy_cost_write_others,
	 .final = spy_cost_count_lost},
	/* Behind window and cost: they end what belongs to the part before. */
	{.name = "parts",
	 .begin = spy_parts_begin,
	 .part_begins = spy_parts_record_begin,
	 .look = spy_parts_look,
	 .has_time = spy_parts_have_time,
	 .stop = spy_parts_end,
	 .end = spy_parts_record_removed,
	 .final = spy_parts_count_in_deleted},
	{.name = "ranges",
	 .forked = spy_ranges_forked,
	 .first_records = spy_ranges_begin,
	 .repeat = spy_ranges_write_open,
	 .final = spy_ranges_count},
	{.name = "host_functions", .forked = spy_host_functions_forked},
	{.name = "nvtx", .arrange = spy_nvtx_arrange, .forked = spy_nvtx_forked},
	/* Behind nvtx: whether the environment is nobody else's yet. */
	{.name = "nccl",
	 .arrange = spy_nccl_arrange,
	 .forked = spy_nccl_forked,
	 .first_records = spy_nccl_begin,
	 .end = spy_nccl_end},
	{.name = "probes",
	 .load = spy_probe_init,
	 .begin = spy_outside_begin,
	 .first_records = spy_probe_note},
	/* Last: what the user got wrong stands behind what was found. */
	{.name = "options", .init = spy_options_select, .first_records = spy_options_warn},
	{.name = NULL},
};
