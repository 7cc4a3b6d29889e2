/*
 * shim/metadata.c: the metadata of a trace: what metadata_layout.h fixes, plus this process' own
 * environment and clock. Written when a session begins and again when it ends, with the better
 * frequency. Runs in slow paths only.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cudaspy/metadata_layout.h"
#include "folder.h"
#include "options.h"
#include "session.h"

extern char **environ;

/* Not on the stack, which may be small. Metadata is written by one thread at a time: the one that
 * begins the session, and the one that ends it. */
static char scratch[8192];

/* A value between quotes, everything unusual as an octal escape. */
static void write_quoted(FILE *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			fprintf(out, "\\%03o", c);
		else
			fputc(c, out);
	}
}

static void write_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\t%s = \"", key);
	write_quoted(out, text ? text : "", text ? strlen(text) : 0);
	fprintf(out, "\";\n");
}

/* The first line of a small file, as under /proc. */
static void write_file_line(FILE *out, const char *key, const char *path)
{
	char line[256] = "";
	FILE *file = fopen(path, "re");

	if (file) {
		if (fgets(line, sizeof(line), file))
			line[strcspn(line, "\n")] = '\0';
		fclose(file);
	}
	write_text(out, key, line);
}

/* Arguments separated by spaces; those that contain one in quotes. */
static void write_command_line(FILE *out)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	char *text = scratch;
	size_t bytes = file ? fread(text, 1, sizeof(scratch) - 1, file) : 0;

	if (file)
		fclose(file);
	text[bytes] = '\0';
	fprintf(out, "\tcommand_line = \"");
	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
		bool spaced = !text[at] || strpbrk(text + at, " \t\n");

		if (at)
			fputc(' ', out);
		if (spaced)
			fputc('\'', out);
		write_quoted(out, text + at, strlen(text + at));
		if (spaced)
			fputc('\'', out);
	}
	fprintf(out, "\";\n");
}

/* Variables that change how CUDA behaves, and our own: everything that begins like them. */
static void write_variables(FILE *out)
{
	for (char **variable = environ; variable && *variable; variable++) {
		const char *value = strchr(*variable, '=');

		if (!value || (strncmp(*variable, "CUDA", 4) && strncmp(*variable, "NCCL_", 5)))
			continue;
		fprintf(out, "\tenv_");
		for (const char *c = *variable; c < value; c++)
			fputc((*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
					      (*c >= '0' && *c <= '9')
				      ? *c
				      : '_',
			      out);
		fprintf(out, " = \"");
		write_quoted(out, value + 1, strlen(value + 1));
		fprintf(out, "\";\n");
	}
}

/* CPUs the process may use; 0: more than a small set can tell. */
static int count_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
}

static void write_environment(FILE *out, const struct spy_session *session)
{
	ssize_t length;

	write_text(out, "tracer_name", "cudaspy");
	write_text(out, "cudaspy_version", CUDASPY_VERSION);
	fprintf(out, "\ttrace_version = %d;\n", SPY_TRACE_VERSION);
	write_file_line(out, "hostname", "/proc/sys/kernel/hostname");
	write_file_line(out, "boot_id", "/proc/sys/kernel/random/boot_id");
	fprintf(out, "\tpid = %d;\n\tppid = %d;\n", session->pid, (int)getppid());
	write_text(out, "program", program_invocation_short_name);
	length = readlink("/proc/self/exe", scratch, sizeof(scratch) - 1);
	scratch[length > 0 ? length : 0] = '\0';
	write_text(out, "executable", scratch);
	if (!spy_options.redact)
		write_command_line(out);
	write_text(out, "cwd", getcwd(scratch, sizeof(scratch)));
	write_text(out, "cudaspy_run", spy_options.run);
	fprintf(out, "\tprobes = %d;\n", !spy_options.noprobes);
	fprintf(out, "\tkeep_mib = %llu;\n", (unsigned long long)(spy_options_keep_bytes() >> 20));
	fprintf(out, "\tredacted = %d;\n", !!spy_options.redact);
	fprintf(out, "\tstacks = %d;\n", !spy_options.nostacks);
	write_text(out, "clock_source", spy_clock_is_counter ? "tsc" : "monotonic");
	fprintf(out, "\tstart_realtime_ns = %llu;\n",
		(unsigned long long)session->begun.realtime_ns);
	if (!spy_options.redact)
		write_variables(out);
}

/* As it was when the session began: since then the program may have changed its root, and see no /proc. */
static const char *environment_of(const struct spy_session *session)
{
	static char *text;
	static int pid;
	size_t bytes = 0;
	FILE *out;

	if (text && pid == session->pid)
		return text;
	free(text);
	text = NULL;
	pid = session->pid;
	out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	write_environment(out, session);
	return fclose(out) == 0 ? text : NULL;
}

/* CTF: real time = offset_s + (offset + cycles) / frequency. The offset is what makes the pair read
 * at the beginning come out right. */
static void write_clock(FILE *out, const struct spy_session *session)
{
	unsigned __int128 ns = session->begun.realtime_ns;
	uint64_t frequency = session->frequency;
	unsigned __int128 cycles = ns * frequency / 1000000000u - session->begun.clock;

	fprintf(out, SPY_TSDL_CLOCK, frequency, (uint64_t)(cycles / frequency),
		(uint64_t)(cycles % frequency));
}

int spy_metadata_write(const struct spy_session *session)
{
	char uuid[37];
	const uint8_t *u = session->uuid;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int error;

	if (!out)
		return -ENOMEM;
	snprintf(uuid, sizeof(uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
	fputs(SPY_TSDL_HEAD, out);
	fputs(spy_tsdl_types, out);
	fprintf(out, SPY_TSDL_TRACE, uuid);
	fprintf(out, "env {\n%s\tcpus = %d;\n};\n\n", environment_of(session) ?: "", count_cpus());
	write_clock(out, session);
	fputs(spy_tsdl_stream, out);
	if (fclose(out) != 0 || !text) {
		free(text);
		return -ENOMEM;
	}
	error = spy_folder_replace("metadata", text, bytes);
	free(text);
	return error;
}
