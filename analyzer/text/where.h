/*
 * analyzer/text/where.h: places in the program, in words. Texts live as long as the arena.
 */
#ifndef CUDASPY_WHERE_H
#define CUDASPY_WHERE_H

#include "base/util.h"
#include "model/python.h"
#include "symbols/symbolize.h"

/* " in main, app.c:12 (app+0x1234)"; what is not known is left out, "" if nothing is. */
const char *text_place(struct arena *texts, const struct place *place);

/* Of what a library calls: " in main, app.c:12, by cublasCreate_v2 (libcublas.so.13)". */
const char *text_place_by(struct arena *texts, const struct place *entry,
			  const struct place *place);

/* Of a call, by its stack if there is one (symbolize_program): as one of the two above. */
const char *text_program_place(struct arena *texts, struct symbolizer *symbols,
			       const struct process *process, uint64_t address, uint64_t ns,
			       const struct stack *stack);

/* For where no function stands before it: "main, app.c:12 (app+0x1234)", "of scale(int) in main, app.c:12, …". */
const char *text_bare_place(const char *words);

/* The same where a line of Python is the program's: " in step, train.py:21, by Module.to (module.py:1384),
 * at::native::copy_ (libtorch_cuda.so)". by, entry: as far as they are known; entry->kernel is launched. */
const char *text_python_place(struct arena *texts, const struct python_line *line,
			      const struct python_line *by, const struct place *entry);

/* A library's function that has that return address in it, "deflate (libz.so.1)"; without a name, or with `whole`, the library
 * alone. NULL: it is in none. */
const char *text_in_library(struct arena *texts, struct symbolizer *symbols,
			    const struct process *process, uint64_t address, uint64_t ns,
			    bool whole);

/* "train.py:42 in step"; NULL for none. */
/* Who had the GIL most often while others waited, and where: "held by thread 12 'pt_loader' at data.py:57 in augment". */
const char *text_gil_holder(struct arena *texts, const struct model *model,
			    const struct process *process, uint32_t holder,
			    const struct stack *held_at);

/* What another thread did while one waited: "thread 9 ran data.py:57 in decode"; tid 0: several did. NULL: it is unknown (place is NULL). */
const char *text_meanwhile(struct arena *texts, const struct model *model,
			   const struct process *process, uint32_t tid, const struct stack *place);

/* What a program calls in a package: "torch.save", "numpy.ndarray.sum". */
const char *text_python_called(struct arena *texts, const struct python_line *called);

const char *text_python(struct arena *texts, const struct python_line *line);

/* What of the file is not as it was: "is not there". */
const char *text_unread(struct arena *texts, const struct unread_file *file);

#endif
