/*
 * tests/fuzz/fuzz_trace.c: whatever is in the files of traces, the analyzer survives it, and what it says of them is what
 * a report has to be.
 *
 * An input is a stream file, metadata, a container, or a file that a user gives to an option, if it begins as one of these does (those
 * of options with a word that says which option: file_options); else a program that makes whole traces
 * (trace_from_bytes.h). The traces are read as by `cudaspy report`, and the report is shown in all formats; as its first
 * bytes say, also as by info, dump, why and diff, with a gate, and out of containers, whole or damaged. checks.h looks at what comes out.
 *
 * With clang -fsanitize=fuzzer -DFUZZER it is a libFuzzer target. Without, it is a program (tests/fuzz/run):
 *
 *   fuzz_trace FILE...                     replays inputs
 *   fuzz_trace --random SECONDS SEED FILE...   makes inputs by chance, new ones and such as the FILEs with changes; SEED 0:
 *                                          another one each time
 *   fuzz_trace --keep DIR ...              leaves the reports of each input there, for other checkers
 *
 * An input that fails is left in $FUZZ_OUT (.), and its name is said.
 */
#include <dirent.h>
#include <time.h>
#include "../unit/scratch.h"
#include "analysis.h"
#include "check_timeline.h"
#include "checks.h"
#include "cmd_read/cmd_report.h"
#include "../unit/trace_text.h"
#include "pack/pack.h"
#include "trace_from_bytes.h"
#include "filter/words.h"
#include "findings/gate.h"
#include "render/render.h"
#include "model/dump.h"

#define OPTION_BYTES 4 /* of an input that makes traces: what is done with them */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char parent[TB_PARENT_MAX]; /* of the traces, in memory */
static FILE *nowhere;
static const char *keep; /* directory for reports; NULL: none */
static unsigned int n_inputs;
static bool taken; /* the last input was read as a trace, or as metadata */

/* ---- what is wrong ------------------------------------------------------------------------------- */

static void must_be_right(const char *what, const char *says)
{
	if (!says)
		return;
	dprintf(STDERR_FILENO, "\nfuzz_trace: %s: %s\n", what, says);
	abort();
}

static void keep_text(const char *suffix, const char *text, size_t size)
{
	char path[512];

	if (!keep)
		return;
	snprintf(path, sizeof(path), "%s/%u.%s", keep, n_inputs, suffix);
	scratch_write(path, text, size);
}

/* ---- reports -------------------------------------------------------------------------------------- */

static const char *check_whole_report(const char *text, size_t size)
{
	json_error_t why;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
	const char *says;

	if (!root)
		return wrong("line %d: %s", why.line, why.text);
	says = check_report(root);
	json_decref(root);
	return says;
}

/* A renderer that shows the report in every format there is, and looks at what came of it. */
static int render_all(const struct report *report, FILE *out)
{
	char *text;
	size_t i, size;
	FILE *file;

	(void)out;
	for (i = 0; i < n_renderers; i++) {
		const char *name = renderers[i].name;

		file = open_memstream(&text, &size);
		if (!file || renderers[i].render(report, file) || fclose(file))
			abort();
		keep_text(name, text, size);
		if (!strcmp(name, "json"))
			must_be_right("report in JSON", check_whole_report(text, size));
		else if (!strcmp(name, "junit"))
			must_be_right("report in JUnit", check_junit(text));
		else if (!strcmp(name, "sarif"))
			must_be_right("report in SARIF", check_sarif(text, size));
		else if (!strcmp(name, "html"))
			must_be_right("timeline", check_timeline(&report->timeline));
		else
			must_be_right("report in text", check_text(text, size));
		free(text);
	}
	return 0;
}

static const struct renderer all_formats = {
	.name = "all", .render = render_all, .findings = true, .timeline = true};

