/*
 * tests/fuzz/fuzz_reader.c: whatever is in the files of a trace, the analyzer survives it.
 *
 * An input is a stream file, or metadata if it begins as metadata does; all that report and dump do
 * is done with it. With clang -fsanitize=fuzzer -DFUZZER it is a libFuzzer target; without, it
 * replays the files named on its command line. Seeds: tests/fuzz/seeds, from the golden logs.
 */
#include "../unit/scratch.h"
#include "analysis.h"
#include "cmd_report.h"
#include "trace/dump.h"
#include "report/render.h"

static char *dir; /* in memory: a file is written for each input */
/* Whether the last input was taken for a trace, or for metadata. */
static bool taken;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	static FILE *nowhere;
	const char *dirs[1];
	struct report_options options = {.renderer = renderer_find("text"), .nested = true};
	struct metadata metadata;
	struct trace_set set;
	struct dump dump;

	if (!nowhere) {
		dir = strdup("/dev/shm/cudaspy-fuzz-XXXXXX");
		nowhere = fopen("/dev/null", "w");
		if (!nowhere || !dir || !mkdtemp(dir))
			abort();
	}
	dirs[0] = dir;
	if (size > 6 && !memcmp(data, "/* CTF", 6)) {
		metadata_parse(&metadata, "input", (const char *)data, size);
		metadata_release(&metadata);
		taken = true;
		return 0;
	}
	snprintf(path, sizeof(path), "%s/stream_0000_tail", dir);
	scratch_write(path, data, size);
	report_show(dirs, 1, NULL, &options, nowhere);
	dump_init(&dump, nowhere, NULL, false, false);
	taken = !trace_set_open(&set, dirs, 1, NULL);
	if (taken)
		dump_all(&dump, &set);
	trace_set_release(&set);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	size_t size = 0;
	char *data;
	int i, left_out = 0;

	for (i = 1; i < argc; i++) {
		data = scratch_read(argv[i], &size);
		taken = false;
		if (data)
			LLVMFuzzerTestOneInput((const uint8_t *)data, size);
		free(data);
		if (!taken)
			printf("%s: not read\n", argv[i]);
		left_out += !taken;
	}
	scratch_remove(dir);
	printf("%d inputs, %d of them not read\n", argc - 1, left_out);
	return left_out > 0;
}
#endif
