/*
 * analyzer/symbols/symbolize.h: addresses to places in the program, through elfutils.
 *
 * A file is believed only if its build id is the one the trace recorded; without a build id in the
 * trace it is not believed at all. Separate debug information is looked for in the usual local
 * directories; nothing is fetched over the network.
 *
 * Code that a process made itself lies in no module. Interpreters and compilers at run time (Python
 * with -X perf, for one) may write down whose it is, in /tmp/perf-PID.map, as Linux's perf reads
 * it: what is there when the report is made is believed.
 */
#ifndef CUDASPY_SYMBOLIZE_H
#define CUDASPY_SYMBOLIZE_H

#include "model/model.h"

#define INLINED_MOST 16 /* functions in one another at one address */

struct symbolizer;

/* All pointers belong to the symbolizer and live as long. */
struct place {
	const char *path; /* of the module; NULL: the address is in none we know */
	uint64_t offset; /* address as the file has it; without a module the address itself */
	const char *function; /* demangled if we can; NULL unknown */
	const char *
		inner; /* of symbolize: compiled into that one, and where the line is; NULL: none */
	const char *file; /* NULL unknown */
	int line;
	bool inlined; /* the function was compiled into the next one out */
	bool interpreted; /* from the map of an interpreter: file has no line */
	/* CUDA's code: in the program what nvcc puts between <<<>>> and the call, wrappers of its
	 * headers and its runtime; and all that lies in one of NVIDIA's libraries. It has no line
	 * of the program's. */
	bool cudas;
	/* in one of those that a program calls for more than CUDA: cuBLAS, cuFFT, NCCL */
	bool library;
	/* In another library that came with neither: libtorch, libffi, the C library, a package of Python's, or a template of
	 * its headers in the program. */
	bool foreign;
	/* In a shared library of somebody's, at no known line: where the stack has the program's own lines further out, it is a
	 * library that the program calls. */
	bool unlined;
	bool interpreter; /* that runs Python: its functions are on the stack of Python's own */
	const char *kernel; /* which that launches; NULL: none, or unknown */
};

/* Somebody else's code, by which the program came to the call; of what is unlined its stack says whether it is. */
static inline bool place_is_between(const struct place *place)
{
	return place->cudas || place->foreign || place->interpreter || place->unlined;
}

struct symbolizer *symbolizer_new(void);
void symbolizer_free(struct symbolizer *s);

/* A file that was looked at and is not believed: places in it are offsets; or whose debug sections cannot be read: they have
 * no lines. */
struct unread_file {
	const char *path;
	const char *recorded; /* its build id; may be empty */
	const char *found; /* the build id of what is there now, may be empty; NULL: nothing is */
	bool zstd; /* it is believed, and its debug sections were compressed so */
};

/* All of them so far. They live as long as the symbolizer. */
const struct unread_file *symbolizer_unread(struct symbolizer *s, size_t *n);

/* Looks at a module's file although no place in it is asked for. */
void symbolizer_look(struct symbolizer *s, const struct module *module);

/* The place of the call that returns to `address`, as of time `ns`. Slow the first time a module is
 * met. */
void symbolize(struct symbolizer *s, const struct process *process, uint64_t address, uint64_t ns,
	       struct place *place);

/* The same with the functions that were compiled into each other there, innermost first, each with
 * the place where it calls the one before. At least one place is filled in; returns how many. */
size_t symbolize_all(struct symbolizer *s, const struct process *process, uint64_t address,
		     uint64_t ns, struct place places[INLINED_MOST]);

/*
 * Where the program's own code is, of a stack that begins with somebody else's; false: it does not, or ends
 * there, or an interpreter ran it. entry: by what of a library the program came to the call, without a function if
 * none there has a name; no path: nothing. Of NVIDIA's libraries it is what the program called; of others
 * the innermost function, which says more of what is done. Libraries without lines are the program's own if no frame around
 * them has a line. place->kernel: what is launched; NULL: unknown, or nothing.
 * Where the answer is no, place is the framework's that called NVIDIA's library; no path: none.
 */
bool symbolize_caller(struct symbolizer *s, const struct stack *stack, struct place *place,
		      struct place *entry);

/*
 * The place of everything that is said of a call: the one that returns to `address`, or, where that is somebody else's code and
 * the call's stack is known (or NULL), the program's own as symbolize_caller has it. entry: as there; no path: none.
 */
void symbolize_program(struct symbolizer *s, const struct process *process, uint64_t address,
		       uint64_t ns, const struct stack *stack, struct place *place,
		       struct place *entry);

/* The variable at an address of data, "scene_lock", "pool+0x28" inside of one; NULL: unknown. As of time `ns`. */
const char *symbolize_data(struct symbolizer *s, const struct process *process, uint64_t address,
			   uint64_t ns);

/* Is the file the library of that name, "libcufft": libcufft.so.12, libcufft-9335f6a2.so.12? With * at its end all whose names
 * begin so. */
bool symbolize_is_library(const char *path, const char *name);

/* Is it the function that <<<>>> calls for the kernel? It may be named without what it returns and
 * takes; NULL: no. */
bool symbolize_is_kernels(const char *function, const char *kernel);

/* A C++ name as people write it; the name itself if it is none, or if this machine cannot tell. */
const char *demangle(struct symbolizer *s, const char *name);

#endif