/* A gate that asks for this and that. */
static void report_with_gate(uint8_t bits)
{
	static const char *const rules[] = {NULL, "any", "problem", "hidden-sync,lazy-loading"};
	static const struct filter_words limits[] = {
		{{NULL}},
		{{[FILTER_THREAD] = "*", [FILTER_GPU] = "0-3", [FILTER_FROM] = "20%"}},
		{{[FILTER_RANGE] = "*", [FILTER_FUNCTION] = "cuda*"}},
		{{[FILTER_PROCESS] = "*", [FILTER_FROM] = "phase", [FILTER_TO] = "90%"}},
	};
	static const char *const budgets[] = {NULL, "all:1ms", "all:5%", "full-queue:10x,all:0"};
	const char *dirs[] = {parent};
	struct gate gate;
	struct filter filter;
	struct report_options options = {.renderer = &all_formats,
					 .only = &filter,
					 .nested = bits & 16,
					 .verbose = bits & 32};

	if (filter_parse(&filter, &limits[bits >> 6]))
		abort();
	if (!gate_init(&gate, rules[bits & 3], budgets[bits >> 2 & 3], NULL, 0)) {
		options.gate = &gate;
		taken = !report_show(dirs, 1, NULL, &options, nowhere);
		/* It may have nothing that fits the filter. */
		options.only = NULL;
		taken = taken || !report_show(dirs, 1, NULL, &options, nowhere);
	}
	gate_release(&gate);
	filter_release(&filter);
}

/* What a command writes to standard output. The caller frees. */
static char *output_of(const struct command *command, char **argv, size_t *size)
{
	FILE *out = stdout;
	char *text = NULL;
	int argc = 0;

	while (argv[argc])
		argc++;
	stdout = open_memstream(&text, size);
	command->run(command, argc, argv);
	fclose(stdout);
	stdout = out;
	return text;
}

static bool is_json(const char *format)
{
	return !strcmp(format, "json") || !strcmp(format, "chrome");
}

static void check_command(const struct command *command, char *a, char *b, const char *format)
{
	char option[32];
	char *argv[] = {(char *)command->name, option, a, b, NULL}, *text;
	size_t size;

	snprintf(option, sizeof(option), "--format=%s", format);
	text = output_of(command, argv, &size);
	if (text && *text)
		must_be_right(command->name,
			      is_json(format) ? check_json(text, size) : check_text(text, size));
	free(text);
}

static void dump(bool stable)
{
	const char *dirs[] = {parent};
	char *text = NULL;
	struct trace_set set;
	struct dump dump;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	dump_init(&dump, out, NULL, false, stable);
	if (!trace_set_open(&set, dirs, 1, NULL))
		dump_all(&dump, &set);
	trace_set_release(&set);
	fclose(out);
	must_be_right("dump", check_text(text, size));
	free(text);
}

/* What else there is to be asked; only some of it, for each reads the traces again. */
static void ask_more(uint8_t bits, uint8_t subject)
{
	static const char *const subjects[] = {"101",
					       "102",
					       "201",
					       "L1",
					       "L2",
					       "gpu0",
					       "gpu1",
					       "cudaLaunchKernel",
					       "cudaMemcpyAsync",
					       "cudaMalloc",
					       "cudaFree",
					       "cudaStreamSynchronize",
					       "main",
					       "worker"};
	const char *format = bits & 1 ? "json" : "text";
	char standard_output[] = "--output=-";

	if (bits & 2)
		check_command(&command_why, (char *)subjects[subject % ARRAY_SIZE(subjects)],
			      parent, format);
	if (bits & 4)
		check_command(&command_info, parent, NULL, format);
	if (bits & 8)
		dump(bits & 1);
	if (bits & 16)
		check_command(&command_diff, parent, parent, format);
	if (bits & 32)
		check_command(&command_export, standard_output, parent, "chrome");
	if (bits & 64)
		check_command(&command_export, standard_output, parent, "folded");
}

/* ---- files of options ---------------------------------------------------------------------------------- */

/* What an input begins with that is such a file, and the option. Behind that word is the file. */
static const struct file_option {
	const char *word;
	bool suppress, baseline, profile, run, map;
} file_options[] = {
	{.word = "#suppress\n", .suppress = true},
	{.word = "#baseline\n", .baseline = true},
	{.word = "#profile\n", .profile = true},
	{.word = "#run\n", .run = true}, /* a side of diff */
	{.word = "#map\n", .map = true}, /* of perf, which no option names */
};

