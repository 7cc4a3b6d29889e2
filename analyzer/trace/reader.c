/*
 * analyzer/trace/reader.c: the records of one stream, in the order they were written. Called by
 * merge. Everything here may be damaged, cut off, foreign or hostile.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reader.h"
#include "cudaspy/metadata_layout.h"

/* Texts of records of other versions may be longer; beyond this a record is damaged. */
#define RECORD_MAX_BYTES (4 * SPY_TEXT_MAX)

/* Packets of a running program are another user's, perhaps, and may consist of holes: none is as large. */
#define LIVE_PACKET_MOST ((uint64_t)16 << 20)

/* How often a tail may move on while it is copied. It moves once in some four thousand calls. */
#define COPY_TRIES 1000

const struct record_layout record_layouts[SPY_EV_COUNT_ALL] = {
#define EVENT(number, type, name, texts) [number] = {sizeof(struct type), texts, #name},
	SPY_EVENTS(EVENT)
#undef EVENT
};

static const uint8_t nothing[1];

const char *raw_text(const union spy_any *record, unsigned int i)
{
	const char *text = (const char *)record + record_layouts[record->other.event].bytes;

	while (i--)
		text += strlen(text) + 1;
	return text;
}

void reader_init(struct reader *r, const uint8_t *uuid)
{
	*r = (struct reader){
		.at = nothing, .end = nothing, .fd = -1, .uuid = uuid, .time_end = UINT64_MAX};
	reader_set_buffer(r, 0);
}

void reader_set_buffer(struct reader *r, size_t bytes)
{
	r->buffer_bytes = bytes < 2 * RECORD_MAX_BYTES ? 2 * RECORD_MAX_BYTES : bytes;
}

static bool comes_before(const struct reader_file *a, const struct reader_file *b)
{
	return a->part != b->part ? a->part < b->part : a->number < b->number;
}

static struct reader_file *put_file(struct reader *r, const struct reader_file *file)
{
	size_t i;

	r->files = grow(r->files, r->n_files, sizeof(*r->files));
	for (i = r->n_files++; i && comes_before(file, &r->files[i - 1]); i--)
		r->files[i] = r->files[i - 1];
	r->files[i] = *file;
	return &r->files[i];
}

static struct reader_file *add_file(struct reader *r, const char *file, uint64_t number)
{
	return put_file(r, &(struct reader_file){
				   .path = xstrdup(file), .part = 1, .run = 1, .number = number});
}

void reader_set_part(struct reader *r, uint32_t part)
{
	for (size_t i = 0; i < r->n_files; i++)
		r->files[i].part = r->files[i].run = part;
}

void reader_join(struct reader *r, struct reader *other)
{
	for (size_t i = 0; i < other->n_files; i++)
		put_file(r, &other->files[i]);
	other->n_files = 0;
}

void reader_set_run(struct reader *r, uint32_t part, uint32_t run)
{
	for (size_t i = 0; i < r->n_files; i++)
		if (r->files[i].part == part)
			r->files[i].run = run;
}

void reader_add_file(struct reader *r, const char *file, uint64_t number)
{
	add_file(r, file, number);
}

void reader_add_extent(struct reader *r, const char *file, uint64_t number,
		       const struct container_extent *extent)
{
	struct reader_file *added = add_file(r, file, number);

	if (extent)
		added->packed = *extent;
}

void reader_release(struct reader *r)
{
	for (size_t i = 0; i < r->n_files; i++) {
		free(r->files[i].path);
		free(r->files[i].copy);
	}
	free(r->files);
	free(r->buffer);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct reader){.fd = -1};
}

uint64_t reader_bytes(const struct reader *r)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < r->n_files; i++)
		if (r->files[i].copy)
			bytes += r->files[i].copy_bytes;
		else if (r->files[i].packed.file)
			bytes += r->files[i].packed.bytes;
		else if (!stat(r->files[i].path, &st))
			bytes += (uint64_t)st.st_size;
	return bytes;
}

