/*
 * analyzer/model/apply.h: records that are no calls, as they become known to the model. For the files of this folder; a
 * record's thread is there.
 */
#ifndef CUDASPY_MODEL_APPLY_H
#define CUDASPY_MODEL_APPLY_H

#include "model.h"

/* threads.c */
void model_apply_nvtx_name(struct model *model, struct process *process,
			   const struct record *record);
void model_apply_thread(struct model *model, struct record *record);
void model_apply_non_cuda_thread(struct model *model, struct record *record);
void model_apply_count(struct model *model, struct record *record);

/* modules.c */
void model_apply_module(struct process *process, const struct record *record);

/* gpus.c */
void model_apply_gpu(struct process *process, const struct record *record);
void model_apply_share(struct process *process, const struct record *record);
void model_apply_mps(struct process *process, const struct record *record);

/* stacks.c */
void model_apply_stack(struct process *process, const struct record *record);
void model_apply_place(struct model *model, struct process *process, const struct record *record);
void model_apply_python_code(struct process *process, const struct record *record);
void model_apply_python_stack(const struct record *record);

/* names.c */
void model_apply_kernel(struct process *process, const struct record *record);
void model_apply_note(struct process *process, const struct record *record);
void model_apply_range_name(struct model *model, struct process *process,
			    const struct record *record);

/* windows.c */
void model_apply_window(const struct record *record);
void model_apply_part(const struct record *record);
void model_see_board(
	struct process *process); /* before the first record: of parts that were deleted */
void model_end_dormant(struct process *process, uint64_t ns);

#endif
