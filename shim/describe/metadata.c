/*
 * shim/describe/metadata.c: the metadata of a trace: what metadata_layout.h fixes, plus this
 * process' own environment and clock. Written when a session begins and again when it ends, with
 * the better frequency. Runs in slow paths only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cudaspy/metadata_layout.h"
#include "describe/describe.h"
#include "process/ranks.h"
#include "process/folder.h"
#include "process/options.h"
#include "state/session.h"
#include "process/text.h"

extern char **environ;

/* Not on the stack, which may be small. Metadata is written by one thread at a time: the one that
 * begins the session, and the one that ends it. */
static char scratch[8192];

/* A value between quotes, everything unusual as an octal escape. */
static void write_quoted(struct spy_text *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			spy_text_print(out, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			spy_text_print(out, "\\%03o", c);
		else
			spy_text_add(out, &text[i], 1);
	}
}

static void write_text(struct spy_text *out, const char *key, const char *text)
{
	spy_text_print(out, "\t%s = \"", key);
	write_quoted(out, text ? text : "", text ? strlen(text) : 0);
	spy_text_print(out, "\";\n");
}

/* The beginning of a file under /proc, ending in NUL. Returns its length, 0 for none. */
static size_t read_file(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes = 0;
	ssize_t some = 1;

	while (file >= 0 && some > 0 && bytes < size - 1) {
		some = read(file, text + bytes, size - 1 - bytes);
		bytes += some > 0 ? (size_t)some : 0;
	}
	if (file >= 0)
		close(file);
	text[bytes] = '\0';
	return bytes;
}

/* The first line of a small file, as under /proc. */
static void write_file_line(struct spy_text *out, const char *key, const char *path)
{
	char line[256];

	read_file(path, line, sizeof(line));
	line[strcspn(line, "\n")] = '\0';
	write_text(out, key, line);
}

/* Arguments separated by spaces; those that contain one in quotes. */
static void write_command_line(struct spy_text *out)
{
	char *text = scratch;
	size_t bytes = read_file("/proc/self/cmdline", text, sizeof(scratch));

	spy_text_print(out, "\tcommand_line = \"");
	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
		bool spaced = !text[at] || strpbrk(text + at, " \t\n");

		if (at)
			spy_text_add(out, " ", 1);
		if (spaced)
			spy_text_add(out, "'", 1);
		write_quoted(out, text + at, strlen(text + at));
		if (spaced)
			spy_text_add(out, "'", 1);
	}
	spy_text_print(out, "\";\n");
}

