/*
 * include/cudaspy/metadata_layout.h: the text of a trace's metadata file, as far as it is the same
 * for every trace.
 *
 * The structs of trace_format.h a second time, in the language CTF 1.8 readers understand (TSDL).
 * The shim writes it, and the tests' trace writer; the analyzer parses what differs from it. A metadata file is,
 * in this order:
 *
 *   SPY_TSDL_HEAD                          the signature
 *   spy_tsdl_types                         integers, enums, the names of all functions
 *   printf(SPY_TSDL_TRACE, uuid)           uuid as 8-4-4-4-12 hex digits
 *   env { key = "text"; key = number; };   see docs/TRACE_FORMAT.md for the keys
 *   printf(SPY_TSDL_CLOCK, frequency, offset_s, offset)     all uint64_t, as PRIu64
 *   spy_tsdl_stream                        packet context, event header, one event per record type
 *
 * Readers refuse a file that has an integer mapped to a clock before that clock: hence two pieces.
 * TSDL keywords used as field names (stream) carry an underscore, which CTF readers take away.
 * Where a struct here differs from one in trace_format.h, tests/unit/test_analyzer_layout.c fails.
 */
#ifndef CUDASPY_METADATA_LAYOUT_H
#define CUDASPY_METADATA_LAYOUT_H

#include <inttypes.h>

#define SPY_TSDL_HEAD "/* CTF 1.8 */\n\n"

/* clang-format off */
#define SPY_TSDL_TRACE \
	"trace {\n" \
	"\tmajor = 1;\n" \
	"\tminor = 8;\n" \
	"\tuuid = \"%s\";\n" \
	"\tbyte_order = le;\n" \
	"\tpacket.header := struct {\n" \
	"\t\tu32 magic;\n" \
	"\t\tu8 uuid[16];\n" \
	"\t\tu32 stream_id;\n" \
	"\t\tu64 stream_instance_id;\n" \
	"\t};\n" \
	"};\n\n"

#define SPY_TSDL_CLOCK \
	"clock {\n" \
	"\tname = cycles;\n" \
	"\tdescription = \"invariant cycle counter, or CLOCK_MONOTONIC: env.clock_source\";\n" \
	"\tfreq = %" PRIu64 ";\n" \
	"\toffset_s = %" PRIu64 ";\n" \
	"\toffset = %" PRIu64 ";\n" \
	"\tabsolute = true;\n" \
	"};\n\n"

/* One row for each record type, in the order of enum spy_event: its number, its struct, its name
 * in metadata, and how many NUL-terminated texts follow the struct. */
