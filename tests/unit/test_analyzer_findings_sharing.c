/*
 * tests/unit/test_analyzer_findings_sharing.c: what processes and threads have together: a place in the program, a GPU, MPS, too few
 * CPUs. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

/* ---- one place in several processes ----------------------------------------------------------- */

/* Two processes free memory at one place while the GPU works, one behind all its work; the other one, too, or
 * with more to come. */
static void freeing(struct log *log, bool more)
{
	unsigned int i;

	log->used = 0;
	for (i = 0; i < 2; i++)
		add(log,
		    "trace app.%u pid=%u program=\"app\" probes=1\n"
		    "slot 1 tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "1ms memory cudaFree duration=8us op=free kind=device bytes=9 caller=0x50\n"
		    "2ms launch cudaLaunchKernel duration=3us stream=0x10 caller=0x10\n"
		    "103ms memory cudaFree duration=100ms op=free kind=device bytes=9 caller=0x50\n"
		    "%s",
		    100 + i, 100 + i, 100 + i, 100 + i,
		    i && more
			    ? "104ms launch cudaLaunchKernel duration=3us stream=0x10 caller=0x10\n"
			    : "");
}

static void test_end_of_each_process(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	freeing(&log, true);
	root = report_on(log.text);
	finding = find(root, "hidden-sync");
	assert_non_null(finding);
	assert_int_equal(number(finding, "processes"), 2);
	json_decref(root);
	freeing(&log, false);
	root = report_on(log.text);
	assert_null(find(root, "hidden-sync"));
	json_decref(root);
}

/* ---- processes that hand a baton on ----------------------------------------------------------- */

/* Each works on a GPU of its own for 2 ms of every 4, the second one so much later. */
static void baton(struct log *log, unsigned int later_us)
{
	unsigned int i, j;

	log->used = 0;
	for (i = 0; i < 2; i++) {
		add(log,
		    "trace app.%u pid=%u program=\"app\" boot_id=b clock_source=tsc probes=1\n"
		    "slot 0\n1us gpu device=0 name=\"G\" uuid=\"GPU-%u\" pci=\"%u\"\n"
		    "slot 1 tid=%u\n1us thread tid=%u name=\"app\"\n",
		    100 + i, 100 + i, i, i, 100 + i, 100 + i);
		for (j = 0; j < 60; j++) {
			unsigned int at = 1000 + 4000 * j + i * later_us;

			add(log,
			    "%uus launch cudaLaunchKernel duration=4us stream=0x10 caller=0x10\n"
			    "%uus op cudaStreamSynchronize duration=1950us stream=0x10 "
			    "caller=0x20\n",
			    at + 10, at + 1990);
		}
	}
}

static void test_processes_in_turn(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	baton(&log, 2000);
	root = report_on(log.text);
	finding = find(root, "serial-gpus");
	assert_non_null(finding);
	says(finding, "what", "of different processes");
	assert_int_equal(number(finding, "processes"), 2);
	json_decref(root);
	baton(&log, 500);
	silent(log.text, "serial-gpus");
}

/* Each launches all the time, with a wait in every fourth millisecond, and NVML says that no kernel ran for more than half of the
 * time. When that was it does not say: both may have worked at once. */
static void launching(struct log *log)
{
	unsigned int i, j;

	log->used = 0;
	for (i = 0; i < 2; i++) {
		add(log,
		    "trace app.%u pid=%u program=\"app\" boot_id=b clock_source=tsc probes=1\n"
		    "slot 0\n1us gpu device=0 name=\"G\" uuid=\"GPU-%u\" pci=\"%u\"\n",
		    100 + i, 100 + i, i, i);
		for (j = 0; j < 20; j++)
			add(log, "%ums gpu_look device=0 busy=45 clock=990 clock_most=1980\n",
			    50 + 100 * j);
		add(log, "slot 1 tid=%u\n1us thread tid=%u name=\"app\"\n", 100 + i, 100 + i);
		for (j = 0; j < 200; j++)
			add(log, "%uus %s caller=0x%u\n", 1000 + 10000 * j + 5000 * i,
			    j % 4 ? "launch cudaLaunchKernel duration=4us stream=0x10"
				  : "op cudaStreamSynchronize duration=20us stream=0x10",
			    j % 4 ? 10u : 20u);
	}
}

static void test_processes_at_once(void **state)
{
	static struct log log;

	(void)state;
	launching(&log);
	silent(log.text, "serial-gpus");
}

/* ---- GPUs that processes share ---------------------------------------------------------------- */

/* Two processes of one user on a GPU each or on one, from `begin` ms to `begin` + 400 ms; of each half the
 * time is a wait for the GPU. `client`: both are clients of one server, with that share. */
