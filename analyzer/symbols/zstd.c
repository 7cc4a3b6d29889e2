/*
 * analyzer/symbols/zstd.c: debug sections that were compressed with zstd (gcc -gz=zstd), for a libelf that does not read them.
 * libzstd is looked for when such a file is met, as most machines have it. Called by symbolize.c.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/util.h"
#include "zstd.h"

#define TYPE_ZSTD 2 /* ELFCOMPRESS_ZSTD, which older headers do not have */
#define BYTES_MOST (8ull << 30) /* of a copy */

struct file {
	const uint8_t *bytes; /* mapped */
	uint64_t size;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
};

typedef size_t decompress_fn(void *to, size_t room, const void *from, size_t bytes);

static bool map(struct file *file, int fd)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return false;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	*file = (struct file){.bytes = bytes, .size = (uint64_t)st.st_size, .header = bytes};
	return true;
}

static bool is_inside(const struct file *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size && bytes <= file->size - offset;
}

/* Of this machine's kind, with a table of sections in it. */
static bool has_sections(struct file *file)
{
	const Elf64_Ehdr *h = file->header;

	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_shentsize != sizeof(Elf64_Shdr) ||
	    h->e_shoff % 8 || !is_inside(file, h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize))
		return false;
	file->sections = (const Elf64_Shdr *)(file->bytes + h->e_shoff);
	return true;
}

/* What a section has that is compressed so; NULL: it is not. */
static const Elf64_Chdr *zstd_header(const struct file *file, const Elf64_Shdr *section)
{
	const Elf64_Chdr *header = (const Elf64_Chdr *)(file->bytes + section->sh_offset);

	if (!(section->sh_flags & SHF_COMPRESSED) || section->sh_type == SHT_NOBITS ||
	    section->sh_size < sizeof(*header) || section->sh_offset % 8 ||
	    !is_inside(file, section->sh_offset, section->sh_size))
		return NULL;
	return header->ch_type == TYPE_ZSTD ? header : NULL;
}

static uint64_t aligned(uint64_t offset)
{
	return (offset + 63) & ~63ull;
}

/* Of the copy: the file, and behind it its sections as they are; the file's own: none is compressed so. */
static uint64_t bytes_of_copy(const struct file *file)
{
	uint64_t bytes = file->size;

	for (unsigned int i = 0; i < file->header->e_shnum && bytes <= BYTES_MOST; i++) {
		const Elf64_Chdr *header = zstd_header(file, &file->sections[i]);

		if (header)
			bytes = header->ch_size < BYTES_MOST ? aligned(bytes) + header->ch_size
							     : UINT64_MAX;
	}
	return bytes;
}

static bool fill(const struct file *file, uint8_t *copy, uint64_t bytes, decompress_fn *decompress)
{
	Elf64_Shdr *sections = (Elf64_Shdr *)(copy + file->header->e_shoff);
	uint64_t at = file->size;

	memcpy(copy, file->bytes, file->size);
	for (unsigned int i = 0; i < file->header->e_shnum; i++) {
		const Elf64_Chdr *header = zstd_header(file, &file->sections[i]);

		if (!header)
			continue;
		at = aligned(at);
		if (at > bytes || header->ch_size > bytes - at ||
		    decompress(copy + at, header->ch_size, header + 1,
			       sections[i].sh_size - sizeof(*header)) != header->ch_size)
			return false;
		sections[i].sh_offset = at;
		sections[i].sh_size = header->ch_size;
		sections[i].sh_addralign = header->ch_addralign;
		sections[i].sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		at += header->ch_size;
	}
	return true;
}

static int make_copy(const struct file *file, uint64_t bytes, decompress_fn *decompress)
{
	int fd = bytes > BYTES_MOST ? -1 : memfd_create("cudaspy-symbols", MFD_CLOEXEC);
	void *copy = MAP_FAILED;
	bool filled = false;

	if (fd < 0)
		return -ENOTSUP;
	if (!ftruncate(fd, (off_t)bytes))
		copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (copy != MAP_FAILED) {
		filled = fill(file, copy, bytes, decompress);
		munmap(copy, bytes);
	}
	if (!filled)
		close(fd);
	return filled ? fd : -ENOTSUP;
}

static int decompressed(const struct file *file, uint64_t bytes)
{
	void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	decompress_fn *decompress = NULL;
	int fd = -ENOTSUP;

	if (library)
		*(void **)&decompress = dlsym(library, "ZSTD_decompress");
	if (decompress)
		fd = make_copy(file, bytes, decompress);
	if (library)
		dlclose(library);
	return fd;
}

int zstd_plain_copy(int fd)
{
	struct file file;
	uint64_t bytes;
	int copy = -ENOENT;

	if (!map(&file, fd))
		return -ENOENT;
	bytes = has_sections(&file) ? bytes_of_copy(&file) : file.size;
	if (bytes != file.size)
		copy = decompressed(&file, bytes);
	munmap((void *)file.bytes, file.size);
	return copy;
}