#define SPY_EVENTS(EVENT) \
	EVENT(SPY_EV_NESTED, spy_rec_head,   nested, 0) \
	EVENT(SPY_EV_CALL,   spy_rec_call,   call,   0) \
	EVENT(SPY_EV_OP,     spy_rec_op,     op,     0) \
	EVENT(SPY_EV_LAUNCH, spy_rec_launch, launch, 0) \
	EVENT(SPY_EV_COPY,   spy_rec_copy,   copy,   0) \
	EVENT(SPY_EV_MEMORY, spy_rec_memory, memory, 0) \
	EVENT(SPY_EV_THREAD, spy_rec_thread, thread, 0) \
	EVENT(SPY_EV_COUNT,  spy_rec_count,  count,  0) \
	EVENT(SPY_EV_KERNEL, spy_rec_kernel, kernel, 1) \
	EVENT(SPY_EV_MODULE, spy_rec_module, module, 2) \
	EVENT(SPY_EV_GPU,    spy_rec_gpu,    gpu,    3) \
	EVENT(SPY_EV_CLOCK,  spy_rec_clock,  clock,  0) \
	EVENT(SPY_EV_NOTE,   spy_rec_note,   note,   1) \
	EVENT(SPY_EV_INNER,  spy_rec_inner,  inner,  0) \
	EVENT(SPY_EV_WAIT,   spy_rec_wait,   wait,   0) \
	EVENT(SPY_EV_TAKEN,  spy_rec_taken,  taken,  0) \
	EVENT(SPY_EV_SCHED,  spy_rec_sched,  sched,  0) \
	EVENT(SPY_EV_RELEASED, spy_rec_taken, released, 0) \
	EVENT(SPY_EV_NON_CUDA_THREAD, spy_rec_non_cuda_thread, non_cuda_thread, 0) \
	EVENT(SPY_EV_MPS,    spy_rec_mps,    mps,    4) \
	EVENT(SPY_EV_SHARE,  spy_rec_share,  share,  0) \
	EVENT(SPY_EV_STACK,  spy_rec_stack,  stack,  0) \
	EVENT(SPY_EV_HELD,   spy_rec_held,   held,   0) \
	EVENT(SPY_EV_PYTHON_CODE, spy_rec_python_code, python_code, 3) \
	EVENT(SPY_EV_PYTHON_STACK, spy_rec_python_stack, python_stack, 0) \
	EVENT(SPY_EV_OUTSIDE, spy_rec_outside, outside, 0) \
	EVENT(SPY_EV_GAP,    spy_rec_sched,  gap,    0) \
	EVENT(SPY_EV_GPU_OP, spy_rec_gpu_op, gpu_op, 0) \
	EVENT(SPY_EV_GPU_SUBMIT, spy_rec_gpu_submit, gpu_submit, 0) \
	EVENT(SPY_EV_GPU_CLOCK, spy_rec_gpu_clock, gpu_clock, 0) \
	EVENT(SPY_EV_GPU_STATE, spy_rec_gpu_state, gpu_state, 0) \
	EVENT(SPY_EV_RANGE,  spy_rec_range,  range,  0) \
	EVENT(SPY_EV_RANGE_VALUE, spy_rec_range_value, range_value, 0) \
	EVENT(SPY_EV_RANGE_NAME, spy_rec_range_name, range_name, 3) \
	EVENT(SPY_EV_NVTX_NAME, spy_rec_nvtx_name, nvtx_name, 1) \
	EVENT(SPY_EV_NCCL_COMM, spy_rec_nccl_comm, nccl_comm, 0) \
	EVENT(SPY_EV_COLLECTIVE, spy_rec_collective, collective, 0) \
	EVENT(SPY_EV_COLLECTIVE_RAN, spy_rec_collective_ran, collective_ran, 0) \
	EVENT(SPY_EV_NCCL_STATE, spy_rec_nccl_state, nccl_state, 0) \
	EVENT(SPY_EV_WINDOW, spy_rec_window, window, 0) \
	EVENT(SPY_EV_COST,   spy_rec_cost,   cost,   0) \
	EVENT(SPY_EV_PART, spy_rec_part, part, 0) \
	EVENT(SPY_EV_HOST_FUNCTION, spy_rec_host_function, host_function, 0) \
	EVENT(SPY_EV_PLACE,  spy_rec_place,  place,  0) \
	EVENT(SPY_EV_SAMPLE, spy_rec_sample, sample, 0) \
	EVENT(SPY_EV_GPU_LOOK, spy_rec_gpu_look, gpu_look, 0)

/* Names of the values of the small enums of trace_format.h, in their order, from 0. */
#define SPY_MEMORY_KINDS(NAME) \
	NAME(SPY_MEM_UNKNOWN,  "unknown") \
	NAME(SPY_MEM_PAGEABLE, "pageable") \
	NAME(SPY_MEM_PINNED,   "pinned") \
	NAME(SPY_MEM_MANAGED,  "managed") \
	NAME(SPY_MEM_DEVICE,   "device") \
	NAME(SPY_MEM_ARRAY,    "array") \
	NAME(SPY_MEM_MIXED,    "mixed")

#define SPY_ACCESSES(NAME) \
	NAME(SPY_ACCESS_UNKNOWN, "unknown") \
	NAME(SPY_ACCESS_PEER,    "peer") \
	NAME(SPY_ACCESS_MAPPED,  "mapped") \
	NAME(SPY_ACCESS_POOL,    "pool")

#define SPY_DIRECTIONS(NAME) \
	NAME(SPY_DIR_UNKNOWN, "unknown") \
	NAME(SPY_DIR_H2D,     "h2d") \
	NAME(SPY_DIR_D2H,     "d2h") \
	NAME(SPY_DIR_D2D,     "d2d") \
	NAME(SPY_DIR_H2H,     "h2h")

#define SPY_COPY_FORMS(NAME) \
	NAME(SPY_FORM_1D,     "1d") \
	NAME(SPY_FORM_2D,     "2d") \
	NAME(SPY_FORM_3D,     "3d") \
	NAME(SPY_FORM_ARRAY,  "array") \
	NAME(SPY_FORM_SYMBOL, "symbol") \
	NAME(SPY_FORM_PEER,   "peer") \
	NAME(SPY_FORM_BATCH,  "batch")

#define SPY_MEMORY_OPS(NAME) \
	NAME(SPY_MEMOP_ALLOC,      "alloc") \
	NAME(SPY_MEMOP_FREE,       "free") \
	NAME(SPY_MEMOP_REGISTER,   "register") \
	NAME(SPY_MEMOP_UNREGISTER, "unregister") \
	NAME(SPY_MEMOP_SET,        "set") \
	NAME(SPY_MEMOP_PREFETCH,   "prefetch") \
	NAME(SPY_MEMOP_MAP,        "map") \
	NAME(SPY_MEMOP_UNMAP,      "unmap") \
	NAME(SPY_MEMOP_RESERVE,    "reserve")

