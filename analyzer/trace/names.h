/*
 * analyzer/trace/names.h: names of the small enums of trace_format.h. A value without a name is
 * shown as "#9", in one of a few buffers used in turn.
 */
#ifndef CUDASPY_NAMES_H
#define CUDASPY_NAMES_H

#include <stdbool.h>

const char *name_memory_kind(unsigned int kind); /* enum spy_memory_kind */
const char *name_access(unsigned int access); /* enum spy_access */
const char *name_direction(unsigned int direction); /* enum spy_direction */
const char *name_copy_form(unsigned int form); /* enum spy_copy_form */
const char *name_memory_op(unsigned int op); /* enum spy_memory_op */
const char *name_note(unsigned int note); /* enum spy_note */
const char *name_client(unsigned int client); /* enum spy_client */
const char *name_wait(unsigned int kind); /* enum spy_wait_kind */
const char *name_file(unsigned int kind); /* enum spy_file_kind */
const char *name_gpu_op(unsigned int kind); /* enum spy_gpu_op_kind */
const char *name_gpu_state(unsigned int state); /* enum spy_gpu_state */
const char *name_range_what(unsigned int what); /* enum spy_range_what */
const char *name_payload(unsigned int type); /* enum spy_range_payload */
const char *name_nvtx_named(unsigned int what); /* enum spy_nvtx_named */
const char *name_nccl_func(unsigned int func); /* enum spy_nccl_func */

/* The same, or SPY_NCCL_FUNCS: the launch of a CUDA graph with operations in it. */
const char *name_shown_func(unsigned int func);
const char *name_nccl_algorithm(unsigned int algorithm); /* enum spy_nccl_algorithm */
const char *name_nccl_protocol(unsigned int protocol); /* enum spy_nccl_protocol */
const char *name_nccl_state(unsigned int state); /* enum spy_nccl_state */
const char *name_window(unsigned int state); /* enum spy_window_state */
const char *name_cost(unsigned int kind); /* enum spy_cost_kind */
const char *name_part(unsigned int state); /* enum spy_part_state */

/* A result, as the driver's functions call it or the runtime's. */
const char *name_error(unsigned int result, bool driver);

#endif
