/*
 * tests/recipes/llama_loop.c: a program whose CUDA calls all come out of a library that others built: llama.cpp, as
 * node-llama-cpp ships it on npm (docs/recipes/llama.md). It writes a small model with random weights (GGUF 3, architecture
 * "llama", no vocabulary), loads it, and generates tokens: the most likely one each time, so that its output is a function of
 * SEED.
 *
 *   llama_loop FOLDER [--layers N] [--width N] [--prompt N] [--tokens N] [--threads N] [--split none|layer|row] [--sort N]
 *
 * FOLDER has libllama.cuda.*.so and its like. The libraries are opened by name: nothing of theirs is needed to build this.
 * Tokens are written to the standard output, times for a token to the standard error. With --threads each thread has a context
 * of its own, and all share the model and the GPUs. With --sort the most likely token is found by sorting all of them, N times:
 * what a sampler written in a hurry does between two tokens, while the GPU waits.
 */
#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	VOCABULARY = 4096,
	HEAD = 64, /* dimensions of one */
	KEYS_PER_QUERY = 2, /* heads that share keys and values */
	CONTEXT = 2048, /* tokens */
	ALIGNMENT = 32, /* of a tensor's data in the file, bytes */
	BLOCK = 32, /* weights in a block of q8_0, behind one scale of 16 bits */
	THREADS = 64,
	SEED = 20261129,
};

/* ---- the model's file ------------------------------------------------------------------------ */

/* GGUF's types of a value, ggml's of a tensor. */
enum { U32 = 4, F32_VALUE = 6, STRING = 8 };
enum { F32 = 0, F16 = 1, Q8_0 = 8 };

struct tensor {
	char name[64];
	uint32_t type, dimensions;
	uint64_t size[2];
};

struct model {
	FILE *file;
	int layers, width;
	struct tensor *tensors;
	size_t n;
};

static uint32_t random_bits(void)
{
	static uint64_t state = SEED;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static void put(struct model *model, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, model->file) != bytes) {
		perror("llama_loop: model");
		exit(1);
	}
}

static void put_u32(struct model *model, uint32_t value)
{
	put(model, &value, sizeof(value));
}

static void put_u64(struct model *model, uint64_t value)
{
	put(model, &value, sizeof(value));
}

static void put_string(struct model *model, const char *text)
{
	put_u64(model, strlen(text));
	put(model, text, strlen(text));
}

static void put_text(struct model *model, const char *key, const char *value)
{
	put_string(model, key);
	put_u32(model, STRING);
	put_string(model, value);
}

static void put_number(struct model *model, const char *key, uint32_t value)
{
	put_string(model, key);
	put_u32(model, U32);
	put_u32(model, value);
}

static void add(struct model *model, const char *name, uint32_t type, uint64_t in, uint64_t out)
{
	struct tensor *tensor = &model->tensors[model->n++];

	snprintf(tensor->name, sizeof(tensor->name), "%s", name);
	tensor->type = type;
	tensor->dimensions = out ? 2 : 1;
	tensor->size[0] = in;
	tensor->size[1] = out ? out : 1;
}

static void add_layer(struct model *model, int layer)
{
	static const struct {
		const char *name;
		int type, in, out; /* in widths; 0: a vector; -1: what the keys have */
	} parts[] = {
		{"attn_norm", F32, 1, 0}, {"attn_q", Q8_0, 1, 1},     {"attn_k", Q8_0, 1, -1},
		{"attn_v", Q8_0, 1, -1},  {"attn_output", F16, 1, 1}, {"ffn_norm", F32, 1, 0},
		{"ffn_gate", Q8_0, 1, 4}, {"ffn_up", Q8_0, 1, 4},     {"ffn_down", Q8_0, 4, 1},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		int width = model->width;
		char name[64];

		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, parts[i].name);
		add(model, name, (uint32_t)parts[i].type, (uint64_t)(parts[i].in * width),
		    parts[i].out < 0 ? (uint64_t)(width / KEYS_PER_QUERY)
				     : (uint64_t)(parts[i].out * width));
	}
}

