/*
 * analyzer/pack/zip.h: the structures of a ZIP file, as far as containers of traces use them (PKWARE's APPNOTE 6.3). Read by
 * container.c, written by writer.c. All numbers are little endian; nothing is padded.
 *
 * A member is a struct zip_local, its name, its extra fields and its bytes. Behind the last member lies the index: a struct
 * zip_central for each, with name and extra fields; then struct zip_end, and before that, where numbers are too large
 * for it, struct zip64_end and struct zip64_locator.
 */
#ifndef CUDASPY_ZIP_H
#define CUDASPY_ZIP_H

#include <stdint.h>

#define ZIP_LOCAL 0x04034b50u
#define ZIP_CENTRAL 0x02014b50u
#define ZIP_END 0x06054b50u
#define ZIP64_END 0x06064b50u
#define ZIP64_LOCATOR 0x07064b50u

#define ZIP_VERSION_PLAIN 20
#define ZIP_VERSION_64 45
#define ZIP_MADE_BY_UNIX (3 << 8)

#define ZIP_ENCRYPTED 0x0001
#define ZIP_SIZES_BEHIND 0x0008 /* the local header does not know crc and sizes */

#define ZIP_STORED 0

/* Fields that are all ones have their value in the extra field ZIP_EXTRA_64. */
#define ZIP_MAX_16 0xffffu
#define ZIP_MAX_32 0xffffffffu

/* Extra fields: number, bytes of what follows. */
#define ZIP_EXTRA_64 0x0001
#define ZIP_EXTRA_NTFS 0x000a /* times in units of 100 ns since 1601 */
#define ZIP_EXTRA_UNIX_TIME 0x5455 /* in seconds since 1970 */
#define ZIP_EXTRA_ALIGNMENT 0xd935 /* zeros that put the member's bytes where they shall lie */

struct zip_local {
	uint32_t signature;
	uint16_t version, flags, method, time, date;
	uint32_t crc, stored_bytes, bytes;
	uint16_t name_bytes, extra_bytes;
} __attribute__((packed));

struct zip_central {
	uint32_t signature;
	uint16_t made_by, version, flags, method, time, date;
	uint32_t crc, stored_bytes, bytes;
	uint16_t name_bytes, extra_bytes, comment_bytes, disk, attributes;
	uint32_t mode; /* of Unix, in its upper half */
	uint32_t local_off;
} __attribute__((packed));

struct zip_end {
	uint32_t signature;
	uint16_t disk, index_disk, entries_here, entries;
	uint32_t index_bytes, index_off;
	uint16_t comment_bytes;
} __attribute__((packed));

struct zip64_end {
	uint32_t signature;
	uint64_t bytes_behind;
	uint16_t made_by, version;
	uint32_t disk, index_disk;
	uint64_t entries_here, entries, index_bytes, index_off;
} __attribute__((packed));

struct zip64_locator {
	uint32_t signature, end_disk;
	uint64_t end_off;
	uint32_t disks;
} __attribute__((packed));

struct zip_extra {
	uint16_t number, bytes;
} __attribute__((packed));

/* The extra field ZIP_EXTRA_NTFS, with one attribute. */
struct zip_ntfs {
	struct zip_extra head;
	uint32_t reserved;
	uint16_t attribute, attribute_bytes; /* 1, 24 */
	uint64_t modified, accessed, created;
} __attribute__((packed));

struct zip_unix_time {
	struct zip_extra head;
	uint8_t which; /* 1: modified */
	int32_t modified;
} __attribute__((packed));

#define ZIP_NTFS_EPOCH_S 11644473600ull /* from 1601 to 1970 */

_Static_assert(sizeof(struct zip_local) == 30 && sizeof(struct zip_central) == 46, "layout");
_Static_assert(sizeof(struct zip_end) == 22 && sizeof(struct zip64_end) == 56, "layout");
_Static_assert(sizeof(struct zip64_locator) == 20 && sizeof(struct zip_ntfs) == 36, "layout");

#endif