/* A trace with findings of several kinds. */
static void make_plain_trace(void)
{
	static const char log[] =
		"trace app.1 pid=%d program=\"app\" probes=1\nslot 0\n1us note note=version "
		"text=\"driver 13000\"\n"
		"1us gpu device=0 name=\"NVIDIA H200\" uuid=\"GPU-1\"\nslot 1 tid=7\n"
		"10ms memory cudaMalloc duration=5ms op=alloc kind=device bytes=4096 "
		"caller=0x401000\n"
		"20ms launch cudaLaunchKernel duration=5us kernel=1 stream=8 caller=0x401010\n"
		"30ms copy cudaMemcpyAsync duration=9ms direction=d2h src=device dst=pageable "
		"bytes=1000000 stream=8 caller=0x401020\n"
		"40ms memory cudaFree duration=8ms op=free kind=device caller=0x401030\n"
		"50ms op cudaStreamSynchronize duration=2ms stream=8 result=700 "
		"caller=0x401040\n";
	char path[TB_PARENT_MAX + 8];
	FILE *file;

	snprintf(path, sizeof(path), "%s.log", parent);
	file = fopen(path, "w");
	if (!file || fprintf(file, log, (int)getpid()) < 0 || fclose(file))
		abort();
	tt_make(path, parent);
	unlink(path);
}

/* What is refused is refused with a word that says what is wrong with it. */
static void must_say_why(const char *what, int err, unsigned int complaints)
{
	if (err && warnings_count() == complaints)
		must_be_right(what, wrong("refused without a word"));
}

static void read_option_file(const struct file_option *option, const uint8_t *data, size_t size)
{
	unsigned int complaints = warnings_count();
	char path[TB_PARENT_MAX + 8];
	const char *dirs[] = {parent};
	const char *suppress = path;
	struct report_options options = {.renderer = &all_formats,
					 .profile = option->profile ? path : NULL};
	struct gate gate;
	int err;

	if (option->map)
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	else
		snprintf(path, sizeof(path), "%s.file", parent);
	scratch_write(path, data, size);
	make_plain_trace();
	err = gate_init(&gate, "any", "all:1ms", &suppress, option->suppress);
	if (!err && option->baseline)
		err = baseline_read(&gate.baseline, path);
	must_say_why(option->word, err, complaints);
	if (!err && !option->run) {
		options.gate = &gate;
		must_say_why(option->word, report_show(dirs, 1, NULL, &options, nowhere),
			     complaints);
	}
	gate_release(&gate);
	if (option->run)
		check_command(&command_diff, path, parent, "json");
	unlink(path);
	taken = true;
}

/* ---- containers ----------------------------------------------------------------------------------------- */

/* One byte is another one: anywhere, or where the index is. */
static void damage(const char *path, const uint8_t *how)
{
	size_t size = 0, off;
	char *bytes = scratch_read(path, &size);

	off = (size_t)(how[1] << 16 | how[2] << 8 | how[0]);
	off = how[3] & 4 && size > 600 ? size - 1 - off % 600 : off % size;
	bytes[off] = (char)(bytes[off] ^ (1 << (how[3] >> 5)));
	scratch_write(path, bytes, how[3] & 8 ? off : size);
	free(bytes);
}

/* The traces become containers, some of which are damaged or cut off. how: OPTION_BYTES of them. */
static void pack_all(const uint8_t *how)
{
	struct dirent **entries;
	int i, n = scandir(parent, &entries, NULL, alphasort);

	for (i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", parent, entries[i]->d_name);

		if (entries[i]->d_name[0] != '.' && !pack_in_place(path) && how[3] & 2)
			damage(path, how);
		free(path);
		free(entries[i]);
	}
	free(entries);
}

/* ---- inputs ---------------------------------------------------------------------------------------- */

static void empty_parent(void)
{
	nftw(parent, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(parent, 0700))
		abort();
}