static void sharing(struct log *log, const char *other_uuid, unsigned int begin, bool client,
		    const char *share)
{
	unsigned int i;

	log->used = 0;
	for (i = 0; i < 2; i++) {
		unsigned int from = i ? begin : 0;

		add(log,
		    "trace app.%u pid=%u program=\"app\" boot_id=b clock_source=tsc\n"
		    "slot 0\n"
		    "%ums gpu device=0 name=\"G\" uuid=\"%s\" pci=\"1\"\n"
		    "%ums share device=0 client=%s multiprocessors=132\n"
		    "%ums mps initialised=1 uid=1000%s%s\n"
		    "slot 1 tid=%u\n%ums thread tid=%u name=\"app\"\n"
		    "%ums launch cudaLaunchKernel duration=3us stream=0x10\n"
		    "%ums op cudaStreamSynchronize duration=10us stream=0x11\n"
		    "%ums op cudaStreamSynchronize duration=10us stream=0x11\n"
		    "%ums launch cudaLaunchKernel duration=3us stream=0x10\n"
		    "%ums op cudaStreamSynchronize duration=300ms stream=0x10\n",
		    100 + i, 100 + i, from + 1, i ? other_uuid : "GPU-a", from + 1,
		    client ? "yes" : "no", from + 2,
		    client ? " daemon=40 server=50 server_uid=1000 pipe_directory=\"/tmp/mps\""
			   : "",
		    share, 100 + i, from + 2, 100 + i, from + 10, from + 20, from + 30, from + 40,
		    from + 400);
	}
}

static void test_time_slicing(void **state)
{
	static struct log log;
	json_t *root, *finding;
	char *text;

	(void)state;
	sharing(&log, "GPU-a", 50, false, "");
	root = report_on(log.text);
	finding = find(root, "time-slicing");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "2 processes used one GPU at the same time");
	says(finding, "what", "up to 340.0 ms"); /* 60 to 400 ms */
	says(finding, "fix", "nvidia-cuda-mps-control -d");
	assert_int_equal(number(finding, "processes"), 2);
	assert_true(json_is_null(json_object_get(finding, "cost_ns")));
	assert_true(json_is_null(json_object_get(finding, "gain_high_ns")));
	assert_null(find(root, "mps-share"));
	json_decref(root);
	text = report_in("sarif", log.text);
	assert_non_null(strstr(text, "\"cost_ns\": null"));
	free(text);
	text = report_in("junit", log.text);
	assert_non_null(strstr(text, "name=\"time-slicing\">"));
	free(text);

	sharing(&log, "GPU-b", 50, false, ""); /* each its own */
	silent(log.text, "time-slicing");
	sharing(&log, "GPU-a", 395, false, ""); /* one after the other */
	silent(log.text, "time-slicing");
	sharing(&log, "GPU-a", 50, true, ""); /* with MPS */
	silent(log.text, "time-slicing");
	silent(log.text, "mps-share");
}

static void test_mps_share(void **state)
{
	static const char *const no_share[] = {" active_thread_percentage=\"0\"",
					       " active_thread_percentage=\"-5\"",
					       " active_thread_percentage=\"half\""};
	static struct log log;
	json_t *root, *finding;

	(void)state;
	sharing(&log, "GPU-a", 50, true, " active_thread_percentage=\"25\"");
	root = report_on(log.text);
	finding = find(root, "mps-share");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "app.100 (25 %), app.101 (25 %)");
	json_decref(root);
	for (size_t i = 0; i < ARRAY_SIZE(no_share); i++) {
		sharing(&log, "GPU-a", 50, true, no_share[i]);
		silent(log.text, "mps-share");
	}
	sharing(&log, "GPU-a", 50, true, " active_thread_percentage=\"100\"");
	silent(log.text, "mps-share");
	sharing(&log, "GPU-a", 50, false, " active_thread_percentage=\"25\""); /* of no server */
	silent(log.text, "mps-share");
}

/* A client of MPS that is there for 400 ms; one of its threads waits for the GPU so long in two calls of two functions,
 * another one so long. */
