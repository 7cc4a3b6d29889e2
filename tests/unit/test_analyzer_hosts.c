/*
 * tests/unit/test_analyzer_hosts.c: traces of several hosts, long ones, and the same ones in any order: what is said
 * of them is the same, and says of which host it is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <unistd.h>
#include "log_findings.h"
#include "account/cpu_pressure.h"

#define SLICE_NS (1ull << CPU_PRESSURE_SLICE_SHIFT)

/* Threads that are there one at a time, each in a call of two slices; the lack is that of its last one. */
static void test_crowd_in_turn(void **state)
{
	struct cpu_pressure pressure = {.cpus = 1, .begin_ns = 1};
	uint64_t thread[4] = {0}, hours;

	(void)state;
	for (hours = 0; hours < 4; hours++) {
		uint64_t slice = cpu_pressure_slice(&pressure, (1 + hours * 3600000) * MS);

		cpu_pressure_add(&pressure, &thread[hours], slice, slice + 1);
		cpu_pressure_lack(&pressure, slice + 1, 5 * MS);
	}
	cpu_pressure_settle(&pressure);
	assert_int_equal(pressure.lacked_ns, 20 * MS);
	assert_int_equal(pressure.fitting_ns, 20 * MS);
	assert_true(cpu_pressure_fits(&pressure, 1));
	cpu_pressure_release(&pressure);
}

/* Two at a time with one CPU, in the first minute and after three hours: short of CPUs. */
static void test_crowd_at_once(void **state)
{
	struct cpu_pressure pressure = {.cpus = 1, .begin_ns = 1};
	uint64_t thread[2] = {0}, hours, i;

	(void)state;
	for (hours = 0; hours < 6; hours += 3)
		for (i = 0; i < 2; i++) {
			uint64_t slice = cpu_pressure_slice(&pressure, (1 + hours * 3600000) * MS);

			cpu_pressure_add(&pressure, &thread[i], slice, slice);
			cpu_pressure_lack(&pressure, slice, 5 * MS);
		}
	cpu_pressure_settle(&pressure);
	assert_int_equal(pressure.lacked_ns, 20 * MS);
	assert_int_equal(pressure.fitting_ns, 0);
	assert_false(cpu_pressure_fits(&pressure, 1));
	cpu_pressure_release(&pressure);
}

/* A call may be longer than what is remembered, and times may be anything. */
static void test_crowd_far(void **state)
{
	struct cpu_pressure pressure = {.cpus = 1, .begin_ns = 1};
	uint64_t thread[3] = {0}, last = cpu_pressure_slice(&pressure, UINT64_MAX);

	(void)state;
	cpu_pressure_add(&pressure, &thread[0], 0, 3 * CPU_PRESSURE_SLICES);
	cpu_pressure_lack(&pressure, 3 * CPU_PRESSURE_SLICES, 5 * MS);
	cpu_pressure_lack(&pressure, 0, 7 * MS); /* settled long ago: it is in no sum */
	cpu_pressure_add(&pressure, &thread[1], 0, 3 * CPU_PRESSURE_SLICES);
	cpu_pressure_add(&pressure, &thread[2], last, last);
	assert_int_equal(cpu_pressure_slice_ns(&pressure, last + 1), UINT64_MAX);
	cpu_pressure_settle(&pressure);
	assert_int_equal(pressure.lacked_ns, 5 * MS);
	assert_int_equal(pressure.fitting_ns, 0);
	cpu_pressure_release(&pressure);
}

