/*
 * tests/e2e/programs/nvtx_tool.c: a tool for NVTX, to find what NVTX_INJECTION64_PATH names: it counts calls,
 * returns values of its own, and says at the end what it was called with.
 *
 *   NVTX_TOOL=fails    its initialisation fails, after it has filled slots
 *   NVTX_TOOL=half     it has no function of some kinds: no domains, no strings, no pushes
 *   NVTX_TOOL=several  its functions for a second object's slots are others
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int marks, pushes, pops, starts, ends, wrong, domains, strings, inits;

struct callbacks {
	size_t bytes;
	int (*module)(int module, void ****slots, unsigned int *n);
};

static char domain_objects[8], string_objects[8];

static int is_domain(const char *object)
{
	return object >= domain_objects && object < domain_objects + domains;
}

static int is_string(const char *object)
{
	return object >= string_objects && object < string_objects + strings;
}

static void mark(const void *text)
{
	wrong += !text;
	marks++;
}

static void other_mark(const void *text)
{
	mark(text);
}

static void domain_mark(void *domain, const void *attributes)
{
	wrong += !is_domain(domain) || !attributes;
	marks++;
}

static uint64_t start(const void *text)
{
	wrong += !text;
	return 7000 + (uint64_t)++starts;
}

static uint64_t domain_start(void *domain, const void *attributes)
{
	wrong += !is_domain(domain) || !attributes;
	return 7000 + (uint64_t)++starts;
}

static void end(uint64_t id)
{
	wrong += id < 7001 || id > 7000 + (uint64_t)starts;
	ends++;
}

static void domain_end(void *domain, uint64_t id)
{
	wrong += !is_domain(domain);
	end(id);
}

static int push(const void *text)
{
	wrong += !text;
	return 100 + pushes++;
}

static int pop(void)
{
	return 200 + pops++;
}

/* At 40 of nvtxEventAttributes_t: the message; at 32: its type, 3 registered. */
static int domain_push(void *domain, const char *attributes)
{
	void *string;
	int type;

	memcpy(&type, attributes + 32, sizeof(type));
	memcpy(&string, attributes + 40, sizeof(string));
	wrong += !is_domain(domain) || (type == 3 && !is_string(string));
	return 100 + pushes++;
}

static int domain_pop(void *domain)
{
	wrong += !is_domain(domain);
	return 200 + pops++;
}

static void *domain_create(const void *name)
{
	wrong += !name;
	return &domain_objects[domains++ % 8];
}

static void *string_register(void *domain, const void *text)
{
	wrong += !is_domain(domain) || !text;
	return &string_objects[strings++ % 8];
}

static void put(const struct callbacks *callbacks, int module, unsigned int function, void *mine)
{
	void ***slots = NULL;
	unsigned int n = 0;

	if (callbacks->module(module, &slots, &n) && function < n)
		*slots[function] = mine;
	else
		wrong++;
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr,
		"tool: %d inits, %d marks, %d pushes, %d pops, %d starts, %d ends, %d domains, "
		"%d strings, %d wrong\n",
		inits, marks, pushes, pops, starts, ends, domains, strings, wrong);
}

int InitializeInjectionNvtx2(const void *(*get)(uint32_t table));

int InitializeInjectionNvtx2(const void *(*get)(uint32_t table))
{
	const char *how = getenv("NVTX_TOOL") ?: "";
	const struct callbacks *callbacks = get(1);
	int i;

	inits++;
	for (i = 1; i <= 3; i++) {
		put(callbacks, 1, (unsigned int)i,
		    !strcmp(how, "several") && inits > 1 ? (void *)other_mark : (void *)mark);
		put(callbacks, 1, (unsigned int)i + 3, (void *)start);
	}
	put(callbacks, 1, 7, (void *)end);
	if (!strcmp(how, "half"))
		return 1;
	for (i = 8; i <= 10; i++)
		put(callbacks, 1, (unsigned int)i, (void *)push);
	put(callbacks, 1, 11, (void *)pop);
	put(callbacks, 5, 1, (void *)domain_mark);
	put(callbacks, 5, 2, (void *)domain_start);
	put(callbacks, 5, 3, (void *)domain_end);
	put(callbacks, 5, 4, (void *)domain_push);
	put(callbacks, 5, 5, (void *)domain_pop);
	put(callbacks, 5, 10, (void *)string_register);
	put(callbacks, 5, 11, (void *)string_register);
	put(callbacks, 5, 12, (void *)domain_create);
	put(callbacks, 5, 13, (void *)domain_create);
	return strcmp(how, "fails") != 0;
}