static void add_client(struct log *log, unsigned int pid, const char *percent, unsigned int first,
		       unsigned int second, unsigned int other)
{
	add(log,
	    "trace app.%u pid=%u program=\"app\" boot_id=b clock_source=tsc\n"
	    "slot 0\n1ms gpu device=0 name=\"G\" uuid=\"GPU-a\" pci=\"1\"\n"
	    "1ms share device=0 client=yes multiprocessors=132\n"
	    "1ms mps initialised=1 uid=1000 daemon=40 server=50 server_uid=1000 "
	    "pipe_directory=\"/tmp/mps\" active_thread_percentage=\"%s\"\n"
	    "slot 1 tid=%u\n1ms thread tid=%u name=\"a\"\n"
	    "2ms launch cudaLaunchKernel duration=3us stream=0x10\n"
	    "200ms op cudaStreamSynchronize duration=%ums stream=0x10\n"
	    "201ms launch cudaLaunchKernel duration=3us stream=0x10\n"
	    "401ms op cudaDeviceSynchronize duration=%ums\n"
	    "slot 2 tid=%u\n1ms thread tid=%u name=\"b\"\n"
	    "2ms launch cudaLaunchKernel duration=3us stream=0x20\n"
	    "400ms op cudaStreamSynchronize duration=%ums stream=0x20\n",
	    pid, pid, percent, pid, pid, first, second, pid + 1, pid + 1, other);
}

/* One of its threads spends half of the time so. */
static void test_mps_mostly(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	log.used = 0;
	add_client(&log, 100, "25", 102, 102, 10);
	add_client(&log, 200, "25", 98, 98, 190); /* neither of the two */
	add_client(&log, 300, "99.5", 1, 2, 210);
	add_client(&log, 400, "100", 150, 150, 300);
	root = report_on(log.text);
	finding = find(root, "mps-share");
	assert_non_null(finding);
	says(finding, "what", ": app.100 (25 %), app.300 (99.5 %)");
	assert_int_equal(number(finding, "count"), 2);
	assert_int_equal(number(finding, "processes"), 2);
	says(finding, "cost_known", "no");
	json_decref(root);
}

/* A process that calls cuInit while the daemon's server works for user 1000. */
#define MPS_USERS(uid) \
	"trace app.100 pid=100 program=\"app\"\n" \
	"slot 0\n" \
	"10ms mps initialised=0 uid=" uid " daemon=40 server=50 server_uid=1000 " \
	"pipe_directory=\"/tmp/mps\"\n" \
	"210ms mps initialised=1 uid=" uid " daemon=40 server=60 server_uid=" uid " " \
	"pipe_directory=\"/tmp/mps\"\n" \
	"slot 1 tid=100\n9ms thread tid=100 name=\"app\"\n" \
	"211ms call cuInit duration=201ms\n" \
	"220ms launch cudaLaunchKernel duration=3us stream=0x10\n"

static void test_mps_users(void **state)
{
	json_t *root = report_on(MPS_USERS("1001"));
	const json_t *finding = find(root, "mps-users");

	(void)state;
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 200000000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	says(finding, "what", "1 process waited for 200.0 ms");
	json_decref(root);
	silent(MPS_USERS("1000"), "mps-users");
}

/* Whose clients that server had: those of its host and user that found it. */
static void test_clients_of_server(void **state)
{
	static const struct {
		unsigned int pid, server, uid;
		char boot;
	} others[] = {{201, 50, 1000, 'b'},
		      {202, 51, 1000, 'b'},
		      {203, 50, 1001, 'b'},
		      {204, 50, 1000, 'c'},
		      {205, 0, 0, 'b'}};
	static struct log log;
	json_t *root, *turn;
	char *text;

	(void)state;
	for (unsigned int first = 0; first < 2; first++) {
		log.used = 0;
		add(&log,
		    "trace app.100 pid=100 program=\"app\" boot_id=b\nslot 0\n"
		    "10ms mps initialised=0 uid=1001 daemon=40 server=50 server_uid=1000 pipe_directory=\"/tmp/mps\"\n"
		    "210ms mps initialised=1 uid=1001 daemon=40 server=60 server_uid=1001 pipe_directory=\"/tmp/mps\"\n"
		    "slot 1 tid=100\n9ms thread tid=100 name=\"app\"\n"
		    "211ms call cuInit duration=201ms\n");
		for (size_t i = first; i < sizeof(others) / sizeof(others[0]); i++) {
			add(&log, "trace app.%u pid=%u program=\"app\" boot_id=%c\nslot 0\n",
			    others[i].pid, others[i].pid, others[i].boot);
			if (others[i].server)
				add(&log,
				    "1ms mps initialised=1 uid=%u daemon=40 server=%u server_uid=%u pipe_directory=\"/tmp/mps\"\n",
				    others[i].uid, others[i].server, others[i].uid);
			add(&log, "slot 1 tid=%u\n2ms call cuInit duration=1ms\n", others[i].pid);
		}
		root = report_on(log.text);
		turn = json_array_get(json_object_get(root, "mps_turns"), 0);
		assert_int_equal(number(turn, "waited_ns"), 200000000);
		assert_int_equal(number(turn, "server"), 50);
		assert_int_equal(number(turn, "server_user"), 1000);
		assert_int_equal(number(turn, "user"), 1001);
		json_decref(root);
		text = scratch_squeeze(report_in("text", log.text));
		if (!strstr(text, first ? "worked for user 1000 (processes that were not recorded)"
					: "worked for user 1000 (app.201@boot:b)"))
			fail_msg("%s", text);
		free(text);
	}
}