static uint64_t bytes_of(const struct tensor *tensor)
{
	uint64_t weights = tensor->size[0] * tensor->size[1];

	return tensor->type == F32   ? 4 * weights
	       : tensor->type == F16 ? 2 * weights
				     : weights / BLOCK * (2 + BLOCK);
}

/* Weights of about 1 / sqrt(width), either sign: what runs through stays of the same size. 0x2000 and so on are
 * numbers of 16 bits: a sign, five bits of exponent, ten of fraction. */
static void put_weights(struct model *model, const struct tensor *tensor)
{
	uint16_t exponent = (uint16_t)((15 - (int)lround(log2((double)tensor->size[0]) / 2)) << 10);
	uint64_t weights = tensor->size[0] * tensor->size[1];
	float one = 1;

	for (uint64_t i = 0; i < weights; i++) {
		uint32_t bits = random_bits();

		if (tensor->type == F32) {
			put(model, &one, sizeof(one));
		} else if (tensor->type == F16) {
			uint16_t weight = exponent | (bits & 0x3ff) | (bits & 0x400 ? 0x8000 : 0);

			put(model, &weight, sizeof(weight));
		} else {
			uint16_t scale = (uint16_t)(exponent - (6 << 10)); /* of 127 */
			int8_t weight = (int8_t)(bits & 0xff);

			if (i % BLOCK == 0)
				put(model, &scale, sizeof(scale));
			put(model, &weight, 1);
		}
	}
}

static void pad(struct model *model)
{
	while (ftell(model->file) % ALIGNMENT)
		put(model, "", 1);
}

