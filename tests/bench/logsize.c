/*
 * tests/bench/logsize.c: how large the log of a trace directory is: packets, bytes of records in
 * them, bytes of the stream files, bytes of other files, and how many calls the board says were
 * recorded. Prints one line of these five.
 */
#include "cudaspy/trace_format.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct sizes {
	unsigned long long packets, content_bytes, file_bytes, other_bytes, calls;
};

static void stream_add(struct sizes *sizes, const char *path)
{
	struct spy_packet packet;
	FILE *file = fopen(path, "rb");
	long offset = 0;

	while (file && !fseek(file, offset, SEEK_SET) &&
	       fread(&packet, sizeof(packet), 1, file) == 1 && packet.magic == SPY_CTF_MAGIC &&
	       packet.packet_bits) {
		sizes->packets++;
		sizes->content_bytes += packet.content_bits / 8 - sizeof(packet);
		offset += (long)(packet.packet_bits / 8);
	}
	if (file)
		fclose(file);
}

static void board_add(struct sizes *sizes, const char *path)
{
	static struct spy_slot_page page;
	FILE *file = fopen(path, "rb");

	if (file && !fseek(file, SPY_BOARD_PAGE, SEEK_SET)) {
		while (fread(&page, sizeof(page), 1, file) == 1)
			sizes->calls += page.calls;
	}
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	struct sizes sizes = {0};
	struct dirent *entry;
	DIR *directory;

	if (argc != 2 || !(directory = opendir(argv[1]))) {
		fprintf(stderr, "Usage: logsize TRACE_DIRECTORY\n");
		return 2;
	}
	while ((entry = readdir(directory))) {
		struct stat stat_of;
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (stat(path, &stat_of) || !S_ISREG(stat_of.st_mode))
			continue;
		if (!strcmp(entry->d_name, ".board"))
			board_add(&sizes, path);
		if (strncmp(entry->d_name, "stream_", 7)) {
			sizes.other_bytes += (unsigned long long)stat_of.st_size;
			continue;
		}
		sizes.file_bytes += (unsigned long long)stat_of.st_size;
		stream_add(&sizes, path);
	}
	closedir(directory);
	printf("%llu\t%llu\t%llu\t%llu\t%llu\n", sizes.packets, sizes.content_bytes,
	       sizes.file_bytes, sizes.other_bytes, sizes.calls);
	return 0;
}