/* ---- CPUs ------------------------------------------------------------------------------------- */

/* Thread 101 lacks a CPU for `lacked` of 50 ms; 102 waits for the GPU for 90 ms, and was on a CPU for
 * `ran` ms of them. */
static void crowded(struct log *log, unsigned int cpus, unsigned int lacked, unsigned int ran)
{
	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\" probes=1 cpus=%u\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "1ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
	    "2ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
	    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
	    "60ms sched window=50ms not_running=%u000000 running=1000000\n"
	    "60001us op cudaStreamSynchronize duration=50ms device=0 stream=0x10\n"
	    "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
	    "1ms op cudaStreamSynchronize duration=5us device=0 stream=0x21\n"
	    "2ms op cudaStreamSynchronize duration=5us device=0 stream=0x21\n"
	    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x20\n"
	    "100ms sched window=90ms not_running=0 running=%u000000\n"
	    "100001us op cudaStreamSynchronize duration=90ms device=0 stream=0x20\n",
	    cpus, lacked, ran);
}

static void test_oversubscribed(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	crowded(&log, 1, 40, 2); /* the other one sleeps */
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 40000000);
	says(finding, "what", "1 thread of 2, ready to go on, got no CPU for 40.00 ms");
	says(finding, "what", "they may use 1 CPU");
	assert_null(strstr(text(finding, "what"), "other processes"));
	says(finding, "severity", "problem");
	says(json_object_get(root, "waits"), "processes", "too few CPUs for these threads");
	assert_null(strstr(text(finding, "what"), "spin"));
	says(finding, "fix", "more CPUs");
	json_decref(root);

	crowded(&log, 1, 40, 88); /* the other one spins */
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	assert_non_null(finding);
	says(finding, "what", "in calls that spin");
	says(finding, "fix", "cudaDeviceScheduleBlockingSync");
	json_decref(root);

	/* From half of what the others lacked on. */
	crowded(&log, 1, 40, 19);
	root = report_on(log.text);
	assert_null(strstr(text(find(root, "oversubscribed-host"), "what"), "spin"));
	json_decref(root);
	crowded(&log, 1, 40, 21);
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	says(finding, "what", "kept CPUs busy for 21.99 ms at least");
	assert_int_equal(number(finding, "gain_high_ns"), 40000000);
	json_decref(root);

	crowded(&log, 1, 3, 88); /* who spins takes nothing from anybody */
	silent(log.text, "oversubscribed-host");
}

/* A process of two threads, of which one lacks a CPU so long in a call of 60 ms, and the other one in a call of 200 ms. */
static void add_lack(struct log *log, unsigned int pid, unsigned int first, unsigned int second)
{
	unsigned int i;

	add(log,
	    "trace app.%u pid=%u program=\"app%u\" boot_id=b clock_source=tsc cpus=2 probes=1\n",
	    pid, pid, pid);
	for (i = 0; i < 2; i++)
		add(log,
		    "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "1ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
		    "2ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
		    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "%ums sched window=%ums not_running=%u000000 running=1000000\n"
		    "%u001us op cudaStreamSynchronize duration=%ums device=0 stream=0x10\n",
		    i + 1, pid + i, pid + i, i ? 210 : 70, i ? 200 : 60, i ? second : first,
		    i ? 210 : 70, i ? 200 : 60);
}

/* Only processes that lack a CPU for a tenth of the time of their threads and for 10 ms, and the one that lacks most. */
static void test_lack_of_processes(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	log.used = 0;
	add_lack(&log, 100, 45, 0);
	add_lack(&log, 200, 50, 40);
	add_lack(&log, 300, 30, 31);
	add_lack(&log, 400, 15, 0); /* of 420 ms */
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	says(finding, "what", "5 threads of 6, ready to go on, got no CPU for 196.0 ms");
	assert_int_equal(number(finding, "processes"), 3);
	assert_int_equal(number(finding, "count"), 5);
	assert_int_equal(number(finding, "cost_ns"), 196000000);
	says(finding, "program", "app200");
	json_decref(root);
}