static void write_model(const char *path, int layers, int width)
{
	struct model model = {.file = fopen(path, "wb"), .layers = layers, .width = width};
	uint64_t at = 0;
	float epsilon = 1e-5F;

	if (!model.file ||
	    !(model.tensors = calloc((size_t)layers * 9 + 3, sizeof(*model.tensors)))) {
		perror(path);
		exit(1);
	}
	add(&model, "token_embd.weight", F16, (uint64_t)width, VOCABULARY);
	for (int layer = 0; layer < layers; layer++)
		add_layer(&model, layer);
	add(&model, "output_norm.weight", F32, (uint64_t)width, 0);
	add(&model, "output.weight", F16, (uint64_t)width, VOCABULARY);

	put(&model, "GGUF", 4);
	put_u32(&model, 3);
	put_u64(&model, model.n);
	put_u64(&model, 10);
	put_text(&model, "general.architecture", "llama");
	put_text(&model, "tokenizer.ggml.model", "no_vocab");
	put_number(&model, "llama.vocab_size", VOCABULARY);
	put_number(&model, "llama.context_length", CONTEXT);
	put_number(&model, "llama.embedding_length", (uint32_t)width);
	put_number(&model, "llama.block_count", (uint32_t)layers);
	put_number(&model, "llama.feed_forward_length", (uint32_t)(4 * width));
	put_number(&model, "llama.attention.head_count", (uint32_t)(width / HEAD));
	put_number(&model, "llama.attention.head_count_kv",
		   (uint32_t)(width / HEAD / KEYS_PER_QUERY));
	put_string(&model, "llama.attention.layer_norm_rms_epsilon");
	put_u32(&model, F32_VALUE);
	put(&model, &epsilon, sizeof(epsilon));
	for (size_t i = 0; i < model.n; i++) {
		const struct tensor *tensor = &model.tensors[i];

		put_string(&model, tensor->name);
		put_u32(&model, tensor->dimensions);
		put(&model, tensor->size, 8 * tensor->dimensions);
		put_u32(&model, tensor->type);
		put_u64(&model, at);
		at += (bytes_of(tensor) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	}
	for (size_t i = 0; i < model.n; i++) {
		pad(&model);
		put_weights(&model, &model.tensors[i]);
	}
	pad(&model);
	free(model.tensors);
	if (fclose(model.file)) {
		perror(path);
		exit(1);
	}
}

/* ---- the library ----------------------------------------------------------------------------- */

/*
 * Parameters are passed by value and come last: behind what is named here, of llama.h of llama.cpp 0.5.0, there is room
 * for what newer versions append.
 */
struct model_parameters {
	void *devices, *buffers;
	int32_t gpu_layers, split;
	char rest[1000];
};

struct context_parameters {
	uint32_t context, batch, micro_batch, sequences;
	char rest[1000];
};

struct batch {
	int32_t n;
	int32_t *token;
	void *embd, *pos, *n_seq_id, *seq_id, *logits;
};

static struct {
	void (*ggml_backend_load_all_from_path)(const char *folder);
	void (*llama_log_set)(void (*log)(int, const char *, void *), void *data);
	struct model_parameters (*llama_model_default_params)(void);
	void *(*llama_model_load_from_file)(const char *path, struct model_parameters);
	struct context_parameters (*llama_context_default_params)(void);
	void *(*llama_init_from_model)(void *model, struct context_parameters);
	struct batch (*llama_batch_get_one)(int32_t *tokens, int32_t n);
	int32_t (*llama_decode)(void *context, struct batch);
	float *(*llama_get_logits_ith)(void *context, int32_t i);
	void (*llama_free)(void *context);
	void (*llama_model_free)(void *model);
} library;

static void *open_in(const char *folder, const char *pattern)
{
	char path[4096];
	void *object = NULL;
	glob_t found;

	snprintf(path, sizeof(path), "%s/%s", folder, pattern);
	if (!glob(path, 0, NULL, &found)) {
		object = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
		globfree(&found);
	}
	if (!object) {
		char *why = dlerror();

		fprintf(stderr, "llama_loop: %s: %s\n", path, why ? why : "there is none");
		exit(1);
	}
	return object;
}

static void *find(void *object, const char *name)
{
	void *address = dlsym(object, name);

	if (!address) {
		fprintf(stderr, "llama_loop: %s\n", dlerror());
		exit(1);
	}
	return address;
}

#define FIND(object, name) (*(void **)&library.name = find(object, #name))

static void open_library(const char *folder)
{
	void *ggml = open_in(folder, "libggml.*.so"), *llama = open_in(folder, "libllama.*.so");

	FIND(ggml, ggml_backend_load_all_from_path);
	FIND(llama, llama_log_set);
	FIND(llama, llama_model_default_params);
	FIND(llama, llama_model_load_from_file);
	FIND(llama, llama_context_default_params);
	FIND(llama, llama_init_from_model);
	FIND(llama, llama_batch_get_one);
	FIND(llama, llama_decode);
	FIND(llama, llama_get_logits_ith);
	FIND(llama, llama_free);
	FIND(llama, llama_model_free);
}

static void log_errors(int level, const char *text, void *data)
{
	static int last;

	(void)data;
	last = level == 5 ? last : level; /* 5: goes on where the last one ended */
	if (last >= 4 || getenv("LLAMA_LOOP_VERBOSE"))
		fputs(text, stderr);
}

/* ---- the loop -------------------------------------------------------------------------------- */

struct job {
	void *model;
	int prompt, n, number, sorts;
	int32_t *tokens;
	double seconds; /* from the first generated token on */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((noinline)) static int32_t most_likely(const float *logits)
{
	int32_t best = 0;

	for (int32_t i = 1; i < VOCABULARY; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

static int by_logit(const void *a, const void *b)
{
	const float *x = *(const float *const *)a, *y = *(const float *const *)b;

	return *x != *y ? (*x < *y) - (*x > *y) : (x > y) - (x < y);
}

__attribute__((noinline)) static int32_t first_of_sorted(const float *logits)
{
	const float *order[VOCABULARY];

	for (int32_t i = 0; i < VOCABULARY; i++)
		order[i] = &logits[i];
	qsort(order, VOCABULARY, sizeof(*order), by_logit);
	return (int32_t)(order[0] - logits);
}

__attribute__((noinline)) static void decode(void *context, int32_t *tokens, int32_t n)
{
	int status = library.llama_decode(context, library.llama_batch_get_one(tokens, n));

	if (status) {
		fprintf(stderr, "llama_loop: llama_decode: %d\n", status);
		exit(1);
	}
}

/* A line of tokens, whole where threads end at the same time. */
static void print(const struct job *job)
{
	flockfile(stdout);
	for (int i = 0; i < job->n; i++)
		printf("%d%c", job->tokens[i], i == job->n - 1 ? '\n' : ' ');
	fflush(stdout);
	funlockfile(stdout);
	fprintf(stderr, "thread %d: %.3f ms a token\n", job->number, 1e3 * job->seconds / job->n);
}

static void *generate(void *data)
{
	struct job *job = data;
	struct context_parameters parameters = library.llama_context_default_params();
	int32_t prompt[CONTEXT];
	void *context;
	double begun;

	parameters.context = CONTEXT;
	context = library.llama_init_from_model(job->model, parameters);
	if (!context) {
		fprintf(stderr, "llama_loop: no context\n");
		exit(1);
	}
	for (int i = 0; i < job->prompt; i++)
		prompt[i] = (i * 7 + job->number) % VOCABULARY;
	decode(context, prompt, job->prompt);
	begun = now();
	for (int i = 0; i < job->n; i++) {
		const float *logits = library.llama_get_logits_ith(context, -1);

		job->tokens[i] = most_likely(logits);
		for (int k = 0; k < job->sorts; k++)
			job->tokens[i] = first_of_sorted(logits);
		decode(context, &job->tokens[i], 1);
	}
	job->seconds = now() - begun;
	print(job); /* now: the library may end the process where it releases the context */
	library.llama_free(context);
	return NULL;
}

static int number(const char *text, int least, int most)
{
	char *end;
	long value = strtol(text ? text : "", &end, 10);

	if (!text || *end || value < least || value > most) {
		fprintf(stderr, "llama_loop: '%s' is no number from %d to %d\n", text ? text : "",
			least, most);
		exit(2);
	}
	return (int)value;
}

int main(int argc, char **argv)
{
	int layers = 4, width = 512, prompt = 64, tokens = 64, threads = 1, split = 0, sorts = 0;
	static const char *const splits[] = {"none", "layer", "row"};
	struct job jobs[THREADS];
	pthread_t thread[THREADS];
	struct model_parameters parameters;
	char path[] = "/tmp/llama_loop.XXXXXX";
	void *model;
	int file;

	for (int i = 2; i < argc; i += 2) {
		const char *value = argv[i + 1];

		if (!strcmp(argv[i], "--layers")) {
			layers = number(value, 1, 256);
		} else if (!strcmp(argv[i], "--width")) {
			width = number(value, 2 * HEAD, 1 << 14) / (2 * HEAD) * (2 * HEAD);
		} else if (!strcmp(argv[i], "--prompt")) {
			prompt = number(value, 1, CONTEXT / 2);
		} else if (!strcmp(argv[i], "--tokens")) {
			tokens = number(value, 1, CONTEXT / 2);
		} else if (!strcmp(argv[i], "--threads")) {
			threads = number(value, 1, THREADS);
		} else if (!strcmp(argv[i], "--sort")) {
			sorts = number(value, 0, 1000);
		} else if (!strcmp(argv[i], "--split") && value) {
			for (split = 2; split && strcmp(splits[split], value); split--)
				;
		} else {
			argc = 0;
		}
	}
	if (argc < 2) {
		fprintf(stderr,
			"usage: llama_loop FOLDER [--layers N] [--width N] [--prompt N] [--tokens N] "
			"[--threads N] [--split none|layer|row] [--sort N]\n");
		return 2;
	}
	open_library(argv[1]);
	library.llama_log_set(log_errors, NULL);
	library.ggml_backend_load_all_from_path(argv[1]);
	file = mkstemp(path);
	if (file < 0 || close(file)) {
		perror(path);
		return 1;
	}
	write_model(path, layers, width);
	parameters = library.llama_model_default_params();
	parameters.gpu_layers = 999;
	parameters.split = split;
	model = library.llama_model_load_from_file(path, parameters);
	unlink(path);
	if (!model) {
		fprintf(stderr, "llama_loop: the model cannot be loaded\n");
		return 1;
	}
	for (int i = 0; i < threads; i++) {
		jobs[i] = (struct job){
			.model = model, .prompt = prompt, .n = tokens, .number = i, .sorts = sorts};
		jobs[i].tokens = calloc((size_t)tokens, sizeof(int32_t));
		pthread_create(&thread[i], NULL, generate, &jobs[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		free(jobs[i].tokens);
	}
	library.llama_model_free(model);
	return 0;
}
