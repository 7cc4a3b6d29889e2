/*
 * tests/e2e/programs/fake.h: what a function of a fake CUDA library receives, and the hash of it that it
 * returns. Shared by the fakes and by abi.c, which computes the same hash of what it passed.
 */
#ifndef CUDASPY_TESTS_E2E_FAKE_H
#define CUDASPY_TESTS_E2E_FAKE_H

#include <stdint.h>
#include <string.h>

/* Offsets are fake_x86_64.S's. */
struct fake_args {
	uint64_t word[6];
	uint64_t xmm[8][2];
	uint64_t *stack;
	uint64_t index;
	uint64_t rax, rdx;
	uint64_t xmm0[2], xmm1[2];
};

/* Stack words compared: all that any function takes (80 bytes; 280 for the EGL ones by value). */
#define FAKE_STACK_WORDS 10
#define FAKE_STACK_WORDS_EGL 35

static inline unsigned int fake_stack_words(const char *name)
{
	return strstr(name, "EGL") ? FAKE_STACK_WORDS_EGL : FAKE_STACK_WORDS;
}

static inline uint64_t fake_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

static inline uint64_t fake_hash(const char *name, unsigned int generation,
				 const struct fake_args *args)
{
	uint64_t hash = generation;

	for (const char *c = name; *c; c++)
		hash = fake_mix(hash, (unsigned char)*c);
	for (unsigned int i = 0; i < 6; i++)
		hash = fake_mix(hash, args->word[i]);
	for (unsigned int i = 0; i < 8; i++)
		hash = fake_mix(fake_mix(hash, args->xmm[i][0]), args->xmm[i][1]);
	for (unsigned int i = 0; i < fake_stack_words(name); i++)
		hash = fake_mix(hash, args->stack[i]);
	return hash;
}

#endif