/* There is a CPU for each of the threads: that others had them is not the program's fault, however its own
 * threads wait. */
static void test_busy_host(void **state)
{
	static struct log log;
	unsigned int ran;

	(void)state;
	for (ran = 2; ran <= 88; ran += 86) {
		json_t *root, *finding;

		crowded(&log, 2, 40, ran);
		root = report_on(log.text);
		finding = find(root, "oversubscribed-host");
		assert_non_null(finding);
		says(finding, "what", "they may use 2 CPUs");
		says(finding, "what", "other processes on the host had the CPUs");
		assert_null(strstr(text(finding, "what"), "spin"));
		says(finding, "fix", "CPUs of its own");
		assert_null(strstr(text(finding, "fix"), "ewer threads"));
		says(finding, "severity", "note");
		says(json_object_get(root, "waits"), "processes", "other programs had the CPUs");
		json_decref(root);
	}
}

/* Two threads that are there at different times are one at a time; a third one beside them has slept long. */
static void test_busy_host_in_turn(void **state)
{
	static struct log log;
	json_t *root;
	unsigned int i;

	(void)state;
	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\" probes=1 cpus=1\n"
		  "clock offset_s=1000000 frequency=1000000000\n"
		  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		  "2us op cudaSetDevice duration=1us device=0\n");
	for (i = 0; i < 2; i++)
		add(&log,
		    "slot %u tid=%u\n%ums thread tid=%u name=\"app\"\n"
		    "%ums launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "%ums sched window=300ms not_running=290000000 running=1000000\n"
		    "%ums op cudaStreamSynchronize duration=300ms device=0 stream=0x10\n",
		    2 + i, 102 + i, 300 + 700 * i, 102 + i, 301 + 700 * i, 602 + 700 * i,
		    602 + 700 * i);
	root = report_on(log.text);
	says(find(root, "oversubscribed-host"), "severity", "note");
	json_decref(root);
}

/* Thread 101 lacks a CPU for 90 of 100 ms, on two CPUs, while its process has so many per cent of one of them. */
static void beside(struct log *log, unsigned int threads, unsigned int percent)
{
	unsigned int i, ms;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1 cpus=2\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		 "2us op cudaSetDevice duration=1us device=0\n"
		 "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n");
	for (ms = 10; ms <= 110; ms += 20)
		add(log,
		    "%ums sched window=10ms not_running=9000000 running=1000000 process_ran=%llu\n"
		    "%u001us op cudaStreamSynchronize duration=10ms device=0 stream=0x10\n",
		    ms, (1 << 16) + ms * 10000ull * percent, ms);
	for (i = 0; i < threads; i++)
		add(log,
		    "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "100ms op cudaStreamSynchronize duration=90ms device=0 stream=0x10\n",
		    2 + i, 102 + i, 102 + i);
}

/* Who had the CPUs, its own time on them says, however many threads make calls. */
static void test_own_use(void **state)
{
	static struct log log;
	static const unsigned int all[][2] = {{2, 64}, {0, 64}, {2, 98}};
	json_t *root, *finding;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) { /* 32 % and 49 % of two CPUs */
		beside(&log, all[i][0], all[i][1]);
		root = report_on(log.text);
		finding = find(root, "oversubscribed-host");
		says(finding, "severity", "note");
		says(finding, "what",
		     all[i][1] == 64 ? "had 32 % meanwhile" : "had 48 % meanwhile");
		says(finding, "what", "other programs on the host had the CPUs");
		says(finding, "fix", "quieter host");
		json_decref(root);
	}
	for (i = 0; i < 2; i++) { /* threads that make calls, or not */
		beside(&log, i ? 0 : 2, i ? 190 : 102);
		root = report_on(log.text);
		finding = find(root, "oversubscribed-host");
		says(finding, "severity", "problem");
		says(finding, "what", i ? "had 95 % meanwhile" : "had 51 % meanwhile");
		says(finding, "fix", "ewer threads");
		json_decref(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_of_each_process),
		cmocka_unit_test(test_processes_in_turn),
		cmocka_unit_test(test_processes_at_once),
		cmocka_unit_test(test_time_slicing),
		cmocka_unit_test(test_mps_share),
		cmocka_unit_test(test_mps_users),
		cmocka_unit_test(test_clients_of_server),
		cmocka_unit_test(test_mps_mostly),
		cmocka_unit_test(test_lack_of_processes),
		cmocka_unit_test(test_oversubscribed),
		cmocka_unit_test(test_own_use),
		cmocka_unit_test(test_busy_host),
		cmocka_unit_test(test_busy_host_in_turn),
	};

	return RUN_WITH_FINDINGS(tests);
}