/* A process of two threads that lack a CPU in long calls, one behind the other or at once. */
static void add_lacking(struct log *log, const char *head, unsigned int first_s,
			unsigned int second_s)
{
	unsigned int i;

	add(log, "trace %s program=\"app\" probes=1 clock_source=tsc\n", head);
	add(log, "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		 "2us op cudaSetDevice duration=1us device=0\n");
	for (i = 0; i < 2; i++) {
		unsigned int ms = 1000 * (i ? second_s : first_s);

		add(log,
		    "slot %u tid=%u\n%ums thread tid=%u name=\"app\"\n"
		    "%ums launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "%ums sched window=300ms not_running=290000000 running=1000000\n"
		    "%ums op cudaStreamSynchronize duration=300ms device=0 stream=0x10\n",
		    2 + i, 102 + i, ms + 300, 102 + i, ms + 301, ms + 602, ms + 602);
	}
}

static void test_long_run(void **state)
{
	static struct log log;
	json_t *root;

	(void)state;
	log.used = 0;
	add_lacking(&log, "app.100 pid=100 boot_id=b cpus=1", 3 * 3600, 4 * 3600);
	root = report_on(log.text);
	says(json_object_get(root, "waits"), "processes", "other programs had the CPUs");
	json_decref(root);
}

/* Two threads on each of two hosts with two CPUs, and one host with one: that one is short of them. */
static void test_cpus_of_hosts(void **state)
{
	static struct log log;
	json_t *root, *row, *hosts;
	size_t i, found = 0;

	(void)state;
	log.used = 0;
	add_lacking(&log, "a.100 pid=100 boot_id=b1 hostname=\"node1\" cpus=2", 0, 0);
	add_lacking(&log, "b.100 pid=100 boot_id=b2 hostname=\"node2\" cpus=2", 0, 0);
	add_lacking(&log, "c.100 pid=100 boot_id=b3 hostname=\"node3\" cpus=1", 0, 0);
	root = report_on(log.text);
	json_array_foreach(json_object_get(root, "findings"), i, row)
	{
		bool short_of = !strcmp(text(row, "host"), "node3");

		if (strcmp(text(row, "id"), "oversubscribed-host") != 0)
			continue;
		found++;
		says(row, "severity", short_of ? "problem" : "note");
		says(row, "what", short_of ? "of 3 on node3" : "other processes on the host");
		says(row, "what", short_of ? "they may use 1 CPU" : "they may use 2 CPUs");
	}
	assert_int_equal(found, 3);
	hosts = json_object_get(root, "hosts");
	assert_int_equal(json_array_size(hosts), 3);
	assert_string_equal(text(json_array_get(hosts, 1), "host"), "node2");
	assert_string_equal(text(json_array_get(hosts, 1), "boot"), "b2");
	assert_int_equal(number(json_array_get(hosts, 1), "cpus"), 2);
	assert_int_equal(number(json_array_get(hosts, 1), "processes"), 1);
	row = json_array_get(json_object_get(root, "threads"), 0);
	assert_non_null(strchr(text(row, "process"), '@'));
	json_decref(root);
}

/* One host: it is in JSON, and in nobody's way in what people read. */
static void test_one_host(void **state)
{
	static struct log log;
	char *shown;
	json_t *root;

	(void)state;
	log.used = 0;
	add_lacking(&log, "a.100 pid=100 boot_id=b1 hostname=\"node1\" cpus=1", 0, 0);
	add_lacking(&log, "b.101 pid=101 boot_id=b1 hostname=\"box-in-a-box\" cpus=2", 0, 0);
	add(&log, "trace c.102 pid=102 program=\"app\"\nslot 1 tid=102\n"
		  "1us thread tid=102 name=\"app\"\n2us op cudaSetDevice duration=1us device=0\n");
	root = report_on(log.text);
	assert_int_equal(json_array_size(json_object_get(root, "hosts")), 1);
	assert_string_equal(text(find(root, "oversubscribed-host"), "host"), "node1");
	assert_int_equal(number(json_array_get(json_object_get(root, "hosts"), 0), "cpus"), 1);
	json_decref(root);
	shown = report_in("text", log.text);
	assert_null(strstr(shown, "node1"));
	free(shown);
}

/* ---- the same traces in any order ------------------------------------------------------------ */

#define TRACES 4

static char *report_of(const char *const *dirs)
{
	struct report_options options = {.renderer = renderer_find("json")};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(report_show(dirs, TRACES, NULL, &options, out), 0);
	fclose(out);
	return text;
}

/* The clocks of one boot are measured a little differently, one trace has lost its clock; equal numbers, and nobody
 * says when it began. In folders of other names. */
static void test_any_order(void **state)
{
	static const char *const heads[TRACES] = {
		"pid=100 boot_id=b1 hostname=\"node1\" cpus=2\nclock offset_s=5 "
		"frequency=1000000000",
		"pid=100 boot_id=b1 hostname=\"node1\" cpus=2\nclock offset_s=5 "
		"frequency=1000300000",
		"pid=100 boot_id=b2 hostname=\"node2\" cpus=2\nclock offset_s=5 "
		"frequency=1000000000",
		"pid=100 boot_id=b2 hostname=\"node2\" cpus=2\nclock offset_s=5 "
		"frequency=999500000",
	};
	char *dir = scratch_make(), log[512], paths[TRACES][512], moved[512], *first = NULL, *text;
	const char *order[TRACES];
	unsigned int i, turn;

	(void)state;
	snprintf(log, sizeof(log), "%s/log", dir);
	for (i = 0; i < TRACES; i++) {
		static struct log one;

		one.used = 0;
		add(&one, "trace t%u program=\"app\" clock_source=tsc %s\n", i, heads[i]);
		add(&one,
		    "slot 1 tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "2ms launch cudaLaunchKernel duration=3us device=0 stream=0x10 caller=0x10\n"
		    "3%u0ms copy cudaMemcpyAsync duration=2%u0ms direction=h2d src=pageable "
		    "dst=device bytes=4096 stream=0x10 caller=0x20\n",
		    101 + i, 101 + i, i, i);
		scratch_write(log, one.text, one.used);
		tt_make(log, dir);
		snprintf(paths[i], sizeof(paths[i]), "%s/t%u", dir, i);
	}
	for (turn = 0; turn < 2 * TRACES; turn++) {
		for (i = 0; i < TRACES; i++)
			order[i] = paths[(turn + (turn & 1 ? TRACES - i : i)) % TRACES];
		text = report_of(order);
		if (first)
			assert_string_equal(first, text);
		else
			first = strdup(text);
		free(text);
	}
	snprintf(moved, sizeof(moved), "%s/zz", dir);
	assert_int_equal(rename(paths[0], moved), 0);
	snprintf(paths[0], sizeof(paths[0]), "%s", moved);
	text = report_of(order);
	assert_string_equal(first, text);
	free(text);
	free(first);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowd_in_turn), cmocka_unit_test(test_crowd_at_once),
		cmocka_unit_test(test_crowd_far),     cmocka_unit_test(test_long_run),
		cmocka_unit_test(test_cpus_of_hosts), cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_any_order),
	};

	return RUN_WITH_FINDINGS(tests);
}
