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
#include "dump.h"
#include "render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char dir[] = "/dev/shm/cudaspy-fuzz-XXXXXX", path[64];
	static FILE *nowhere;
	const char *dirs[] = {dir};
	struct report_options options = {.renderer = renderer_find("text"), .nested = true};
	struct metadata metadata;
	struct trace_set set;
	struct dump dump;

	if (!nowhere && (!(nowhere = fopen("/dev/null", "w")) || !mkdtemp(dir)))
		abort();
	if (size > 6 && !memcmp(data, "/* CTF", 6)) {
		metadata_parse(&metadata, "input", (const char *)data, size);
		metadata_release(&metadata);
		return 0;
	}
	snprintf(path, sizeof(path), "%s/stream_0001_tail", dir);
	scratch_write(path, data, size);
	report_show(dirs, 1, NULL, &options, nowhere);
	dump_init(&dump, nowhere, NULL, false, false);
	if (!trace_set_open(&set, dirs, 1, NULL))
		dump_all(&dump, &set);
	trace_set_release(&set);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	size_t size = 0;
	char *data;
	int i;

	for (i = 1; i < argc; i++) {
		data = scratch_read(argv[i], &size);
		if (data)
			LLVMFuzzerTestOneInput((const uint8_t *)data, size);
		free(data);
	}
	printf("%d inputs\n", argc - 1);
	return 0;
}
#endif
