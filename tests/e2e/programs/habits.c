/*
 * tests/e2e/programs/habits.c: habits that cudaspy finds, and near twins of them that are none, for
 * test_findings_calls.sh. On the simulator.
 *
 *   habits NAME...      what to do, one after the other: a row of habits[]
 *
 * Prints nothing. Status 0 unless a call fails that should not.
 */
#include <string.h>
#include "sim_program.h"

#define ROUNDS 200
#define FEW 40
#define BYTES 65536

static const char delay, lazy;
static void *stream, *other;
static char *gpu, *host;

static void launch(const char *kernel, int us, void *where)
{
	void *args[] = {&us};

	OK(cudaLaunchKernel(kernel, (struct dim3){1, 1, 1}, (struct dim3){1, 1, 1}, args, 0,
			    where));
}

static void sync_each(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		launch(&delay, 50, stream);
		OK(cudaStreamSynchronize(stream));
	}
}

/* The same work, and one wait for every twenty kernels. */
static void sync_some(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		launch(&delay, 50, stream);
		if (i % 20 == 19)
			OK(cudaStreamSynchronize(stream));
	}
}

/* A wait after each kernel, but for its results. */
static void sync_results(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		launch(&delay, 50, stream);
		OK(cudaMemcpyAsync(host, gpu, 64, D2H, stream));
		OK(cudaStreamSynchronize(stream));
	}
}

static void host_work(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void work(void)
{
	for (int i = 0; i < 4; i++)
		launch(&delay, 250, stream);
}

/* With pinned memory, and no copy to the host: its results must be there when it has waited. */
static void early_mapped(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		OK(cudaDeviceSynchronize());
		host_work(1500);
	}
}

/* It waits, gets nothing by it, and works. */
static void early(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		OK(cudaDeviceSynchronize());
		host_work(1500);
	}
	OK(cudaMemcpy(host, gpu, 64, D2H));
}

/* Its results it fetches behind its own work, with a call that waits by itself. */
static void early_fetch(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		OK(cudaStreamSynchronize(stream));
		host_work(1500);
		OK(cudaMemcpy(host, gpu, 64, D2H));
	}
}

static void late(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		host_work(1500);
		OK(cudaDeviceSynchronize());
	}
}

/* Works with what the wait brought. */
static void late_results(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		OK(cudaMemcpyAsync(host, gpu, 64, D2H, stream));
		OK(cudaStreamSynchronize(stream));
		host_work(1500);
	}
}

/* Fetches it behind the wait, and then works with it. */
static void late_fetched(void)
{
	for (int i = 0; i < FEW; i++) {
		work();
		OK(cudaDeviceSynchronize());
		OK(cudaMemcpy(host, gpu, 64, D2H));
		host_work(1500);
	}
}

/* To pageable memory: the copy waits for the kernels. Then the host waits for it, or works first. */
static void fetch(long us)
{
	char *pageable = malloc(BYTES);

	for (int i = 0; i < FEW && pageable; i++) {
		work();
		OK(cudaMemcpyAsync(pageable, gpu, BYTES, D2H, stream));
		if (us)
			host_work(us);
		OK(cudaStreamSynchronize(stream));
	}
	free(pageable);
}

static void fetch_wait(void)
{
	fetch(0);
}

static void fetch_work(void)
{
	fetch(2000);
}

/* Two buffers: while the host fills one, the GPU reads the other. */
static void two_buffers(void)
{
	void *done[2];

	for (int i = 0; i < 2; i++)
		OK(cudaEventCreate(&done[i]));
	for (int i = 0; i < FEW; i++) {
		if (i > 1)
			OK(cudaEventSynchronize(done[i % 2]));
		host_work(1500);
		OK(cudaMemcpyAsync(gpu, host + i % 2 * (BYTES / 2), BYTES / 2, H2D, stream));
		OK(cudaEventRecord(done[i % 2], stream));
		launch(&delay, 2500, stream);
	}
	OK(cudaStreamSynchronize(stream));
	for (int i = 0; i < 2; i++)
		OK(cudaEventDestroy(done[i]));
}

/* Once, as at the end of a measurement. */
static void measure(void)
{
	for (int i = 0; i < 40; i++)
		launch(&delay, 1000, stream);
	OK(cudaDeviceSynchronize());
	host_work(90000);
	OK(cudaMemcpy(host, gpu, 64, D2H));
}

