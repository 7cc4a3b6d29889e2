/*
 * tests/sim/truth.c: what really happened, written down: one line in truth.<pid>.tsv for each call
 * that entered an exported function; in waits.<pid>.tsv one for each wait inside a call (waits.c); in
 * gpu.<pid>.tsv one for each operation of a GPU (jobs.c); in late.<pid>.tsv how much longer its work took than it was to,
 * which is the machine's doing; and in mps.<pid>.tsv whether it is a client of MPS, whose, and how long it waited to become one.
 * Runs on every thread that calls the simulator; both go into the thread's own buffer, which is
 * written when it is full, when the thread ends and at exit.
 */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RECORDS_PER_BUFFER = 4096, WAITS_PER_BUFFER = 8192 };

struct buffer {
	struct buffer *next;
	int tid;
	atomic_uint used; /* release by the owner, acquire by the flush at exit */
	atomic_uint wait_cnt; /* as used */
	struct sim_span records[RECORDS_PER_BUFFER];
	struct sim_wait waits[WAITS_PER_BUFFER];
};

const char *const sim_fn_name[FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [FN_##name] = #name,
#include "cudaspy/entrypoints.def"
#undef ENTRY
};

/* Which rows a truth without getters leaves out. */
#define TRACED false
#define COUNTED true
#define INSTANT true
#define TRANSPARENT true
static const bool fn_counted[FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [FN_##name] = record,
#include "cudaspy/entrypoints.def"
#undef ENTRY
};
#undef TRACED
#undef COUNTED
#undef INSTANT
#undef TRANSPARENT

#define LAYER_DRIVER "driver"
#define LAYER_RT "runtime"
#define LAYER_RT11 "runtime"
#define LAYER_RT12 "runtime"
#define LAYER_RT13 "runtime"
#define LAYER_RT11_12 "runtime"
#define LAYER_RT12_13 "runtime"
static const char *const layer_name[FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [FN_##name] = LAYER_##layer,
#include "cudaspy/entrypoints.def"
#undef ENTRY
};

bool sim_spans_on;
__thread struct sim_thread sim_self;

static bool truth_on, truth_all = true, exiting;
static char truth_dir[512];
static int truth_fd = -1, waits_fd = -1, gpu_fd = -1;
static struct buffer *buffers;
static struct sim_spin buffers_lock;
static pthread_key_t buffer_key;
static __thread struct buffer *my_buffer;
static _Atomic uint64_t late_ns;

static void write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		long n = sim_syscall(SYS_write, fd, (long)text, (long)bytes);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

static void flush(struct buffer *buffer)
{
	static const char *const mem[] = {"-", "pageable", "pinned", "device", "managed", "array"};
	static const char *const lock[] = {"-",    "process", "context", "staging",
					   "pool", "init",    "runtime", "scripted"};
	unsigned used = atomic_load_explicit(&buffer->used, memory_order_acquire);
	char text[32768];
	size_t at = 0;

	for (unsigned i = 0; i < used; i++) {
		const struct sim_span *s = &buffer->records[i];
		char name[16];

		if (s->lock)
			snprintf(name, sizeof(name), "%s%d", lock[s->lock], s->lock_dev);
		at += (size_t)snprintf(
			text + at, sizeof(text) - at,
			"%d\t%s\t%d\t%s\t%d\t%llu\t%llu\t%llu\t%s\t%s\t%#llx\t%"
			"llu\t%llu\t%s\t%d\t%s\n",
			buffer->tid, layer_name[s->fn], s->depth, sim_fn_name[s->fn], s->result,
			(unsigned long long)s->begin_ns, (unsigned long long)s->end_ns,
			(unsigned long long)s->bytes, mem[s->src], mem[s->dst],
			(unsigned long long)s->stream, (unsigned long long)s->gpu_wait_ns,
			(unsigned long long)s->lock_wait_ns, s->lock ? name : "-", s->holder_tid,
			s->unimplemented ? "UNIMPLEMENTED"
			: s->staged      ? "STAGED"
					 : "-");
		if (at > sizeof(text) - 512) {
			write_all(truth_fd, text, at);
			at = 0;
		}
	}
	write_all(truth_fd, text, at);
	atomic_store_explicit(&buffer->used, 0, memory_order_release);
	sim_waits_write(waits_fd, buffer->tid, buffer->waits,
			atomic_load_explicit(&buffer->wait_cnt, memory_order_acquire));
	atomic_store_explicit(&buffer->wait_cnt, 0, memory_order_release);
}

static void thread_ends(void *arg)
{
	struct buffer *buffer = arg, **p;

	sim_spin_lock(&buffers_lock);
	flush(buffer);
	for (p = &buffers; *p; p = &(*p)->next)
		if (*p == buffer) {
			*p = buffer->next;
			break;
		}
	sim_spin_unlock(&buffers_lock);
	if (my_buffer == buffer)
		my_buffer = NULL;
	free(buffer);
}

static struct buffer *buffer_of_thread(void)
{
	if (!my_buffer) {
		struct buffer *buffer = calloc(1, sizeof(*buffer));

		if (!buffer)
			return NULL;
		buffer->tid = (int)sim_syscall(SYS_gettid, 0, 0, 0);
		pthread_setspecific(buffer_key, buffer);
		sim_spin_lock(&buffers_lock);
		buffer->next = buffers;
		buffers = buffer;
		sim_spin_unlock(&buffers_lock);
		my_buffer = buffer;
	}
	return my_buffer;
}

static int open_file(const char *what, const char *head)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%d.tsv", truth_dir, what, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (fd >= 0)
		write_all(fd, head, strlen(head));
	else
		fprintf(stderr, "sim: cannot write %s\n", path);
	return fd;
}

static void open_files(void)
{
	static const char head[] =
		"#tid\tlayer\tdepth\tfunction\tresult\tbegin_ns\tend_ns\tbytes\tsrc\tdst\tstream"
		"\tgpu_wait_ns\tlock_wait_ns\tlock\tholder_tid\tnote\n";
	static const char gpu_head[] =
		"#device\tgpu\tkind\tstream\ttid\tfunction\tcall_begin_ns\tcall_end_ns\tbegin_ns"
		"\tend_ns\tsize\tsrc\tdst\tcorrelation\tgraph\tname\tnote\tsubmit_ns\n";

	truth_fd = open_file("truth", head);
	waits_fd = open_file("waits", sim_waits_head);
	gpu_fd = open_file("gpu", gpu_head);
	truth_on = truth_fd >= 0 && waits_fd >= 0 && gpu_fd >= 0;
	sim_waits_on = truth_on;
}

void sim_truth_gpu(const char *text, size_t bytes)
{
	write_all(gpu_fd, text, bytes);
}

void sim_truth_mps(void)
{
	static const char head[] =
		"#client\tuser\tserver_pid\tserver_user\twaited_ns\tpercentage\tmultiprocessors\n";
	char text[128];
	int fd;

	if (!truth_on)
		return;
	fd = open_file("mps", head);
	snprintf(text, sizeof(text), "%d\t%d\t%d\t%d\t%llu\t%g\t%d\n", sim_mps.client, sim_mps.user,
		 sim_mps.server_pid, sim_mps.server_user, (unsigned long long)sim_mps.wait_ns,
		 sim_mps.percentage, sim_mps.multiprocessors);
	write_all(fd, text, strlen(text));
	close(fd);
}

void sim_truth_init(const char *dir)
{
	const char *all = getenv("SPYSIM_TRUTH_ALL");

	truth_all = !all || strcmp(all, "0") != 0;
	if (!dir || !*dir || strlen(dir) >= sizeof(truth_dir))
		return;
	strcpy(truth_dir, dir);
	pthread_key_create(&buffer_key, thread_ends);
	open_files();
	if (truth_on) {
		sim_spans_on = true;
		sim_jobs_truth();
	}
}

/* The child starts a file of its own; its parent's buffered records are the parent's to write. */
void sim_truth_fork_child(void)
{
	if (!truth_on)
		return;
	atomic_store(&buffers_lock.locked, 0);
	buffers = NULL;
	my_buffer = NULL;
	pthread_setspecific(buffer_key, NULL);
	close(truth_fd);
	close(waits_fd);
	close(gpu_fd);
	open_files();
	atomic_store_explicit(&late_ns, 0, memory_order_relaxed);
	sim_self.tid = 0;
	sim_self.span = NULL;
	sim_self.depth = 0;
}

/* What the machine did to this process. */
static void write_late(void)
{
	char text[32];
	int fd = open_file("late", "#late_ns\n");

	snprintf(text, sizeof(text), "%llu\n",
		 (unsigned long long)atomic_load_explicit(&late_ns, memory_order_relaxed));
	write_all(fd, text, strlen(text));
	close(fd);
}

__attribute__((destructor)) static void truth_exit(void)
{
	if (!truth_on)
		return;
	sim_spin_lock(&buffers_lock);
	__atomic_store_n(&exiting, true, __ATOMIC_RELEASE);
	for (struct buffer *b = buffers; b; b = b->next)
		flush(b);
	sim_spin_unlock(&buffers_lock);
	write_late();
	sim_engine_exit();
}

int sim_span_open(struct sim_span *span, enum sim_fn fn)
{
	memset(span, 0, sizeof(*span));
	span->fn = fn;
	span->outer = sim_self.span;
	span->depth = (unsigned char)sim_self.depth;
	sim_self.span = span;
	sim_self.depth++;
	if (atomic_load_explicit(&sim_jobs_on, memory_order_relaxed)) {
		static atomic_uint correlations;

		span->correlation = span->outer && span->outer->correlation
					    ? span->outer->correlation
					    : atomic_fetch_add(&correlations, 1) + 1;
		span->begin_ns = sim_now_ns();
	}
	if (sim_script_has_errors()) {
		int rc = sim_script_error(fn);

		if (rc)
			return rc;
	}
	if (sim_script_names(fn))
		sim_holds_begin(span);
	return 0;
}

static bool is_full(const struct buffer *buffer)
{
	return atomic_load_explicit(&buffer->used, memory_order_relaxed) == RECORDS_PER_BUFFER ||
	       atomic_load_explicit(&buffer->wait_cnt, memory_order_relaxed) == WAITS_PER_BUFFER;
}

static void flush_shared(struct buffer *buffer)
{
	sim_spin_lock(&buffers_lock);
	flush(buffer);
	sim_spin_unlock(&buffers_lock);
}

void sim_note_wait(struct sim_wait *wait)
{
	struct sim_span *span = sim_self.span;
	struct buffer *buffer = sim_waits_on && span ? buffer_of_thread() : NULL;
	unsigned cnt;

	if (!buffer)
		return;
	wait->dev = (short)(sim_self.ctx ? sim_self.ctx->dev : -1);
	wait->fn = span->fn;
	while (span->outer)
		span = span->outer;
	wait->outer_fn = span->fn;
	if (is_full(buffer))
		flush_shared(buffer);
	cnt = atomic_load_explicit(&buffer->wait_cnt, memory_order_relaxed);
	buffer->waits[cnt] = *wait;
	atomic_store_explicit(&buffer->wait_cnt, cnt + 1, memory_order_release);
}

void sim_note_late(uint64_t ns)
{
	atomic_fetch_add_explicit(&late_ns, ns, memory_order_relaxed);
}

int sim_span_close(struct sim_span *span, int result)
{
	struct buffer *buffer;
	unsigned used;

	if (span->ioctl_ns || span->holding)
		sim_holds_end(span);
	sim_self.span = span->outer;
	sim_self.depth--;
	if (span->jobs || atomic_load_explicit(&sim_calls_on, memory_order_relaxed)) {
		span->result = result;
		span->end_ns = sim_now_ns();
		sim_jobs_of_call(span);
		sim_job_call(span);
	}
	if (!truth_on ||
	    (!truth_all && fn_counted[span->fn] && !span->lock && !span->unimplemented))
		return result;
	span->result = result;
	span->end_ns = sim_now_ns();
	buffer = buffer_of_thread();
	if (!buffer)
		return result;
	if (is_full(buffer))
		flush_shared(buffer);
	used = atomic_load_explicit(&buffer->used, memory_order_relaxed);
	buffer->records[used] = *span;
	atomic_store_explicit(&buffer->used, used + 1, memory_order_release);
	/* The runtime's destructor runs after ours and still calls the driver. */
	if (__builtin_expect(__atomic_load_n(&exiting, __ATOMIC_ACQUIRE), 0))
		flush_shared(buffer);
	return result;
}

void sim_unimplemented(enum sim_fn fn)
{
	static atomic_bool said[FN_COUNT];

	if (sim_self.span)
		sim_self.span->unimplemented = true;
	if (!atomic_exchange(&said[fn], true) && getenv("SPYSIM_VERBOSE"))
		fprintf(stderr, "sim: %s is not simulated: returns 801\n", sim_fn_name[fn]);
}

void sim_note_copy(uint64_t bytes, enum sim_mem src, enum sim_mem dst, const void *stream)
{
	struct sim_span *span = sim_self.span;

	/* The runtime's call moves what its driver call moves. */
	for (; span; span = span->outer) {
		span->bytes += bytes;
		span->src = (unsigned char)src;
		span->dst = (unsigned char)dst;
		span->stream = (uint64_t)(uintptr_t)stream;
	}
}

void sim_note_staged(void)
{
	for (struct sim_span *span = sim_self.span; span; span = span->outer)
		span->staged = true;
}

void sim_note_stream(const void *stream)
{
	for (struct sim_span *span = sim_self.span; span; span = span->outer)
		span->stream = (uint64_t)(uintptr_t)stream;
}
