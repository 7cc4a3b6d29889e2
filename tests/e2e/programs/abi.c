/*
 * tests/e2e/programs/abi.c: calls every function of one CUDA library with all argument registers and stack
 * words full, and compares what arrived and what came back. The library is a fake that returns
 * hashes (fake.c, FAKE_MODE=hash or hash0); compiled once for each GENERATION and linked with it.
 *
 *   abi link|dlsym random|mixed|null LIBRARY
 *
 * random: every word is random. mixed: functions whose arguments an inspector may look at get words
 * that are valid as an address (of zeros) and as a count. null: all words are 0, then each of the first twelve in
 * turn, beside others as in mixed: what is NULL is never looked at, whatever the function.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "fake.h"
#include "fake_layers.h"

void abi_call(void *function, struct fake_args *args, uint64_t stack_words);

#define ENTRY(name, layer, record, contract, inspector) FAKE_##layer(extern const char name[];)
#include "cudaspy/entrypoints.def"
#undef ENTRY

enum record { TRANSPARENT, COUNTED, TRACED, INSTANT };

static const struct {
	const char *name;
	const void *linked;
	enum record record;
	const char *inspector;
} functions[] = {
#define ENTRY(name, layer, record, contract, inspector) \
	FAKE_##layer({#name COMMA name COMMA record COMMA #inspector} COMMA)
#define COMMA ,
#include "cudaspy/entrypoints.def"
};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define ROUNDS 4
#define LOW 0x10000ul /* where no program lies that is position independent */
#define LOW_BYTES (64ul << 20)

static uint64_t state = 88172645463325252ull;

static uint64_t random_word(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* An address in the low map that, taken for a number of things, stays inside it, and is not much more than it must be: so many
 * copies of a batch are looked at. */
static uint64_t harmless_word(void)
{
	return LOW + (random_word() & 0x1ff8);
}

static bool hash0;

/* Words that are 0: all of them, or number `zero` alone, those on the stack being 6 and more; -1: none. */
#define EVERY_WORD -2
#define WORDS_IN_TURN 12

static void put_zeros(struct fake_args *args, unsigned int stack_words, int zero)
{
	for (int i = 0; i < 6; i++)
		if (zero == EVERY_WORD || zero == i)
			args->word[i] = 0;
	for (int i = 0; i < (int)stack_words; i++)
		if (zero == EVERY_WORD || zero == 6 + i)
			args->stack[i] = 0;
}

static bool try(const char *name, void *function, bool harmless, int zero)
{
	uint64_t stack[FAKE_STACK_WORDS_EGL + 1];
	struct fake_args args = {.stack = stack};
	unsigned int words = fake_stack_words(name);
	uint64_t hash;

	for (int i = 0; i < 6; i++)
		args.word[i] = harmless ? harmless_word() : random_word();
	for (int i = 0; i < 16; i++)
		args.xmm[i / 2][i % 2] = random_word();
	for (unsigned int i = 0; i < words; i++)
		stack[i] = harmless ? harmless_word() : random_word();
	put_zeros(&args, words, zero);
	abi_call(function, &args, words);
	hash = fake_hash(name, GENERATION, &args);
	if (args.rax != (hash0 ? hash & 0xffffffff00000000ull : hash)) {
		printf("%s: arguments or rax differ\n", name);
		return false;
	}
	if (args.rdx != fake_mix(hash, 1)) {
		printf("%s: rdx differs\n", name);
		return false;
	}
	if (args.xmm0[0] != fake_mix(hash, 2) || args.xmm0[1] != fake_mix(hash, 3) ||
	    args.xmm1[0] != fake_mix(hash, 4) || args.xmm1[1] != fake_mix(hash, 5)) {
		printf("%s: xmm0 or xmm1 differ\n", name);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned int failed = 0, seen[4] = {0};
	void *library;
	bool nulls;

	if (argc != 4 || !getenv("FAKE_MODE"))
		return 2;
	hash0 = strcmp(getenv("FAKE_MODE"), "hash0") == 0;
	nulls = strcmp(argv[2], "null") == 0;
	if (mmap((void *)LOW, LOW_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
		 0) != (void *)LOW) {
		perror("abi: low map");
		return 77;
	}
	library = dlopen(argv[3], RTLD_NOW);
	if (!library) {
		puts(dlerror());
		return 1;
	}
	for (int round = 0; round < (nulls ? 1 + WORDS_IN_TURN : ROUNDS); round++) {
		for (size_t i = 0; i < FUNCTIONS; i++) {
			const char *name = functions[i].name;
			bool harmless = strcmp(argv[2], "random") != 0 &&
					strcmp(functions[i].inspector, "none") != 0;
			void *function = strcmp(argv[1], "link") == 0 ? (void *)functions[i].linked
								      : dlsym(library, name);

			if (!function) {
				printf("%s: not found\n", name);
				failed++;
				continue;
			}
			failed += !try(name, function, harmless,
				       !nulls       ? -1
				       : round == 0 ? EVERY_WORD
						    : round - 1);
			seen[functions[i].record]++;
		}
	}
	printf("%zu functions: %u traced, %u counted, %u transparent calls, %u failed\n", FUNCTIONS,
	       seen[TRACED], seen[COUNTED] + seen[INSTANT], seen[TRANSPARENT], failed);
	return failed > 0;
}
