/*
 * tests/fuzz/fuzz_digest.c: whatever is in a digest's file, its reader survives it: what it takes can be merged, reported,
 * dumped and written again, and is then the same.
 *
 * The checksum is made to fit, else nothing behind it would be looked at. With clang -fsanitize=fuzzer -DFUZZER it is a
 * libFuzzer target; without, a program: fuzz_digest FILE... replays inputs, fuzz_digest --random SECONDS SEED FILE... changes them
 * by chance (tests/fuzz/run --digest). An input that fails ends it.
 */
#include <stdlib.h>
#include <time.h>
#include "cmd_files/cmd_digest.h"
#include "job/sections.h"
#include "render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

static void put_le(uint8_t *at, uint64_t value, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* A head that fits the body, but for what else it says. */
static void set_head(uint8_t *bytes, size_t n)
{
	put_le(bytes + 16, DIGEST_HEAD_BYTES, 8);
	put_le(bytes + 24, n - DIGEST_HEAD_BYTES, 8);
	put_le(bytes + 32, digest_checksum(bytes + DIGEST_HEAD_BYTES, n - DIGEST_HEAD_BYTES), 8);
}

static void show(const struct digest *digest)
{
	struct report report;
	struct job job;

	report_init(&report, JOB_SCHEMA);
	job_init(&job, digest);
	job_report(&report, &job);
	report.view.verbose = true;
	if (render_text(&report, nowhere) || render_json(&report, nowhere) ||
	    render_html_tables(&report, nowhere) || digest_dump(digest, true, nowhere) ||
	    digest_dump(digest, false, nowhere))
		abort();
	report_release(&report);
	job_release(&job);
}

static void check_again(struct digest *digest)
{
	struct digest *again = digest_new();
	uint8_t *a, *b;
	size_t n_a, n_b;

	digest_write(digest, &a, &n_a);
	if (digest_read(again, "again", a, n_a) || digest_merge(again, digest))
		abort();
	digest_write(again, &b, &n_b);
	if (n_a != n_b || memcmp(a, b, n_a) != 0)
		abort();
	free(a);
	free(b);
	digest_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct digest *digest;
	uint8_t *bytes;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (size < DIGEST_HEAD_BYTES)
		return 0;
	bytes = malloc(size);
	memcpy(bytes, data, size);
	set_head(bytes, size);
	digest = digest_new();
	if (!digest_read(digest, "input", bytes, size)) {
		check_again(digest);
		show(digest);
	}
	digest_free(digest);
	free(bytes);
	return 0;
}

#ifndef FUZZER
struct input {
	uint8_t *bytes;
	size_t n;
};

static struct input read_input(const char *path)
{
	struct input input = {xcalloc(1, 1 << 20), 0};
	FILE *file = fopen(path, "re");

	if (!file) {
		perror(path);
		exit(2);
	}
	input.n = fread(input.bytes, 1, 1 << 20, file);
	fclose(file);
	return input;
}

/* Bytes that are others, gone, or there twice. */
static struct input changed(const struct input *input)
{
	struct input copy = {xcalloc(1, 2 * input->n + 1), input->n};
	int times = 1 + rand() % 6;

	memcpy(copy.bytes, input->bytes, input->n);
	while (times-- > 0 && copy.n > DIGEST_HEAD_BYTES + 16) {
		size_t at = DIGEST_HEAD_BYTES + (size_t)rand() % (copy.n - DIGEST_HEAD_BYTES - 8);
		size_t n = 1 + (size_t)rand() % 8;

		switch (rand() % 6) {
		case 0: /* gone */
			memmove(copy.bytes + at, copy.bytes + at + n, copy.n - at - n);
			copy.n -= n;
			break;
		case 1: /* twice */
			if (copy.n + n > 2 * input->n)
				break;
			memmove(copy.bytes + at + n, copy.bytes + at, copy.n - at);
			copy.n += n;
			break;
		case 2: /* a large number */
			memset(copy.bytes + at, 0xff, n);
			break;
		default:
			copy.bytes[at] = (uint8_t)rand();
		}
	}
	return copy;
}

int main(int argc, char **argv)
{
	bool random = argc > 4 && !strcmp(argv[1], "--random");
	int first = random ? 4 : 1, i;
	time_t end = random ? time(NULL) + atol(argv[2]) : 0;
	unsigned long n = 0;

	if (random)
		srand((unsigned int)atol(argv[3]));
	do {
		for (i = first; i < argc; i++, n++) {
			struct input input = read_input(argv[i]), copy;

			if (random) {
				copy = changed(&input);
				LLVMFuzzerTestOneInput(copy.bytes, copy.n);
				free(copy.bytes);
			} else {
				LLVMFuzzerTestOneInput(input.bytes, input.n);
			}
			free(input.bytes);
		}
	} while (random && time(NULL) < end);
	printf("%lu inputs\n", n);
	return 0;
}
#endif