static void begin_once(void)
{
	if (nowhere)
		return;
	nowhere = fopen("/dev/null", "w");
	snprintf(parent, sizeof(parent), "/dev/shm/cudaspy-fuzz-%d", (int)getpid());
	if (!nowhere)
		abort();
	stderr = nowhere; /* complaints; what fails is said on the descriptor */
	setenv("COLUMNS", "100", 1);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

static bool begins(const uint8_t *data, size_t size, const char *with)
{
	return size > strlen(with) && !memcmp(data, with, strlen(with));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metadata metadata;
	char path[TB_PARENT_MAX + 32];
	size_t i;

	begin_once();
	n_inputs++;
	taken = false;
	if (begins(data, size, "/* CTF")) {
		metadata_parse(&metadata, "input", (const char *)data, size);
		metadata_release(&metadata);
		taken = true;
		return 0;
	}
	empty_parent();
	for (i = 0; i < ARRAY_SIZE(file_options); i++) {
		size_t word = strlen(file_options[i].word);

		if (!begins(data, size, file_options[i].word))
			continue;
		read_option_file(&file_options[i], data + word, size - word);
		return 0;
	}
	if (begins(data, size, "\xc1\x1f\xfc\xc1")) {
		snprintf(path, sizeof(path), "%s/stream_0000_tail", parent);
		scratch_write(path, data, size);
		report_with_gate(0);
		ask_more(8, 0);
		return 0;
	}
	if (begins(data, size, "PK\3\4")) {
		struct container c;

		snprintf(path, sizeof(path), "%s/input.cudaspy", parent);
		scratch_write(path, data, size);
		report_with_gate(0);
		if (!container_open(&c, path, false))
			(void)!unpack_container(&c, parent, size & 1);
		container_release(&c);
		return 0;
	}
	if (size < OPTION_BYTES)
		return 0;
	tb_make(parent, data + OPTION_BYTES, size - OPTION_BYTES);
	if (data[3] & 1)
		pack_all(data);
	report_with_gate(data[0]);
	if (data[1] >= 0xc0)
		ask_more(data[1], data[2]);
	return 0;
}

#ifndef FUZZER
/* ---- without libFuzzer ------------------------------------------------------------------------------- */

#define INPUT_MOST 2048

static char failing[512]; /* where an input is left before it is tried */

static bool replay(const char *path)
{
	size_t size = 0;
	char *data = scratch_read(path, &size);

	if (data)
		LLVMFuzzerTestOneInput((const uint8_t *)data, size);
	free(data);
	if (!data || !taken)
		printf("%s: not read\n", path);
	return data && taken;
}

static uint64_t state;

/* xorshift64*: the same numbers for the same seed, everywhere. */
static uint64_t by_chance(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dull >> 16) % below;
}

/* Bytes by chance; of a file, some of its bytes are others, or some are gone. */
static size_t make_input(uint8_t *data, char **files, int n_files)
{
	size_t size = by_chance(4) ? by_chance(200) : by_chance(INPUT_MOST), from_file = 0, from, i,
	       n;
	char *file = n_files && by_chance(2)
			     ? scratch_read(files[by_chance((uint64_t)n_files)], &from_file)
			     : NULL;

	for (i = 0; i < size; i++)
		data[i] = (uint8_t)by_chance(256);
	if (!file)
		return size;
	size = from_file < INPUT_MOST ? from_file : INPUT_MOST;
	memcpy(data, file, size);
	free(file);
	for (n = 1 + by_chance(8); n && size; n--) {
		i = by_chance(size);
		from = by_chance(size);
		if (by_chance(4))
			data[i] = (uint8_t)by_chance(256);
		else if (by_chance(2))
			memmove(data + i, data + i + 1, --size - i);
		else
			memmove(data + i, data + from, min_u64(size - (i > from ? i : from), 32));
	}
	return size;
}

static void try_by_chance(uint64_t seconds, uint64_t seed, char **files, int n_files)
{
	static uint8_t data[INPUT_MOST];
	time_t end = time(NULL) + (time_t)seconds;
	unsigned int n = 0;
	size_t size;

	if (!seed)
		seed = now_ns() % 1000000000;
	printf("seed %llu, for %llu s\n", (unsigned long long)seed, (unsigned long long)seconds);
	fflush(stdout);
	for (state = seed * 2 + 1; time(NULL) < end; n++) {
		size = make_input(data, files, n_files);
		scratch_write(failing, data, size);
		LLVMFuzzerTestOneInput(data, size);
	}
	unlink(failing);
	printf("%u inputs\n", n);
}

int main(int argc, char **argv)
{
	uint64_t seconds = 0, seed = 0;
	int i = 1, n, left_out = 0;

	snprintf(failing, sizeof(failing), "%s/failing-%d", getenv("FUZZ_OUT") ?: ".",
		 (int)getpid());
	if (i + 1 < argc && !strcmp(argv[i], "--keep")) {
		keep = argv[i + 1];
		i += 2;
	}
	if (i + 2 < argc && !strcmp(argv[i], "--random")) {
		seconds = strtoull(argv[i + 1], NULL, 10);
		seed = strtoull(argv[i + 2], NULL, 10);
		i += 3;
		try_by_chance(seconds, seed, argv + i, argc - i);
	} else {
		for (n = i; n < argc; n++)
			left_out += !replay(argv[n]);
		printf("%d inputs, %d of them not read\n", argc - i, left_out);
	}
	nftw(parent, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return left_out > 0;
}
#endif