static bool is_word(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Variables that change how CUDA behaves, or what PyTorch asks of it, and our own: everything that begins like them. */
static bool is_recorded(const char *variable)
{
	static const char *const prefixes[] = {"CUDA", "NCCL_", "PYTORCH_", "TORCH_NCCL_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void write_variables(struct spy_text *out)
{
	for (char **variable = environ; variable && *variable; variable++) {
		const char *value = strchr(*variable, '=');

		if (!value || !is_recorded(*variable))
			continue;
		spy_text_print(out, "\tenv_");
		for (const char *c = *variable; c < value; c++)
			spy_text_add(out, is_word(*c) ? c : "_", 1);
		spy_text_print(out, " = \"");
		write_quoted(out, value + 1, strlen(value + 1));
		spy_text_print(out, "\";\n");
	}
}

/* CPUs that a cgroup's quota is worth, rounded up; 0: it has none. */
static unsigned int quota_of(const char *cgroup)
{
	unsigned long quota, period;
	char path[512], text[64], *end;

	if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", cgroup) >= (int)sizeof(path) ||
	    !read_file(path, text, sizeof(text)))
		return 0;
	quota = strtoul(text, &end, 10); /* or "max" */
	period = strtoul(end, NULL, 10);
	return quota && period ? (unsigned int)((quota + period - 1) / period) : 0;
}

/* The smallest of the cgroups (version 2) that the process is in; 0: none. */
static unsigned int find_quota(void)
{
	char *cgroup, *end, *text = scratch;
	unsigned int least = 0;

	if (!read_file("/proc/self/cgroup", text, sizeof(scratch)))
		return 0;
	cgroup = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text - 1;
	if (!cgroup)
		return 0;
	cgroup += 4;
	end = cgroup + strcspn(cgroup, "\n");
	while (end > cgroup) {
		unsigned int quota;

		*end = '\0';
		quota = quota_of(cgroup[1] ? cgroup : "");
		least = quota && (!least || quota < least) ? quota : least;
		end = strrchr(cgroup, '/');
		if (end == cgroup && cgroup[1]) /* the root of a container may have one, too */
			end++;
	}
	return least;
}

/* CPUs the process may use; 0: more than a small set can hold. */
static unsigned int count_cpus(void)
{
	unsigned int quota = find_quota(), cpus;
	cpu_set_t set;

	cpus = sched_getaffinity(0, sizeof(set), &set) ? 0 : (unsigned int)CPU_COUNT(&set);
	return quota && (!cpus || quota < cpus) ? quota : cpus;
}

/* Which rank of a job it is: only what its launcher says. */
static void write_rank(struct spy_text *out)
{
	struct spy_rank rank;

	spy_rank_read(&rank);
	if (rank.from) {
		spy_text_print(out, "\trank = %u;\n", rank.rank);
		write_text(out, "rank_from", rank.from);
	}
	if (rank.has_local_rank)
		spy_text_print(out, "\tlocal_rank = %u;\n", rank.local_rank);
	if (rank.has_world_size)
		spy_text_print(out, "\tworld_size = %u;\n", rank.world_size);
	if (rank.has_restarts)
		spy_text_print(out, "\trestarts = %u;\n", rank.restarts);
	if (*rank.job && !spy_options.redact)
		write_text(out, "job", rank.job);
}

static void write_environment(struct spy_text *out, const struct spy_session *session)
{
	ssize_t length;

	write_text(out, "tracer_name", "cudaspy");
	write_text(out, "cudaspy_version", CUDASPY_VERSION);
	spy_text_print(out, "\ttrace_version = %d;\n", SPY_TRACE_VERSION);
	write_file_line(out, "hostname", "/proc/sys/kernel/hostname");
	write_file_line(out, "boot_id", "/proc/sys/kernel/random/boot_id");
	spy_text_print(out, "\tpid = %d;\n\tppid = %d;\n", session->pid, (int)getppid());
	write_text(out, "program", program_invocation_short_name);
	length = readlink("/proc/self/exe", scratch, sizeof(scratch) - 1);
	scratch[length > 0 ? length : 0] = '\0';
	write_text(out, "executable", scratch);
	if (!spy_options.redact)
		write_command_line(out);
	write_text(out, "cwd", getcwd(scratch, sizeof(scratch)));
	write_text(out, "cudaspy_run", spy_options.run);
	write_rank(out);
	spy_text_print(out, "\tprobes = %d;\n", !spy_options.noprobes);
	spy_text_print(out, "\tkeep_mib = %llu;\n",
		       (unsigned long long)(spy_options_keeps_packets()
						    ? spy_options_keep_bytes() >> 20
						    : 0));
	spy_text_print(out, "\tredacted = %d;\n", !!spy_options.redact);
	spy_text_print(out, "\tstacks = %d;\n", !spy_options.nostacks);
	/* Who looks at the program while it runs is told what opens the next window. */
	write_text(out, "capture_range", spy_options.capture_range);
	write_text(out, "steps", spy_options.steps);
	write_text(out, "delay", spy_options.delay);
	write_text(out, "duration", spy_options.duration);
	write_text(out, "clock_source", spy_clock_is_counter ? "tsc" : "monotonic");
	spy_text_print(out, "\tstart_realtime_ns = %llu;\n",
		       (unsigned long long)session->begun.realtime_ns);
	if (!spy_options.redact)
		write_variables(out);
}

/* As it was when the session began: since then the program may have changed its root, and see no
 * /proc. */
static const char *environment_of(struct spy_session *session)
{
	if (!session->environment.length)
		write_environment(&session->environment, session);
	return session->environment.failed ? "" : session->environment.chars;
}

/* CTF: real time = offset_s + (offset + cycles) / frequency. The offset is what makes the pair read
 * at the beginning come out right. */
static void write_clock(struct spy_text *out, const struct spy_session *session)
{
	unsigned __int128 ns = session->begun.realtime_ns;
	uint64_t frequency = session->frequency;
	unsigned __int128 cycles = ns * frequency / 1000000000u - session->begun.clock;

	spy_text_print(out, SPY_TSDL_CLOCK, frequency, (uint64_t)(cycles / frequency),
		       (uint64_t)(cycles % frequency));
}

/* Most of the file is the same in all of them. */
static int write_file(uint32_t part, const struct spy_text *own)
{
	const struct iovec pieces[] = {
		{(char *)SPY_TSDL_HEAD, strlen(SPY_TSDL_HEAD)},
		{(char *)spy_tsdl_types, strlen(spy_tsdl_types)},
		{own->chars, own->length},
		{(char *)spy_tsdl_stream, strlen(spy_tsdl_stream)},
	};

	return spy_folder_replace(part, "metadata", pieces, sizeof(pieces) / sizeof(pieces[0]));
}

int spy_metadata_write(struct spy_session *session, uint32_t part)
{
	const uint8_t *u = session->uuid;
	struct spy_text text = {.length = 0};
	char uuid[37];
	int error;

	snprintf(uuid, sizeof(uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
	spy_text_print(&text, SPY_TSDL_TRACE, uuid);
	spy_text_print(&text, "env {\n%s\tcpus = %u;\n\tpart = %u;\n};\n\n",
		       environment_of(session), count_cpus(), part);
	write_clock(&text, session);
	error = text.failed ? -ENOMEM : write_file(part, &text);
	spy_text_free(&text);
	return error;
}