#define SPY_NOTES(NAME) \
	NAME(SPY_NOTE_BLIND,   "blind") \
	NAME(SPY_NOTE_UNKNOWN, "unknown") \
	NAME(SPY_NOTE_MISSING, "missing") \
	NAME(SPY_NOTE_VERSION, "version") \
	NAME(SPY_NOTE_OTHER,   "other")

#define SPY_CLIENTS(NAME) \
	NAME(SPY_CLIENT_NO,      "no") \
	NAME(SPY_CLIENT_YES,     "yes") \
	NAME(SPY_CLIENT_UNKNOWN, "unknown")

#define SPY_WAIT_NAMES(NAME) \
	NAME(SPY_WAIT_MUTEX,     "mutex") \
	NAME(SPY_WAIT_READ,      "read") \
	NAME(SPY_WAIT_WRITE,     "write") \
	NAME(SPY_WAIT_SPIN,      "spin") \
	NAME(SPY_WAIT_CONDITION, "condition") \
	NAME(SPY_WAIT_SEMAPHORE, "semaphore") \
	NAME(SPY_WAIT_FUTEX,     "futex") \
	NAME(SPY_WAIT_IOCTL,     "ioctl") \
	NAME(SPY_WAIT_POLL,      "poll") \
	NAME(SPY_WAIT_YIELD,     "yield") \
	NAME(SPY_WAIT_SLEEP,     "sleep") \
	NAME(SPY_WAIT_TRANSFER,  "transfer") \
	NAME(SPY_WAIT_EPOLL,     "epoll") \
	NAME(SPY_WAIT_ACCEPT,    "accept") \
	NAME(SPY_WAIT_JOIN,      "join") \
	NAME(SPY_WAIT_CHILD,     "child") \
	NAME(SPY_WAIT_QUERY,     "query")

#define SPY_FILE_NAMES(NAME) \
	NAME(SPY_FILE_UNKNOWN,   "unknown") \
	NAME(SPY_FILE_REGULAR,   "file") \
	NAME(SPY_FILE_PIPE,      "pipe") \
	NAME(SPY_FILE_SOCKET,    "socket") \
	NAME(SPY_FILE_LISTENING, "listening") \
	NAME(SPY_FILE_DEVICE,    "device") \
	NAME(SPY_FILE_EVENT,     "event")

#define SPY_GPU_OP_NAMES(NAME) \
	NAME(SPY_GPU_KERNEL, "kernel") \
	NAME(SPY_GPU_COPY,   "copy") \
	NAME(SPY_GPU_MEMSET, "memset")

#define SPY_GPU_STATE_NAMES(NAME) \
	NAME(SPY_GPU_ON,       "on") \
	NAME(SPY_GPU_OFF,      "off") \
	NAME(SPY_GPU_TAKEN,    "taken") \
	NAME(SPY_GPU_GAVE_WAY, "gave_way") \
	NAME(SPY_GPU_MISSING,  "missing")

#define SPY_RANGE_WHAT_NAMES(NAME) \
	NAME(SPY_RANGE_PUSH,  "push") \
	NAME(SPY_RANGE_POP,   "pop") \
	NAME(SPY_RANGE_START, "start") \
	NAME(SPY_RANGE_END,   "end") \
	NAME(SPY_RANGE_MARK,  "mark") \
	NAME(SPY_RANGE_OPEN,  "open")

#define SPY_PAYLOAD_NAMES(NAME) \
	NAME(SPY_PAYLOAD_NONE,   "none") \
	NAME(SPY_PAYLOAD_U64,    "u64") \
	NAME(SPY_PAYLOAD_I64,    "i64") \
	NAME(SPY_PAYLOAD_DOUBLE, "double") \
	NAME(SPY_PAYLOAD_U32,    "u32") \
	NAME(SPY_PAYLOAD_I32,    "i32") \
	NAME(SPY_PAYLOAD_FLOAT,  "float")

#define SPY_NAMED_NAMES(NAME) \
	NAME(SPY_NAMED_THREAD,   "thread") \
	NAME(SPY_NAMED_STREAM,   "stream") \
	NAME(SPY_NAMED_CONTEXT,  "context") \
	NAME(SPY_NAMED_DEVICE,   "device") \
	NAME(SPY_NAMED_EVENT,    "event") \
	NAME(SPY_NAMED_CATEGORY, "category")