/* A GPU that two streams use: the host waits for one and prepares the next piece of it. */
static void two_streams(void)
{
	for (int i = 0; i < FEW; i++) {
		launch(&delay, 2500, i % 2 ? stream : other);
		OK(cudaStreamSynchronize(i % 2 ? other : stream));
		host_work(1500);
	}
	OK(cudaDeviceSynchronize());
}

static void copy(int pieces)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < pieces; j++)
			OK(cudaMemcpyAsync(gpu + j * (BYTES / pieces), host + j * (BYTES / pieces),
					   (size_t)BYTES / (size_t)pieces, H2D, stream));
		for (int j = 0; j < 4; j++)
			launch(&delay, 50, stream);
		OK(cudaStreamSynchronize(stream));
	}
}

static void copy_pieces(void)
{
	copy(64);
}

static void copy_whole(void)
{
	copy(1);
}

static void fill_queue(void)
{
	for (int i = 0; i < 400; i++)
		launch(&delay, 300, stream);
	OK(cudaStreamSynchronize(stream));
}

static void load(int us)
{
	for (int i = 0; i < 20; i++)
		launch(&delay, 50, stream);
	OK(cudaStreamSynchronize(stream));
	if (us)
		launch(&delay, us, stream);
	launch(&lazy, 50, other);
	OK(cudaStreamSynchronize(other));
	OK(cudaStreamSynchronize(stream));
}

static void load_late(void)
{
	load(100000);
}

static void load_idle(void)
{
	load(0);
}

static void ignore_error(void)
{
	launch(&delay, 50, stream);
	cudaMemcpyAsync(gpu, host, 64, 99, stream);
	launch(&delay, 50, stream);
	OK(cudaStreamSynchronize(stream));
}

static void give_up(void)
{
	launch(&delay, 50, stream);
	OK(cudaStreamSynchronize(stream));
	cudaMemcpyAsync(gpu, host, 64, 99, stream);
}

static void break_capture(void)
{
	void *graph = NULL;

	OK(cudaStreamBeginCapture(stream, 0));
	launch(&delay, 50, stream);
	cudaStreamSynchronize(stream);
	if (!cudaStreamEndCapture(stream, &graph) && graph)
		OK(cudaGraphDestroy(graph));
}

static void capture(void)
{
	void *graph = NULL;

	OK(cudaStreamBeginCapture(stream, 0));
	launch(&delay, 50, stream);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphDestroy(graph));
}

/* A getter that is believed to be short. */
static void ask_memory(void)
{
	size_t free, total;

	for (int i = 0; i < FEW; i++) {
		OK(cudaMemGetInfo(&free, &total));
		work();
		OK(cudaStreamSynchronize(stream));
	}
}

static const struct {
	const char *name;
	void (*play)(void);
} habits[] = {
	{"sync-each", sync_each},       {"sync-some", sync_some},
	{"sync-results", sync_results}, {"copy-pieces", copy_pieces},
	{"early-mapped", early_mapped}, {"early", early},
	{"early-fetch", early_fetch},   {"late", late},
	{"late-results", late_results}, {"late-fetched", late_fetched},
	{"two-buffers", two_buffers},   {"fetch-wait", fetch_wait},
	{"fetch-work", fetch_work},     {"measure", measure},
	{"two-streams", two_streams},   {"copy-whole", copy_whole},
	{"fill-queue", fill_queue},     {"load-late", load_late},
	{"load-idle", load_idle},       {"ignore-error", ignore_error},
	{"give-up", give_up},           {"break-capture", break_capture},
	{"capture", capture},           {"ask-memory", ask_memory},
};

static void play(const char *name)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(*habits); i++) {
		if (!strcmp(name, habits[i].name)) {
			habits[i].play();
			return;
		}
	}
	fprintf(stderr, "habits: there is no '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static struct {
		int magic, version;
		const void *data, *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(code, &delay, NULL, "_Z5delayi", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(code, &lazy, NULL, "_Z10lazy_delayi", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFatBinaryEnd(code);
	OK(cudaStreamCreateWithFlags(&stream, 1));
	OK(cudaStreamCreateWithFlags(&other, 1));
	OK(cudaMalloc((void **)&gpu, BYTES));
	OK(cudaMallocHost((void **)&host, BYTES));
	for (int i = 1; i < argc; i++)
		play(argv[i]);
	OK(cudaFreeHost(host));
	OK(cudaFree(gpu));
	OK(cudaStreamDestroy(other));
	OK(cudaStreamDestroy(stream));
	return 0;
}
