/*
 * analyzer/export/perfetto.h: the fields of Perfetto's messages that are written, by their published numbers
 * (https://perfetto.dev/docs/reference/trace-packet-proto). test_export.sh reads them by tests/schemas/perfetto.proto.
 */
#ifndef CUDASPY_EXPORT_PERFETTO_H
#define CUDASPY_EXPORT_PERFETTO_H

enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10, /* trusted_packet_sequence_id */
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
	SEQUENCE_CLEARED = 1,
	SEQUENCE_NEEDS_STATE = 2,

	SNAPSHOT_CLOCKS = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	BUILTIN_CLOCK_REALTIME = 1,
	BUILTIN_CLOCK_BOOTTIME = 6,

	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
	DESCRIPTOR_RANK = 12, /* sibling_order_rank */
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT = 3,
	UNIT_OF_COUNT = 2,

	EVENT_CATEGORY = 3, /* category_iids */
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10, /* name_iid */
	EVENT_TRACK = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48, /* terminating_flow_ids */
	TYPE_SLICE_BEGIN = 1,
	TYPE_SLICE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,

	ANNOTATION_NAME = 1, /* name_iid */
	ANNOTATION_UINT = 3,
	ANNOTATION_POINTER = 7,
	ANNOTATION_STRING = 17, /* string_value_iid */

	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_ANNOTATION_NAMES = 3,
	INTERNED_STRINGS = 29, /* debug_annotation_string_values */
	INTERNED_IID = 1,
	INTERNED_TEXT = 2,
};

#endif