/* As NCCL calls them. */
#define SPY_NCCL_FUNC_NAMES(NAME) \
	NAME(SPY_NCCL_OTHER,          "other") \
	NAME(SPY_NCCL_ALL_REDUCE,     "AllReduce") \
	NAME(SPY_NCCL_ALL_GATHER,     "AllGather") \
	NAME(SPY_NCCL_REDUCE_SCATTER, "ReduceScatter") \
	NAME(SPY_NCCL_BROADCAST,      "Broadcast") \
	NAME(SPY_NCCL_REDUCE,         "Reduce") \
	NAME(SPY_NCCL_SEND,           "Send") \
	NAME(SPY_NCCL_RECV,           "Recv") \
	NAME(SPY_NCCL_ALL_TO_ALL,     "AlltoAll") \
	NAME(SPY_NCCL_GATHER,         "Gather") \
	NAME(SPY_NCCL_SCATTER,        "Scatter")

#define SPY_NCCL_ALGORITHM_NAMES(NAME) \
	NAME(SPY_NCCL_ALGORITHM_UNKNOWN, "unknown") \
	NAME(SPY_NCCL_TREE,           "TREE") \
	NAME(SPY_NCCL_RING,           "RING") \
	NAME(SPY_NCCL_COLLNET_DIRECT, "COLLNET_DIRECT") \
	NAME(SPY_NCCL_COLLNET_CHAIN,  "COLLNET_CHAIN") \
	NAME(SPY_NCCL_NVLS,           "NVLS") \
	NAME(SPY_NCCL_NVLS_TREE,      "NVLS_TREE") \
	NAME(SPY_NCCL_PAT,            "PAT")

#define SPY_NCCL_PROTOCOL_NAMES(NAME) \
	NAME(SPY_NCCL_PROTOCOL_UNKNOWN, "unknown") \
	NAME(SPY_NCCL_LL,     "LL") \
	NAME(SPY_NCCL_LL128,  "LL128") \
	NAME(SPY_NCCL_SIMPLE, "SIMPLE")

#define SPY_WINDOW_NAMES(NAME) \
	NAME(SPY_WINDOW_OPEN,   "open") \
	NAME(SPY_WINDOW_CLOSED, "closed") \
	NAME(SPY_WINDOW_MARK,   "mark") \
	NAME(SPY_WINDOW_COUNTING,  "counting") \
	NAME(SPY_WINDOW_RECORDING, "recording")

#define SPY_COST_NAMES(NAME) \
	NAME(SPY_COST_ALL,       "all") \
	NAME(SPY_COST_COUNTING,  "counting") \
	NAME(SPY_COST_NO_PROBES, "no_probes") \
	NAME(SPY_COST_NO_STACKS, "no_stacks") \
	NAME(SPY_COST_LEAN,      "lean")

#define SPY_PART_NAMES(NAME) \
	NAME(SPY_PART_BEGIN,   "begin") \
	NAME(SPY_PART_REPEATED,    "repeated") \
	NAME(SPY_PART_END,     "end") \
	NAME(SPY_PART_REMOVED, "removed")

#define SPY_NCCL_STATE_NAMES(NAME) \
	NAME(SPY_NCCL_ON,    "on") \
	NAME(SPY_NCCL_OFF,   "off") \
	NAME(SPY_NCCL_TAKEN, "taken")

/* An enum in TSDL. */
#define SPY_TSDL_NAME(number, text) "\t\"" text "\",\n"
#define SPY_TSDL_ENUM(container, names, alias) \
	"typealias enum : " container " {\n" names(SPY_TSDL_NAME) "} := " alias ";\n\n"

__attribute__((unused)) static const char spy_tsdl_types[] =
	"typealias integer { size = 1; align = 1; signed = false; } := bit1;\n"
	"typealias integer { size = 2; align = 1; signed = false; } := bit2;\n"
	"typealias integer { size = 3; align = 1; signed = false; } := bit3;\n"
	"typealias integer { size = 4; align = 1; signed = false; } := bit4;\n"
	"typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
	"typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := letter;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := u16;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := s32;\n"
	"typealias integer { size = 48; align = 8; signed = false; } := u48;\n"
	"typealias integer { size = 60; align = 1; signed = false; } := bit60;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
	"typealias integer { size = 48; align = 8; signed = false; base = 16; } := address48;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address64;\n\n"

	/* A function's number is its position here. */
	"typealias enum : u16 {\n"