/* ---- files and the window ------------------------------------------------------------------- */

static const char *path(const struct reader *r)
{
	return r->files[r->file].path;
}

static uint64_t offset(const struct reader *r)
{
	return r->buffer_off + (uint64_t)(r->at - r->buffer);
}

static void unreadable(struct reader *r, uint64_t off, uint64_t bytes, const char *what)
{
	if (!r->quiet)
		warn("%s: offset %llu: %s; %llu bytes skipped", path(r), (unsigned long long)off,
		     what, (unsigned long long)bytes);
	r->losses.unreadable_bytes = add_capped(r->losses.unreadable_bytes, bytes);
}

/* Moves the window to `off` and no further than content_end_off. */
static void set_window(struct reader *r, uint64_t off)
{
	uint64_t bytes = r->content_end_off - r->buffer_off;

	r->at = r->buffer + (off - r->buffer_off);
	r->end = bytes < r->filled_bytes ? r->buffer + bytes : r->buffer + r->filled_bytes;
}

/* As pread, in spite of signals. */
static ssize_t read_at(int fd, void *bytes, size_t size, uint64_t off)
{
	ssize_t got;

	do {
		got = pread(fd, bytes, size, (off_t)off);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* What of `size` bytes at `off` belongs to the file: behind an extent come others. */
static size_t clipped(const struct container_extent *extent, size_t size, uint64_t off)
{
	if (!extent->file)
		return size;
	return off < extent->bytes ? (size_t)min_u64(size, extent->bytes - off) : 0;
}

/* Reads from the file, or from the copy of it. */
static ssize_t read_file(const struct reader *r, void *bytes, size_t size, uint64_t off)
{
	const struct reader_file *file = &r->files[r->file];

	if (!file->copy)
		return read_at(r->fd, bytes, clipped(&file->packed, size, off), r->file_off + off);
	if (off >= file->copy_bytes)
		return 0;
	if (size > file->copy_bytes - off)
		size = file->copy_bytes - off;
	memcpy(bytes, file->copy + off, size);
	return (ssize_t)size;
}

/* Fills the buffer from `off` on, keeping what it already has of that. False if not a single new
 * byte came. */
static bool fill(struct reader *r, uint64_t off)
{
	uint64_t have_end_off = r->buffer_off + r->filled_bytes;
	size_t kept = 0;
	ssize_t got;

	if (off >= r->buffer_off && off < have_end_off) {
		kept = (size_t)(have_end_off - off);
		memmove(r->buffer, r->buffer + (off - r->buffer_off), kept);
	}
	got = read_file(r, r->buffer + kept, r->buffer_bytes - kept, off + kept);
	if (got < 0) {
		if (!r->quiet)
			warn("%s: offset %llu: %s", path(r), (unsigned long long)off,
			     strerror(errno));
		got = 0;
	}
	r->buffer_off = off;
	r->filled_bytes = kept + (size_t)got;
	memset(r->buffer + r->filled_bytes, 0, sizeof(uint64_t)); /* for record_set */
	return got > 0;
}

static bool cannot_open(struct reader *r, const char *why)
{
	if (!r->quiet)
		warn("%s: %s", path(r), why);
	r->losses.unreadable_files++;
	return false;
}

static bool open_on_disk(struct reader *r)
{
	const struct container_extent *extent = &r->files[r->file].packed;

	r->fd = container_open_extent(path(r), extent, &r->file_bytes);
	r->file_off = extent->file ? extent->off : 0;
	if (r->fd < 0 && errno == ENOENT && r->live)
		return false; /* keep-the-last has just deleted it */
	if (r->fd < 0)
		return cannot_open(r, errno == EINVAL ? "not a regular file" : strerror(errno));
	return true;
}

static bool open_file(struct reader *r)
{
	r->buffer_off = r->content_end_off = r->packet_end_off = 0;
	r->filled_bytes = 0;
	if (r->files[r->file].copy)
		r->file_bytes = r->files[r->file].copy_bytes;
	else if (!open_on_disk(r))
		return false;
	/* Not cleared: most files are far smaller, and what is not read into is not touched. */
	if (!r->buffer)
		r->buffer = xrealloc(NULL, 1, r->buffer_bytes + sizeof(uint64_t));
	r->at = r->end = r->buffer;
	return true;
}

static void close_file(struct reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void reader_rewind(struct reader *r)
{
	close_file(r);
	*r = (struct reader){
		.at = nothing,
		.end = nothing,
		.buffer = r->buffer,
		.buffer_bytes = r->buffer_bytes,
		.fd = -1,
		.files = r->files,
		.n_files = r->n_files,
		.uuid = r->uuid,
		.live = r->live,
		.unbounded = r->unbounded,
		.keeps_first = r->keeps_first,
		.time_end = r->time_end,
	};
}

/* The next file of the stream that can be opened. */
static bool next_file(struct reader *r, bool first)
{
	close_file(r);
	for (r->file += first || r->file >= r->n_files ? 0 : 1; r->file < r->n_files; r->file++) {
		if (open_file(r))
			return true;
		close_file(r);
	}
	r->at = r->end = nothing;
	return false;
}

/* ---- packets -------------------------------------------------------------------------------- */

static bool all_zero(const void *bytes, size_t size)
{
	const uint8_t *b = bytes;

	while (size && !b[size - 1])
		size--;
	return !size;
}

static bool in_tail(const struct reader *r)
{
	return r->files[r->file].number == READER_FILE_TAIL;
}

static const char *packet_fault(const struct reader *r, const struct spy_packet *p)
{
	if (p->magic != SPY_CTF_MAGIC)
		return "no packet begins here (bad magic number)";
	if (r->uuid && memcmp(p->uuid, r->uuid, sizeof(p->uuid)))
		return "a packet of another trace (its uuid is not the one in metadata)";
	if (p->content_bits % 8 || p->packet_bits % 8)
		return "packet size is not in whole bytes";
	/* A tail of a bounded trace may have been about to grow. */
	if (p->content_bits / 8 < sizeof(*p) || p->packet_bits / 8 < sizeof(*p) ||
	    (p->packet_bits < p->content_bits && (r->unbounded || !in_tail(r))))
		return "packet sizes contradict each other";
	if (r->live && p->content_bits / 8 > LIVE_PACKET_MOST)
		return "packet is larger than a recorder makes one";
	return NULL;
}

/* ---- the tail of a process that may still write --------------------------------------------- */

static bool read_packet_header(int fd, const struct container_extent *extent, struct spy_packet *p)
{
	return read_at(fd, p, clipped(extent, sizeof(*p), 0), extent->file ? extent->off : 0) ==
	       sizeof(*p);
}

/*
 * Copies the packet. False: it has moved on meanwhile. The process empties a packet before it
 * gives it the next number, and numbers it before it writes to it. So a header whose number was
 * there before it was read goes with that packet, and what it covers was complete; and the bytes
 * are that packet's if the number is still there after they were read.
 */
static bool copy_packet(const struct reader *r, int fd, struct reader_file *file)
{
	const struct container_extent *extent = &file->packed;
	struct spy_packet before, header, after;
	uint64_t off = extent->file ? extent->off : 0;
	struct stat st;
	ssize_t got;
	size_t bytes;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return true; /* opening it will say what is wrong with it */
	if (!read_packet_header(fd, extent, &before) || !read_packet_header(fd, extent, &header) ||
	    all_zero(&header, sizeof(header))) {
		file->copy = xrealloc(file->copy, 1, 1); /* there was none yet */
		file->copy_bytes = 0;
		return true;
	}
	/* Tried again because it is damaged: the bytes behind that header have been copied. Who writes it may wait for this CPU. */
	if (packet_fault(r, &header) && file->copy_bytes >= sizeof(header) &&
	    !memcmp(file->copy, &header, sizeof(header))) {
		sched_yield();
		return false;
	}
	bytes = (size_t)min_u64(header.content_bits / 8, LIVE_PACKET_MOST);
	bytes = clipped(extent, (size_t)min_u64(bytes, (uint64_t)st.st_size), 0);
	if (bytes < sizeof(header))
		bytes = sizeof(header);
	file->copy = xrealloc(file->copy, bytes, 1);
	memcpy(file->copy, &header, sizeof(header));
	got = read_at(fd, file->copy + sizeof(header), bytes - sizeof(header),
		      off + sizeof(header));
	file->copy_bytes = sizeof(header) + (got > 0 ? (size_t)got : 0);
	return read_packet_header(fd, extent, &after) && before.seq == header.seq &&
	       after.seq == header.seq && !packet_fault(r, &header);
}

void reader_add_copy_of_tail(struct reader *r, const char *path)
{
	reader_add_copy_of_extent(r, path, NULL);
}

void reader_add_copy_of_extent(struct reader *r, const char *path,
			       const struct container_extent *extent)
{
	struct reader_file *file = add_file(r, path, READER_FILE_TAIL);
	int fd, tries = 0;

	if (extent)
		file->packed = *extent;
	fd = open(file->packed.file ?: path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	while (!copy_packet(r, fd, file) && tries < COPY_TRIES)
		tries++;
	close(fd);
	/* The stream's file has by now what was in it; but a damaged packet is damage. */
	if (tries == COPY_TRIES && !packet_fault(r, (const struct spy_packet *)file->copy))
		file->copy_bytes = 0;
}

/* ---- from packet to packet ------------------------------------------------------------------- */

/* With a size bound packets are files of their own, and the oldest ones are deleted. Without one
 * such a file follows where the one before was truncated or removed. */
static bool is_bounded(const struct reader *r)
{
	return r->files[0].number != READER_FILE_PLAIN && !r->unbounded;
}

/* Has that packet been read already? Then it was being moved from the tail; and a copy of a tail
 * may be of a packet that has moved since. */
static bool is_old(const struct reader *r, uint64_t seq)
{
	return r->any_packet && (seq == r->seq || (r->files[r->file].copy && seq < r->seq));
}

/* The number that the next packet has if none is missing. Where parts of the recording are, that is unknown. */
static uint64_t expected_seq(const struct reader *r, const struct spy_packet *p)
{
	const struct reader_file *file = &r->files[r->file];

	if (r->any_packet ? r->part < file->run : file->run > 1)
		return p->seq;
	return r->any_packet ? r->seq + 1 : 0;
}

static void count_discarded(struct reader *r, const struct spy_packet *p)
{
	if (r->files[r->file].part != r->part)
		r->discarded = 0;
	if (p->discarded <= r->discarded)
		return;
	r->losses.discarded = add_capped(r->losses.discarded, p->discarded - r->discarded);
	r->discarded = p->discarded;
}

static void count_losses(struct reader *r, const struct spy_packet *p)
{
	uint64_t expected = expected_seq(r, p);

	/* Of a process that writes, packets are deleted before our eyes. */
	if (p->seq > expected && is_bounded(r) && (!r->any_packet || r->live || r->keeps_first))
		r->losses.packets_dropped =
			add_capped(r->losses.packets_dropped, p->seq - expected);
	else if (p->seq > expected)
		r->losses.packets_missing =
			add_capped(r->losses.packets_missing, p->seq - expected);
	count_discarded(r, p);
	r->seq = p->seq;
	r->part = r->files[r->file].part;
	r->any_packet = true;
}

/* The header of the next file's first packet. False if there is none. */
static bool look_into_next_file(const struct reader *r, struct spy_packet *p)
{
	const struct reader_file *next = &r->files[r->file + 1];
	bool got;
	int fd;

	if (r->file + 1 >= r->n_files)
		return false;
	if (next->copy) {
		got = next->copy_bytes >= sizeof(*p);
		if (got)
			memcpy(p, next->copy, sizeof(*p));
		return got && !packet_fault(r, p);
	}
	fd = open(next->packed.file ?: next->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	got = read_packet_header(fd, &next->packed, p) && !packet_fault(r, p);
	close(fd);
	return got;
}

/*
 * The file ends inside the packet `seq`. Is nothing lost by that? A process killed while it moved a
 * packet from the tail to the stream's file leaves part of it in the file, and all of it in the
 * tail. One that is still alive may have been doing it when we looked at the file's size; if our
 * copy of the tail is of an earlier packet, that is certain.
 */
static bool cut_is_no_loss(const struct reader *r, uint64_t seq)
{
	struct spy_packet next;
	bool last = !in_tail(r) &&
		    (r->file + 1 >= r->n_files || r->files[r->file + 1].number == READER_FILE_TAIL);

	if (look_into_next_file(r, &next) &&
	    (next.seq == seq || (last && r->files[r->file + 1].copy && next.seq < seq)))
		return true;
	return last && r->live;
}

/* Reads the header of the packet at packet_end_off. False at the end of the file, or where it makes
 * no sense to go on: a damaged header has no usable size. */
static bool read_header(struct reader *r, struct spy_packet *p)
{
	uint64_t off = r->packet_end_off;
	const char *fault;

	if (off >= r->file_bytes)
		return false;
	if (off < r->buffer_off || off + sizeof(*p) > r->buffer_off + r->filled_bytes)
		fill(r, off);
	r->content_end_off = r->file_bytes;
	set_window(r, off);
	r->content_end_off = off;
	if ((size_t)(r->end - r->at) < sizeof(*p)) {
		if (r->file_bytes - off >= sizeof(*p))
			unreadable(r, off, r->file_bytes - off, "cannot be read");
		else if (!all_zero(r->at, (size_t)(r->end - r->at)) &&
			 !cut_is_no_loss(r, r->any_packet ? r->seq + 1 : 0))
			unreadable(r, off, r->file_bytes - off,
				   "file ends inside a packet's header");
		return false;
	}
	memcpy(p, r->at, sizeof(*p));
	if (all_zero(p, sizeof(*p)))
		return false; /* room for packets that were never begun */
	fault = packet_fault(r, p);
	if (fault)
		unreadable(r, off, r->file_bytes - off, fault);
	return !fault;
}

/* Enters the next packet of the file. */
/*
 * A packet's header has the time of its last record. What claims to be a second or more later is
 * damaged, and would make the whole report wrong. A header that contradicts itself is believed
 * nothing of.
 */
#define TIME_SLACK ((uint64_t)1 << 32) /* cycles */

static void limit_times(struct reader *r, const struct spy_packet *p)
{
	uint64_t last = p->time_end > r->time ? p->time_end : r->time;

	r->time_most = r->time_end;
	if (p->time_end >= p->time_begin && last < UINT64_MAX - TIME_SLACK)
		r->time_most = min_u64(r->time_end, last + TIME_SLACK);
}

static bool next_packet(struct reader *r)
{
	uint64_t off, left;
	struct spy_packet p;

	do {
		off = r->packet_end_off;
		left = r->file_bytes - off;
		if (!read_header(r, &p))
			return false;
		if (p.content_bits / 8 > left && cut_is_no_loss(r, p.seq))
			return false;
		r->packet_end_off =
			p.packet_bits / 8 > left ? r->file_bytes : off + p.packet_bits / 8;
	} while (is_old(r, p.seq));
	/* Copies of files, made one after the other while the process wrote: what is complete ends
	 * here. */
	if (r->live && in_tail(r) && r->any_packet && p.seq > expected_seq(r, &p) && !is_bounded(r))
		return false;
	count_losses(r, &p);
	limit_times(r, &p);
	r->tid = p.tid;
	r->kind = p.kind;
	r->content_end_off = off + p.content_bits / 8;
	if (p.content_bits / 8 > left) {
		unreadable(r, r->file_bytes, r->content_end_off - r->file_bytes,
			   "file ends inside a packet");
		r->content_end_off = r->file_bytes;
	}
	set_window(r, off + sizeof(p));
	return true;
}

uint64_t reader_pass(struct reader *r, unsigned int n)
{
	uint64_t from = offset(r) + r->size, off = r->packet_end_off;
	struct spy_packet p;

	for (; n > 1 && off < r->file_bytes; n--) {
		if (read_file(r, &p, sizeof(p), off) != sizeof(p) || packet_fault(r, &p) ||
		    p.packet_bits / 8 > r->file_bytes - off)
			break;
		off += p.packet_bits / 8;
		r->seq = p.seq;
	}
	r->packet_end_off = off;
	r->content_end_off = from;
	set_window(r, from);
	r->size = 0;
	return off - from;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Bytes of the record at the window's beginning: 0 if the window ends before it does, SIZE_MAX if
 * there is no such record. */
static size_t record_size(const struct reader *r)
{
	size_t left = (size_t)(r->end - r->at), size;
	const union spy_any *record = (const union spy_any *)r->at;
	const uint8_t *nul;

	if (left < sizeof(struct spy_rec_other))
		return 0;
	if (record->other.event >= SPY_EV_COUNT_ALL)
		return SIZE_MAX;
	size = record_layouts[record->other.event].bytes;
	if (record->other.event == SPY_EV_PLACE && size <= left)
		size += record->place.count * sizeof(record->place.words[0]);
	for (unsigned int i = 0; i < record_layouts[record->other.event].texts; i++) {
		if (size >= left)
			return 0;
		nul = memchr(r->at + size, '\0', left - size);
		if (!nul)
			return left > RECORD_MAX_BYTES ? SIZE_MAX : 0;
		size = (size_t)(nul - r->at) + 1;
	}
	if (size > RECORD_MAX_BYTES)
		return SIZE_MAX;
	return size <= left ? size : 0;
}

/* Makes the record at the window's beginning whole. False: the packet is at its end, or its rest
 * is lost. */
static bool find_record(struct reader *r)
{
	const char *fault = "record of an unknown type";
	uint64_t off;

	for (;;) {
		r->size = record_size(r);
		off = offset(r);
		if (r->size && r->size != SIZE_MAX)
			return true;
		if (off >= r->content_end_off)
			return false;
		if (r->size == SIZE_MAX)
			break;
		if (r->buffer_off + r->filled_bytes >= r->content_end_off || !fill(r, off)) {
			fault = "packet ends inside a record";
			break;
		}
		set_window(r, off);
	}
	unreadable(r, off, r->content_end_off - off, fault);
	r->size = 0;
	return false;
}

/* A part repeats what it has to know of those before it. True: they have been read. */
static bool is_repeated(struct reader *r)
{
	const struct reader_file *file = &r->files[r->file];
	const struct spy_rec_part *part = &r->record->part;

	if (r->record->other.event != SPY_EV_PART)
		return r->repeated;
	r->repeated = part->state == SPY_PART_BEGIN && file->run < file->part;
	return false;
}

bool reader_next_slow(struct reader *r)
{
	bool first = !r->started;

	r->at += r->size;
	r->size = 0;
	r->started = true;
	if (first ? !next_file(r, true) : r->file >= r->n_files)
		return false;
	for (;;) {
		while (!find_record(r)) {
			r->at = r->end;
			while (!next_packet(r))
				if (!next_file(r, false))
					return false;
		}
		r->record = (const union spy_any *)r->at;
		if (unlikely(r->record->other.time > r->time_most))
			unreadable(r, offset(r), r->size,
				   "a record is of a later time than its packet");
		else if (likely(!is_repeated(r)))
			break;
		r->at += r->size;
	}
	if (r->record->other.time < r->time)
		r->losses.disordered++;
	else
		r->time = r->record->other.time;
	if (r->record->other.event == SPY_EV_THREAD)
		r->tid = r->record->thread.tid;
	if (r->record->other.event == SPY_EV_INNER)
		r->record = reader_expand(r, &r->record->inner);
	r->records++;
	r->others += !raw_is_call(r->record);
	return true;
}
