/*
 * analyzer/expect/profile.h: what calls cost on a machine when nothing is in their way, measured by
 * `cudaspy calibrate`: a JSON file.
 */
#ifndef CUDASPY_PROFILE_H
#define CUDASPY_PROFILE_H

#include "expect.h"

#define PROFILE_SCHEMA "cudaspy-profile-1"

/* A class, as the file has it: its function by name. */
struct profile_class {
	char *function;
	struct class_key key; /* fn is 0 */
	uint64_t bytes; /* that were measured */
	uint64_t expected_ns, spread_ns, samples;
};

struct profile {
	char *path; /* of the file; NULL: none */
	char *version; /* of cudaspy */
	char *driver; /* as in the traces' notes: "13000" */
	char *date; /* UTC, ISO 8601 */
	char **gpus; /* names, each once */
	size_t n_gpus;
	struct profile_class *classes; /* sorted by function, then key */
	size_t n_classes;
};

/* 0; -ENOENT without a word when there is no such file; -EINVAL or another -errno after a warning
 * that names the file and what is wrong. profile_release in all cases. */
int profile_read(struct profile *p, const char *path);
void profile_release(struct profile *p);

/* The same of a text that is called `name`. */
int profile_parse(struct profile *p, const char *text, size_t size, const char *name);

/* What `e` has learnt. */
void profile_make(struct profile *p, const struct expect *e);

/* Writes it; makes the directories it lies in. 0, or -errno after a warning. */
int profile_write(const struct profile *p, const char *path);

/*
 * Cost of the class `key` of the function; a size between two that were measured lies between their
 * costs. False if the profile does not know.
 */
bool profile_find(const struct profile *p, const char *function, const struct class_key *key,
		  struct profile_class *found);

/*
 * The profile for these traces, read into `p`: the file `named`; without one $CUDASPY_PROFILE; else
 * the one calibrate wrote for this driver and GPU. Returns 1 when there is one that fits; 0 when
 * there is none, with *why not to use one that was found (malloc'ed, or NULL); -errno, after a
 * warning, for one that was named and cannot be read. profile_release in all cases.
 */
int profile_choose(struct profile *p, const char *named, const struct machine *machine, char **why);

/* Where calibrate writes, and profile_choose looks: in $XDG_CONFIG_HOME/cudaspy or
 * ~/.config/cudaspy. NULL if neither is known. The caller frees. */
char *profile_default_path(const char *driver, const char *gpu);

/* Is the name among these? */
bool profile_names(char *const *names, size_t n, const char *name);

/* "profile of NVIDIA H200, driver 13000". The caller frees. */
char *profile_describe(const struct profile *p);

#endif