#define ENTRY(name, layer, record, contract, inspector) "\t\"" #name "\",\n"
#include "cudaspy/entrypoints.def"
	"} := fn_t;\n\n"

	SPY_TSDL_ENUM("bit4", SPY_MEMORY_KINDS, "memory_kind_t")
	SPY_TSDL_ENUM("bit2", SPY_ACCESSES, "access_t")
	SPY_TSDL_ENUM("bit3", SPY_DIRECTIONS, "direction_t")
	SPY_TSDL_ENUM("bit4", SPY_COPY_FORMS, "copy_form_t")
	SPY_TSDL_ENUM("u8", SPY_MEMORY_OPS, "memory_op_t")
	SPY_TSDL_ENUM("u16", SPY_NOTES, "note_t")
	SPY_TSDL_ENUM("u16", SPY_CLIENTS, "client_t")
	SPY_TSDL_ENUM("u8", SPY_WAIT_NAMES, "wait_kind_t")
	SPY_TSDL_ENUM("u8", SPY_FILE_NAMES, "file_kind_t")
	SPY_TSDL_ENUM("u8", SPY_GPU_OP_NAMES, "gpu_op_kind_t")
	SPY_TSDL_ENUM("u16", SPY_GPU_STATE_NAMES, "gpu_state_t")
	SPY_TSDL_ENUM("u8", SPY_RANGE_WHAT_NAMES, "range_what_t")
	SPY_TSDL_ENUM("u8", SPY_PAYLOAD_NAMES, "payload_t")
	SPY_TSDL_ENUM("u16", SPY_NAMED_NAMES, "nvtx_named_t")
	SPY_TSDL_ENUM("u8", SPY_NCCL_FUNC_NAMES, "nccl_func_t")
	SPY_TSDL_ENUM("u8", SPY_NCCL_ALGORITHM_NAMES, "nccl_algorithm_t")
	SPY_TSDL_ENUM("u8", SPY_NCCL_PROTOCOL_NAMES, "nccl_protocol_t")
	SPY_TSDL_ENUM("u16", SPY_NCCL_STATE_NAMES, "nccl_state_t")
	SPY_TSDL_ENUM("u16", SPY_WINDOW_NAMES, "window_t")
	SPY_TSDL_ENUM("u8", SPY_COST_NAMES, "cost_kind_t")
	SPY_TSDL_ENUM("u16", SPY_PART_NAMES, "part_t");

/* The head of a call's record, after time and event. */
#define SPY_TSDL_CALL_HEAD \
	"\t\tfn_t fn;\n" \
	"\t\tu16 result;\n" \
	"\t\tu8 device;\n" \
	"\t\tu8 depth;\n" \
	"\t\tu48 duration;\n" \
	"\t\tu16 context;\n"

#define SPY_TSDL_WAIT_HEAD \
	"\t\twait_kind_t kind;\n" \
	"\t\tu8 depth;\n" \
	"\t\tfn_t fn;\n" \
	"\t\tfn_t outer_fn;\n"

#define SPY_TSDL_EVENT(number, name, fields) \
	"event {\n" \
	"\tname = \"" name "\";\n" \
	"\tid = " number ";\n" \
	"\tstream_id = 0;\n" \
	"\tfields := struct {\n" fields "\t};\n" \
	"};\n\n"

