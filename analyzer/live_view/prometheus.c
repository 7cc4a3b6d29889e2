/*
 * analyzer/live_view/prometheus.c: metrics of running programs. Called by `top`.
 *
 * Labels are few and have few values: no addresses, no thread numbers.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include "base/lines.h"
#include "prometheus.h"
#include "base/outfile.h"
#include "live/recording.h"
#include "tables.h"
#include "text/nvml.h"

struct output {
	FILE *file;
	const struct live_words *w;
	const struct verdicts *v;
};

static void begin_metric(struct output *o, const char *name, const char *type, const char *help)
{
	fprintf(o->file, "# HELP cudaspy_%s %s\n# TYPE cudaspy_%s %s\n", name, help, name, type);
}

/* Values of labels are UTF-8; quotes, backslashes and ends of lines are escaped. */
static void print_value(FILE *file, const char *text)
{
	size_t n;

	for (; *text; text += n) {
		uint32_t code;

		n = utf8_character(text, &code);
		if (!n) {
			fputc('?', file);
			n = 1;
		} else if (*text == '\n') {
			fputs("\\n", file);
		} else if (*text == '"' || *text == '\\') {
			fprintf(file, "\\%c", *text);
		} else {
			fwrite(text, 1, n, file);
		}
	}
}

static void print_process(struct output *o, const char *name, const struct live_process *p)
{
	fprintf(o->file, "cudaspy_%s{pid=\"%u\",program=\"", name,
		p->recorded ? (unsigned int)p->recorded->pid : p->trace->pid);
	print_value(o->file, p->trace->program);
	fputs("\",rank=\"", o->file);
	if (p->trace->metadata.has_rank)
		fprintf(o->file, "%u", p->trace->metadata.rank);
	fputc('"', o->file);
}

/* A metric that has one number for each process. */
static void each_process(struct output *o, const char *name, const char *type, const char *help,
			 double (*value)(const struct live_process *p))
{
	const struct live *live = o->w->live;

	begin_metric(o, name, type, help);
	for (size_t i = 0; i < live->n_processes; i++) {
		print_process(o, name, &live->processes[i]);
		fprintf(o->file, "} %.17g\n", value(&live->processes[i]));
	}
}

static double start_of(const struct live_process *p)
{
	return (double)p->started_ns / 1e9;
}

static double calls_of(const struct live_process *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->trace->board.n_slots; i++)
		sum += (double)p->trace->board.slots[i].calls;
	return sum;
}

static double pageable_of(const struct live_process *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->trace->board.n_slots; i++)
		sum += (double)p->trace->board.slots[i].pageable;
	return sum;
}

static double lost_of(const struct live_process *p)
{
	double sum = (double)p->trace->board.head.lost;

	for (size_t i = 0; i < p->trace->board.n_slots; i++)
		sum += (double)p->trace->board.slots[i].lost;
	return sum;
}

static double rate_of(const struct live_process *p)
{
	return (double)live_calls_per_s(p);
}

static double dormant_of(const struct live_process *p)
{
	return live_is_dormant(p);
}

static double windows_of(const struct live_process *p)
{
	return (double)live_windows(p);
}

static double state_of(const struct live_process *p)
{
	uint64_t ns = live_recording_ns(p);

	return ns == UNKNOWN_NS ? 0 : (double)ns / 1e9;
}

static double longest_call_of(const struct live_process *p)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i]->in_call && p->threads[i]->call_ns != UNKNOWN_NS)
			longest = max_u64(longest, p->threads[i]->call_ns);
	return (double)longest / 1e9;
}

static double longest_lock_of(const struct live_process *p)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i]->doing == LIVE_LOCK && p->threads[i]->wait_ns != UNKNOWN_NS)
			longest = max_u64(longest, p->threads[i]->wait_ns);
	return (double)longest / 1e9;
}

static void print_threads(struct output *o)
{
	const struct live *live = o->w->live;

	begin_metric(o, "threads", "gauge", "Threads of recorded programs by what they do now.");
	for (size_t i = 0; i < live->n_processes; i++) {
		const struct live_process *p = &live->processes[i];

		for (enum live_doing doing = 0; doing < LIVE_NO_CUDA; doing++) {
			unsigned int n = 0;

			for (size_t j = 0; j < p->n_threads; j++)
				n += p->threads[j]->slot && p->threads[j]->doing == doing;
			print_process(o, "threads", p);
			fprintf(o->file, ",state=\"%s\"} %u\n", live_doing_name(doing), n);
		}
	}
}

static bool uses(const struct live_process *p, unsigned int device, unsigned int *waiting)
{
	bool yes = false;

	*waiting = 0;
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i]->slot && p->threads[i]->device == device) {
			yes = true;
			*waiting += p->threads[i]->doing == LIVE_GPU;
		}
	return yes;
}

static void print_gpus(struct output *o, bool outstanding)
{
	const struct live *live = o->w->live;
	const char *name = outstanding ? "gpu_outstanding_operations" : "gpu_waiting_threads";
	unsigned int device, waiting;

	begin_metric(
		o, name, "gauge",
		outstanding
			? "Operations handed to a GPU that no call has waited for since, at most."
			: "Threads in a call that waits for the GPU.");
	for (size_t i = 0; i < live->n_processes; i++)
		for (device = 0; device < SPY_DEVICE_NONE; device++) {
			const struct live_process *p = &live->processes[i];

			if (!uses(p, device, &waiting))
				continue;
			print_process(o, name, p);
			fprintf(o->file, ",gpu=\"%u\"} %llu\n", device,
				outstanding ? (unsigned long long)recent_outstanding(
						      &live->recent, p->index, device)
					    : waiting);
		}
}

