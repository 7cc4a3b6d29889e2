/*
 * analyzer/export/proto.h: messages in the encoding of Protocol Buffers, as far as Perfetto's need it: fields with a number, a
 * varint, eight bytes, or a length and bytes. For perfetto.c.
 */
#ifndef CUDASPY_EXPORT_PROTO_H
#define CUDASPY_EXPORT_PROTO_H

#include "base/util.h"

/* A message in the making. Start with zeros; proto_release. */
struct proto {
	uint8_t *bytes;
	size_t n, room;
};

#define PROTO_NUMBER_MOST 20 /* bytes of a field's key and a varint */

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2 };

void proto_make_room(struct proto *p, size_t n);
void proto_release(struct proto *p);

static inline uint8_t *proto_encode(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

static inline uint8_t *proto_room(struct proto *p, size_t n)
{
	if (unlikely(p->room - p->n < n))
		proto_make_room(p, n);
	return p->bytes + p->n;
}

static inline uint64_t proto_key(unsigned int field, enum proto_wire wire)
{
	return field << 3 | wire;
}

static inline void proto_number(struct proto *p, unsigned int field, uint64_t value)
{
	uint8_t *at = proto_room(p, PROTO_NUMBER_MOST);

	at = proto_encode(at, proto_key(field, PROTO_VARINT));
	p->n = (size_t)(proto_encode(at, value) - p->bytes);
}

/* This machine is little endian, as the encoding is: the shim's processors all are. */
static inline void proto_fixed64(struct proto *p, unsigned int field, uint64_t value)
{
	uint8_t *at = proto_room(p, PROTO_NUMBER_MOST);

	at = proto_encode(at, proto_key(field, PROTO_FIXED64));
	memcpy(at, &value, sizeof(value));
	p->n = (size_t)(at + sizeof(value) - p->bytes);
}

static inline void proto_bytes(struct proto *p, unsigned int field, const void *bytes, size_t n)
{
	uint8_t *at = proto_room(p, PROTO_NUMBER_MOST + n);

	at = proto_encode(at, proto_key(field, PROTO_BYTES));
	at = proto_encode(at, n);
	if (n)
		memcpy(at, bytes, n);
	p->n = (size_t)(at + n - p->bytes);
}

static inline void proto_message(struct proto *p, unsigned int field, const struct proto *inner)
{
	proto_bytes(p, field, inner->bytes, inner->n);
}

#endif