__attribute__((unused)) static const char spy_tsdl_stream[] =
	"typealias integer {\n"
	"\tsize = 64; align = 8; signed = false; map = clock.cycles.value;\n"
	"} := time64;\n\n"

	"stream {\n"
	"\tid = 0;\n"
	"\tpacket.context := struct {\n"
	"\t\ttime64 timestamp_begin;\n"
	"\t\ttime64 timestamp_end;\n"
	"\t\tu64 content_size;\n"
	"\t\tu64 packet_size;\n"
	"\t\tu64 packet_seq_num;\n"
	"\t\tu64 events_discarded;\n"
	"\t\tu64 overhead;\n"
	"\t\tu32 tid;\n"
	"\t\tu32 kind;\n"
	"\t};\n"
	"\tevent.header := struct {\n"
	"\t\ttime64 timestamp;\n"
	"\t\tu16 id;\n"
	"\t};\n"
	"};\n\n"

	SPY_TSDL_EVENT("0", "nested",
		       SPY_TSDL_CALL_HEAD)
	SPY_TSDL_EVENT("1", "call",
		       SPY_TSDL_CALL_HEAD
		       "\t\taddress48 caller;\n"
		       "\t\tu16 flags;\n")
	SPY_TSDL_EVENT("2", "op",
		       SPY_TSDL_CALL_HEAD
		       "\t\taddress48 caller;\n"
		       "\t\tu16 flags;\n"
		       "\t\taddress64 _stream;\n"
		       "\t\taddress64 object;\n")
	SPY_TSDL_EVENT("3", "launch",
		       SPY_TSDL_CALL_HEAD
		       "\t\taddress48 caller;\n"
		       "\t\tu16 kernel_lo;\n"
		       "\t\tu16 kernel_hi;\n"
		       "\t\taddress48 _stream;\n")
	SPY_TSDL_EVENT("4", "copy",
		       SPY_TSDL_CALL_HEAD
		       "\t\taddress48 caller;\n"
		       "\t\tu8 src_device;\n"
		       "\t\tu8 dst_device;\n"
		       "\t\taddress48 _stream;\n"
		       "\t\tdirection_t direction;\n"
		       "\t\tbit1 captured;\n"
		       "\t\tcopy_form_t form;\n"
		       "\t\tmemory_kind_t src_kind;\n"
		       "\t\tmemory_kind_t dst_kind;\n"
		       "\t\tbit60 bytes;\n"
		       "\t\taccess_t src_access;\n"
		       "\t\taccess_t dst_access;\n")
	SPY_TSDL_EVENT("5", "memory",
		       SPY_TSDL_CALL_HEAD
		       "\t\taddress48 caller;\n"
		       "\t\tmemory_op_t op;\n"
		       "\t\tmemory_kind_t kind;\n"
		       "\t\tbit1 pool;\n"
		       "\t\tbit3 reserved;\n"
		       "\t\taddress64 _stream;\n"
		       "\t\taddress64 address;\n"
		       "\t\tu64 bytes;\n")
	SPY_TSDL_EVENT("6", "thread",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 tid;\n"
		       "\t\tletter name[16];\n")
	SPY_TSDL_EVENT("7", "count",
		       "\t\tfn_t fn;\n"
		       "\t\tu32 tid;\n"
		       "\t\tu64 count;\n")
	SPY_TSDL_EVENT("8", "kernel",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 kernel;\n"
		       "\t\tstring { encoding = UTF8; } name;\n")
	SPY_TSDL_EVENT("9", "module",
		       "\t\tu16 gone;\n"
		       "\t\tu32 span_pages;\n"
		       "\t\taddress64 base;\n"
		       "\t\taddress64 begin;\n"
		       "\t\taddress64 end;\n"
		       "\t\tstring { encoding = UTF8; } build_id;\n"
		       "\t\tstring { encoding = UTF8; } path;\n")
	SPY_TSDL_EVENT("10", "gpu",
		       "\t\tu16 device;\n"
		       "\t\tu16 cc_major;\n"
		       "\t\tu16 cc_minor;\n"
		       "\t\tu64 bytes;\n"
		       "\t\tstring { encoding = UTF8; } name;\n"
		       "\t\tstring { encoding = UTF8; } uuid;\n"
		       "\t\tstring { encoding = UTF8; } pci;\n")
	SPY_TSDL_EVENT("11", "clock",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 reserved2;\n"
		       "\t\tu64 monotonic_ns;\n"
		       "\t\tu64 realtime_ns;\n")
	SPY_TSDL_EVENT("12", "note",
		       "\t\tnote_t note;\n"
		       "\t\tstring { encoding = UTF8; } text;\n")
	SPY_TSDL_EVENT("13", "inner",
		       "\t\tfn_t fn;\n"
		       "\t\tu32 duration;\n")
	SPY_TSDL_EVENT("14", "wait",
		       SPY_TSDL_WAIT_HEAD
		       "\t\tu48 duration;\n"
		       "\t\tu8 device;\n"
		       "\t\tu8 flags;\n"
		       "\t\taddress64 object;\n"
		       "\t\tu32 count;\n"
		       "\t\tu32 holder;\n"
		       "\t\tu64 holder_since;\n"
		       "\t\taddress48 holder_stream;\n"
		       "\t\tu8 holder_device;\n"
		       "\t\tu8 reserved;\n"
		       "\t\tu48 span;\n"
		       "\t\tfn_t holder_fn;\n")
	SPY_TSDL_EVENT("15", "taken",
		       SPY_TSDL_WAIT_HEAD
		       "\t\taddress64 object;\n")
	SPY_TSDL_EVENT("16", "sched",
		       "\t\tu16 unknown;\n"
		       "\t\tu32 process_ran;\n"
		       "\t\tu64 window;\n"
		       "\t\tu64 not_running_ns;\n"
		       "\t\tu64 running_ns;\n")
	SPY_TSDL_EVENT("17", "released",
		       SPY_TSDL_WAIT_HEAD
		       "\t\taddress64 object;\n")
	SPY_TSDL_EVENT("18", "non_cuda_thread",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 tid;\n"
		       "\t\tletter name[16];\n")
	SPY_TSDL_EVENT("19", "mps",
		       "\t\tu16 initialised;\n"
		       "\t\tu32 uid;\n"
		       "\t\tu32 daemon;\n"
		       "\t\tu32 server;\n"
		       "\t\tu32 server_uid;\n"
		       "\t\tstring { encoding = UTF8; } pipe_directory;\n"
		       "\t\tstring { encoding = UTF8; } active_thread_percentage;\n"
		       "\t\tstring { encoding = UTF8; } memory_limit;\n"
		       "\t\tstring { encoding = UTF8; } priority;\n")
	SPY_TSDL_EVENT("20", "share",
		       "\t\tu16 device;\n"
		       "\t\tclient_t client;\n"
		       "\t\tu16 reserved;\n"
		       "\t\tu32 multiprocessors;\n"
		       "\t\tu32 reserved2;\n")
	SPY_TSDL_EVENT("21", "stack",
		       "\t\tfn_t fn;\n"
		       "\t\tu8 why;\n"
		       "\t\tu8 count;\n"
		       "\t\tu16 reserved;\n"
		       "\t\taddress64 frames[48];\n")
	SPY_TSDL_EVENT("22", "held",
		       SPY_TSDL_WAIT_HEAD
		       "\t\taddress64 object;\n"
		       "\t\tu16 span;\n"
		       "\t\tu48 held;\n")
	SPY_TSDL_EVENT("23", "python_code",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 code;\n"
		       "\t\tu32 first_line;\n"
		       "\t\tu32 reserved2;\n"
		       "\t\tstring { encoding = UTF8; } file;\n"
		       "\t\tstring { encoding = UTF8; } function;\n"
		       "\t\tstring { encoding = UTF8; } padding;\n")
	SPY_TSDL_EVENT("24", "python_stack",
		       "\t\tfn_t fn;\n"
		       "\t\tu8 count;\n"
		       "\t\tu8 more;\n"
		       "\t\tu16 reserved;\n"
		       "\t\tu32 codes[24];\n"
		       "\t\tu32 lines[24];\n")
	SPY_TSDL_EVENT("25", "outside",
		       "\t\twait_kind_t kind;\n"
		       "\t\tfile_kind_t file;\n"
		       "\t\tu32 count;\n"
		       "\t\tu48 duration;\n"
		       "\t\tu8 flags;\n"
		       "\t\tu8 at_once;\n"
		       "\t\tu48 span;\n"
		       "\t\tu16 ready;\n"
		       "\t\taddress64 caller;\n"
		       "\t\taddress64 object;\n"
		       "\t\tu32 holder;\n"
		       "\t\tu32 reserved3;\n")
	SPY_TSDL_EVENT("26", "gap",
		       "\t\tu16 unknown;\n"
		       "\t\tu32 process_ran;\n"
		       "\t\tu64 window;\n"
		       "\t\tu64 not_running_ns;\n"
		       "\t\tu64 running_ns;\n")
	SPY_TSDL_EVENT("27", "gpu_op",
		       "\t\tgpu_op_kind_t kind;\n"
		       "\t\tu8 device;\n"
		       "\t\tu32 correlation;\n"
		       "\t\tu64 begin_ns;\n"
		       "\t\tu64 end_ns;\n"
		       "\t\tu64 amount;\n"
		       "\t\tu32 _stream;\n"
		       "\t\tu32 context;\n"
		       "\t\tu32 kernel;\n"
		       "\t\tu16 threads;\n"
		       "\t\tu8 direction;\n"
		       "\t\tu8 flags;\n")
	SPY_TSDL_EVENT("28", "gpu_submit",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 correlation;\n"
		       "\t\tu64 begin_ns;\n"
		       "\t\tu64 end_ns;\n"
		       "\t\tu32 tid;\n"
		       "\t\tu32 reserved2;\n")
	SPY_TSDL_EVENT("29", "gpu_clock",
		       "\t\tu16 reserved;\n"
		       "\t\tu32 error;\n"
		       "\t\tu64 _clock;\n"
		       "\t\tu64 gpu_ns;\n"
		       "\t\tu64 dropped;\n")
	SPY_TSDL_EVENT("30", "gpu_state",
		       "\t\tgpu_state_t state;\n"
		       "\t\tu32 reserved;\n"
		       "\t\tletter text[112];\n")
	SPY_TSDL_EVENT("31", "range",
		       "\t\trange_what_t what;\n"
		       "\t\tu8 reserved;\n"
		       "\t\tu32 name;\n")
	SPY_TSDL_EVENT("32", "range_value",
		       "\t\trange_what_t what;\n"
		       "\t\tpayload_t payload_type;\n"
		       "\t\tu32 name;\n"
		       "\t\tu64 range_id;\n"
		       "\t\tu64 payload;\n"
		       "\t\tu32 category;\n"
		       "\t\tu32 reserved;\n")
	SPY_TSDL_EVENT("33", "range_name",
		       "\t\tu16 folded;\n"
		       "\t\tu32 number;\n"
		       "\t\tstring { encoding = UTF8; } domain;\n"
		       "\t\tstring { encoding = UTF8; } name;\n"
		       "\t\tstring { encoding = UTF8; } padding;\n")
	SPY_TSDL_EVENT("34", "nvtx_name",
		       "\t\tnvtx_named_t what;\n"
		       "\t\tu32 reserved;\n"
		       "\t\taddress64 object;\n"
		       "\t\tstring { encoding = UTF8; } name;\n")
	SPY_TSDL_EVENT("35", "nccl_comm",
		       "\t\tu16 interface;\n"
		       "\t\tu32 comm;\n"
		       "\t\taddress64 hash;\n"
		       "\t\tu32 rank;\n"
		       "\t\tu32 ranks;\n"
		       "\t\tu32 nodes;\n"
		       "\t\tu32 tid;\n"
		       "\t\tu8 device;\n"
		       "\t\tu8 reserved[7];\n"
		       "\t\tletter name[32];\n")
	SPY_TSDL_EVENT("36", "collective",
		       "\t\tnccl_func_t func;\n"
		       "\t\tu8 flags;\n"
		       "\t\tu32 comm;\n"
		       "\t\tu64 seq;\n"
		       "\t\tu64 count;\n"
		       "\t\tu32 number;\n"
		       "\t\ts32 peer;\n"
		       "\t\tu8 bytes_each;\n"
		       "\t\tnccl_algorithm_t algorithm;\n"
		       "\t\tnccl_protocol_t protocol;\n"
		       "\t\tu8 channels;\n"
		       "\t\tu32 reserved;\n")
	SPY_TSDL_EVENT("37", "collective_ran",
		       "\t\tu8 channels;\n"
		       "\t\tu8 reserved;\n"
		       "\t\tu32 comm;\n"
		       "\t\tu32 number;\n"
		       "\t\tu32 reserved2;\n"
		       "\t\tu64 begin_ns;\n"
		       "\t\tu64 end_ns;\n"
		       "\t\tu64 seen;\n")
	SPY_TSDL_EVENT("38", "nccl_state",
		       "\t\tnccl_state_t state;\n"
		       "\t\tu32 reserved;\n"
		       "\t\tletter text[112];\n")
	SPY_TSDL_EVENT("39", "window",
		       "\t\twindow_t state;\n"
		       "\t\tu32 number;\n"
		       "\t\tu64 since;\n"
		       "\t\tletter text[104];\n")
	SPY_TSDL_EVENT("40", "cost",
		       "\t\tcost_kind_t kind;\n"
		       "\t\tu8 n;\n"
		       "\t\tu32 calls;\n"
		       "\t\tu64 begin;\n"
		       "\t\tu64 end;\n"
		       "\t\tu64 window;\n"
		       "\t\tu64 delay_ns;\n"
		       "\t\tfn_t fn[8];\n"
		       "\t\tu32 count[8];\n")
	SPY_TSDL_EVENT("41", "part",
		       "\t\tpart_t state;\n"
		       "\t\tu32 number;\n"
		       "\t\tu64 since;\n"
		       "\t\tu64 calls;\n"
		       "\t\tu32 removed;\n"
		       "\t\tu32 reserved;\n"
		       "\t\tu64 removed_calls;\n"
		       "\t\tu64 removed_until;\n"
		       "\t\tu64 recording_began;\n")
	SPY_TSDL_EVENT("42", "host_function",
		       "\t\tu8 device;\n"
		       "\t\tu8 reserved;\n"
		       "\t\tu32 tid;\n"
		       "\t\tu48 duration;\n"
		       "\t\tfn_t fn;\n"
		       "\t\taddress64 function;\n"
		       "\t\taddress64 _stream;\n"
		       "\t\tu64 handed;\n"
		       "\t\taddress48 caller;\n"
		       "\t\tu16 context;\n")
	SPY_TSDL_EVENT("43", "place",
		       "\t\tu8 python;\n"
		       "\t\tu8 count;\n"
		       "\t\tu32 place;\n"
		       "\t\taddress64 words[count];\n")
	SPY_TSDL_EVENT("44", "sample",
		       "\t\tu16 state;\n"
		       "\t\tu32 tid;\n"
		       "\t\tu32 place;\n"
		       "\t\tu32 holder;\n"
		       "\t\tu32 weight;\n"
		       "\t\tu32 ago;\n")
	SPY_TSDL_EVENT("45", "gpu_look",
		       "\t\tu8 device;\n"
		       "\t\tu8 busy;\n"
		       "\t\tu16 clock_mhz;\n"
		       "\t\tu16 clock_most_mhz;\n"
		       "\t\tu64 reasons;\n"
		       "\t\tu32 power;\n"
		       "\t\tu32 power_limit;\n"
		       "\t\tu16 temperature;\n"
		       "\t\tu16 others;\n"
		       "\t\tu32 other_pid;\n"
		       "\t\tu64 used_bytes;\n"
		       "\t\tu64 others_bytes;\n"
		       "\t\tu32 known;\n"
		       "\t\tu8 own_busy;\n"
		       "\t\tu8 others_busy;\n"
		       "\t\tu16 links;\n"
		       "\t\tu32 link_mbytes;\n"
		       "\t\tu32 reserved;\n");
/* clang-format on */

#endif