/* By NVML. False: it is unknown. */
static bool utilisation(const struct spy_rec_gpu_look *look, double *value)
{
	*value = look->busy / 100.0;
	return true;
}

static bool clock_of(const struct spy_rec_gpu_look *look, double *value)
{
	*value = look->clock * 1e6;
	return look->clock;
}

static bool power_of(const struct spy_rec_gpu_look *look, double *value)
{
	*value = look->power / 1e3;
	return look->power;
}

static bool temperature_of(const struct spy_rec_gpu_look *look, double *value)
{
	*value = look->temperature;
	return look->temperature;
}

static bool others_of(const struct spy_rec_gpu_look *look, double *value)
{
	*value = look->others;
	return look->known & SPY_GPU_LOOK_PROCESSES;
}

static bool slowed(const struct spy_rec_gpu_look *look, double *value)
{
	*value = 0;
	for (unsigned int bit = 0; bit < 64; bit++)
		*value += look->reasons >> bit & 1 && text_nvml_limit(bit);
	return look->known & SPY_GPU_LOOK_REASONS;
}

static void each_gpu(struct output *o, const char *name, const char *help,
		     bool (*value_of)(const struct spy_rec_gpu_look *look, double *value))
{
	const struct live *live = o->w->live;
	double value;

	begin_metric(o, name, "gauge", help);
	for (size_t i = 0; i < live->n_processes; i++)
		for (unsigned int device = 0; device < SPY_DEVICE_NONE; device++) {
			const struct live_process *p = &live->processes[i];
			const struct spy_rec_gpu_look *look =
				recent_gpu_look(&live->recent, p->index, device,
						timeline_ns(&p->trace->timeline, p->now));

			if (!look || !value_of(look, &value))
				continue;
			print_process(o, name, p);
			fprintf(o->file, ",gpu=\"%u\"} %.17g\n", device, value);
		}
}

static void print_verdicts(struct output *o)
{
	begin_metric(o, "hangs", "gauge", "Reasons for which recorded programs hang now, by kind.");
	for (int kind = 0; kind < VERDICT_DORMANT; kind++) {
		unsigned int n = 0;

		for (size_t i = 0; i < o->v->n; i++)
			n += o->v->all[i].kind == (enum verdict_kind)kind;
		fprintf(o->file, "cudaspy_hangs{kind=\"%s\"} %u\n", verdict_name(kind), n);
	}
}

static void print_all(struct output *o)
{
	begin_metric(o, "processes", "gauge", "Recorded programs that are running.");
	fprintf(o->file, "cudaspy_processes %zu\n", o->w->live->n_processes);
	begin_metric(o, "looked_at_timestamp_seconds", "gauge", "When these numbers were taken.");
	fprintf(o->file, "cudaspy_looked_at_timestamp_seconds %.3f\n", (double)now_ns() / 1e9);
	print_verdicts(o);
	each_process(o, "process_start_time_seconds", "gauge", "When the recording began.",
		     start_of);
	each_process(o, "calls_total", "counter", "CUDA calls recorded, nested ones included.",
		     calls_of);
	each_process(o, "calls_per_second", "gauge",
		     "CUDA calls a second, those that are only counted included.", rate_of);
	each_process(o, "pageable_copies_total", "counter",
		     "Asynchronous copies of pageable memory.", pageable_of);
	each_process(o, "lost_records_total", "counter", "Records that could not be written.",
		     lost_of);
	each_process(o, "dormant", "gauge",
		     "1 while recording is dormant: what threads do is not known then.",
		     dormant_of);
	each_process(o, "windows_total", "counter",
		     "Windows of recording that have been opened; 0 where it never was dormant.",
		     windows_of);
	each_process(o, "recording_state_seconds", "gauge",
		     "For how long recording has been dormant, or has not been.", state_of);
	each_process(o, "longest_call_seconds", "gauge",
		     "How long the longest call of now has lasted.", longest_call_of);
	each_process(o, "longest_lock_wait_seconds", "gauge",
		     "How long the longest wait of now for a lock has lasted.", longest_lock_of);
	print_threads(o);
	print_gpus(o, true);
	print_gpus(o, false);
	each_gpu(o, "gpu_utilization_ratio", "Share of time in which a kernel ran, by NVML.",
		 utilisation);
	each_gpu(o, "gpu_clock_hertz", "Clock of the multiprocessors, by NVML.", clock_of);
	each_gpu(o, "gpu_power_watts", "Power that the GPU draws, by NVML.", power_of);
	each_gpu(o, "gpu_temperature_celsius", "Temperature of the GPU, by NVML.", temperature_of);
	each_gpu(o, "gpu_slowdown_reasons", "Reasons of NVML's for which the clock is no higher.",
		 slowed);
	each_gpu(o, "gpu_other_processes", "Other processes that compute on the GPU, by NVML.",
		 others_of);
}

int prometheus_write(const char *path, const struct live_words *w, const struct verdicts *v)
{
	struct output o = {.w = w, .v = v};
	struct outfile out;
	int err = outfile_open(&out, path);

	if (err)
		return err;
	if (out.temporary)
		fchmod(fileno(out.file), 0644); /* node_exporter is another user's */
	o.file = out.file;
	print_all(&o);
	err = finish_output(out.file);
	return outfile_close(&out, !err) ?: err;
}
