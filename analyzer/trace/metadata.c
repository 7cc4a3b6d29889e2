/*
 * analyzer/trace/metadata.c: reads a trace's metadata file. Called once for each trace, when it is
 * opened. The text is not trusted: it may be damaged, foreign or of another version.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "metadata.h"
#include "base/redact.h"
#include "cudaspy/metadata_layout.h"
#include "cudaspy/trace_format.h"

#define NUMBER_MAX 0xffff /* function and event numbers have 16 bits */
#define GAP_MOST 256

enum token { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN };

/* The text, and the token in front of us. */
struct scanner {
	const char *at, *end;
	enum token token;
	char sign; /* of TOKEN_SIGN */
	int64_t number;
	char text[4096]; /* of TOKEN_NAME and TOKEN_TEXT; longer ones are cut */
	size_t length;
};

/* ---- tokens --------------------------------------------------------------------------------- */

static void skip_blanks(struct scanner *s)
{
	while (s->at < s->end) {
		if (isspace((unsigned char)*s->at)) {
			s->at++;
		} else if (s->end - s->at > 1 && s->at[0] == '/' && s->at[1] == '*') {
			const char *close =
				memmem(s->at + 2, (size_t)(s->end - s->at) - 2, "*/", 2);

			s->at = close ? close + 2 : s->end;
		} else if (s->end - s->at > 1 && s->at[0] == '/' && s->at[1] == '/') {
			const char *line = memchr(s->at, '\n', (size_t)(s->end - s->at));

			s->at = line ? line + 1 : s->end;
		} else {
			break;
		}
	}
}

static void put(struct scanner *s, char c)
{
	if (s->length + 1 < sizeof(s->text))
		s->text[s->length++] = c;
}

/* A number of up to `digits` digits of that base at s->at, as one byte. */
static char escaped_number(struct scanner *s, int base, int digits)
{
	unsigned int value = 0;

	for (; digits && s->at < s->end; digits--, s->at++) {
		char c = (char)tolower((unsigned char)*s->at);
		int digit = isdigit((unsigned char)c) ? c - '0' : c >= 'a' ? c - 'a' + 10 : 99;

		if (digit >= base)
			break;
		value = value * (unsigned int)base + (unsigned int)digit;
	}
	return (char)value;
}

static void scan_text(struct scanner *s)
{
	static const char letters[] = "abfnrtv", meanings[] = "\a\b\f\n\r\t\v";
	const char *letter;

	for (s->at++; s->at < s->end && *s->at != '"';) {
		if (*s->at != '\\' || s->end - s->at < 2) {
			put(s, *s->at++);
			continue;
		}
		s->at++;
		if (*s->at == 'x') {
			s->at++;
			put(s, escaped_number(s, 16, 2));
		} else if (isdigit((unsigned char)*s->at) && *s->at < '8') {
			put(s, escaped_number(s, 8, 3));
		} else {
			letter = strchr(letters, *s->at);
			put(s, letter && *letter ? meanings[letter - letters] : *s->at);
			s->at++;
		}
	}
	if (s->at < s->end)
		s->at++;
	s->token = TOKEN_TEXT;
}

static void scan_number(struct scanner *s)
{
	char digits[32], *end;
	size_t n = 0;

	do {
		if (n + 1 < sizeof(digits))
			digits[n++] = *s->at;
		s->at++;
	} while (s->at < s->end && isalnum((unsigned char)*s->at));
	digits[n] = '\0';
	s->number = *digits == '-' ? strtoll(digits, &end, 0) : (int64_t)strtoull(digits, &end, 0);
	memcpy(s->text, digits, n);
	s->length = n;
	s->token = TOKEN_NUMBER;
}

static void next(struct scanner *s)
{
	skip_blanks(s);
	s->length = 0;
	if (s->at >= s->end) {
		s->token = TOKEN_END;
	} else if (*s->at == '"') {
		scan_text(s);
	} else if (isdigit((unsigned char)*s->at) ||
		   (*s->at == '-' && s->end - s->at > 1 && isdigit((unsigned char)s->at[1]))) {
		scan_number(s);
	} else if (isalpha((unsigned char)*s->at) || *s->at == '_') {
		while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
			put(s, *s->at++);
		s->token = TOKEN_NAME;
	} else {
		s->token = TOKEN_SIGN;
		s->sign = *s->at++;
	}
	s->text[s->length] = '\0';
}

static bool is_sign(const struct scanner *s, char sign)
{
	return s->token == TOKEN_SIGN && s->sign == sign;
}

static bool is_name(const struct scanner *s, const char *name)
{
	return s->token == TOKEN_NAME && !strcmp(s->text, name);
}

/* To behind the next ';' that is not inside braces, or in front of the '}' that closes the block we
 * are in. */
static void skip_statement(struct scanner *s)
{
	unsigned int depth = 0;

	for (; s->token != TOKEN_END; next(s)) {
		if (is_sign(s, '{')) {
			depth++;
		} else if (is_sign(s, '}')) {
			if (!depth)
				return;
			depth--;
		} else if (is_sign(s, ';') && !depth) {
			next(s);
			return;
		}
	}
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void set_name(char ***names, size_t *count, uint64_t number, const char *name)
{
	/* Numbers that are left out cost memory, too: no recorder leaves many. */
	if (number > NUMBER_MAX || number > *count + GAP_MOST)
		return;
	while (*count <= number) {
		*names = grow(*names, *count, sizeof(**names));
		(*names)[(*count)++] = NULL;
	}
	free((*names)[number]);
	(*names)[number] = xstrdup(name);
}

static void free_names(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

/* What a block does with one `key = value;`: the value is the token in front of the scanner. */
typedef void value_fn(struct metadata *m, const char *key, const struct scanner *s);

static void take_trace(struct metadata *m, const char *key, const struct scanner *s)
{
	const char *at = s->text;

	if (strcmp(key, "uuid") || s->token != TOKEN_TEXT)
		return;
	for (unsigned int i = 0; i < sizeof(m->uuid); i++) {
		unsigned int byte;

		at += *at == '-';
		if (sscanf(at, "%2x", &byte) != 1)
			return;
		m->uuid[i] = (uint8_t)byte;
		at += strnlen(at, 2);
	}
	m->has_uuid = true;
}

static void take_env(struct metadata *m, const char *key, const struct scanner *s)
{
	struct metadata_env *env;

	if (s->token == TOKEN_SIGN || s->token == TOKEN_END)
		return;
	m->env = grow(m->env, m->n_env, sizeof(*m->env));
	env = &m->env[m->n_env++];
	*env = (struct metadata_env){.key = xstrdup(key),
				     .value = xstrndup(s->text, s->length),
				     .is_number = s->token == TOKEN_NUMBER,
				     .number = s->token == TOKEN_NUMBER ? s->number : 0};
}

static void take_clock(struct metadata *m, const char *key, const struct scanner *s)
{
	if (s->token != TOKEN_NUMBER)
		return;
	if (!strcmp(key, "freq"))
		m->frequency = (uint64_t)s->number;
	else if (!strcmp(key, "offset_s"))
		m->offset_s = (uint64_t)s->number;
	else if (!strcmp(key, "offset"))
		m->offset_cycles = (uint64_t)s->number;
}

/* An event is complete with its id, which follows its name. */
static void take_event(struct metadata *m, const char *key, const struct scanner *s)
{
	if (!strcmp(key, "name") && s->token == TOKEN_TEXT) {
		free(m->event_name);
		m->event_name = xstrdup(s->text);
	} else if (!strcmp(key, "id") && s->token == TOKEN_NUMBER && m->event_name) {
		set_name(&m->events, &m->n_events, (uint64_t)s->number, m->event_name);
		free(m->event_name);
		m->event_name = NULL;
	}
}

static void parse_block(struct metadata *m, struct scanner *s, value_fn *take)
{
	char key[256];

	next(s); /* the brace */
	while (s->token != TOKEN_END && !is_sign(s, '}')) {
		snprintf(key, sizeof(key), "%.*s", (int)sizeof(key) - 1, s->text);
		if (s->token == TOKEN_NAME) {
			next(s);
			if (is_sign(s, '=')) {
				next(s);
				take(m, key, s);
			}
		}
		skip_statement(s);
	}
	next(s);
	if (is_sign(s, ';'))
		next(s);
}

/* `typealias enum : container { "name", "name" = 7, ... } := alias;` */
static void parse_enum(struct metadata *m, struct scanner *s)
{
	char **names = NULL;
	size_t count = 0;
	uint64_t number = 0;
	char name[512];

	while (s->token != TOKEN_END && !is_sign(s, '{') && !is_sign(s, ';'))
		next(s);
	if (is_sign(s, '{'))
		next(s);
	/* A container that is spelt out, integer { ... }, comes before the names. */
	if (s->token == TOKEN_NAME && is_name(s, "size")) {
		while (s->token != TOKEN_END && !is_sign(s, '}'))
			next(s);
		next(s);
		next(s);
	}
	while (s->token == TOKEN_NAME || s->token == TOKEN_TEXT) {
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, s->text);
		next(s);
		if (is_sign(s, '=')) {
			next(s);
			if (s->token == TOKEN_NUMBER)
				number = (uint64_t)s->number;
			next(s);
		}
		set_name(&names, &count, number++, name);
		if (is_sign(s, ','))
			next(s);
	}
	while (s->token != TOKEN_END && s->token != TOKEN_NAME && !is_sign(s, ';'))
		next(s);
	if (is_name(s, "fn_t") && !m->functions) {
		m->functions = names;
		m->n_functions = count;
	} else {
		free_names(names, count);
	}
	skip_statement(s);
}

static const struct {
	const char *name;
	value_fn *take;
} blocks[] = {
	{"trace", take_trace},
	{"env", take_env},
	{"clock", take_clock},
	{"event", take_event},
};

static void parse_statement(struct metadata *m, struct scanner *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (!is_name(s, blocks[i].name))
			continue;
		next(s);
		if (is_sign(s, '{'))
			parse_block(m, s, blocks[i].take);
		return;
	}
	if (is_name(s, "typealias")) {
		next(s);
		if (is_name(s, "enum")) {
			parse_enum(m, s);
			return;
		}
	}
	skip_statement(s);
	if (is_sign(s, '}'))
		next(s);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

#define RANKS_MAX (1 << 24) /* a larger number is none of a rank */

static int64_t number_of_ranks(const struct metadata *m, const char *key, int64_t otherwise)
{
	int64_t number = metadata_number(m, key, otherwise);

	return number >= 0 && number < RANKS_MAX ? number : otherwise;
}

static const char *text_of_ranks(const struct metadata *m, const char *key)
{
	const char *text = metadata_text(m, key);

	return text && *text ? text : NULL;
}

static void take_rank(struct metadata *m)
{
	int64_t rank = number_of_ranks(m, "rank", -1);

	m->world_size = (uint32_t)number_of_ranks(m, "world_size", 0);
	m->has_rank = rank >= 0 && m->world_size != 1; /* one alone is a program as any other */
	m->rank = m->has_rank ? (uint32_t)rank : 0;
	m->local_rank = (int32_t)number_of_ranks(m, "local_rank", -1);
	m->restarts = (uint32_t)number_of_ranks(m, "restarts", 0);
	m->job = text_of_ranks(m, "job");
	m->rank_from = text_of_ranks(m, "rank_from");
}

/* ---- the file ------------------------------------------------------------------------------- */

static int check(const struct metadata *m, const char *path)
{
	const char *tracer = metadata_text(m, "tracer_name");
	const char *said = metadata_text(m, "trace_version");
	int64_t version = metadata_number(m, "trace_version", said ? 0 : SPY_TRACE_VERSION);

	if (!tracer) {
		warn("%s: names no tracer: cut off, or another tool's", path);
		return -ENOMSG;
	}
	if (strcmp(tracer, "cudaspy")) {
		warn("%s: a trace of %s, not of cudaspy", path, tracer);
		return -ENOMSG;
	}
	if (version < 1) {
		warn("%s: trace format '%s': there is none", path, said);
		return -EPROTO;
	}
	if (version > SPY_TRACE_VERSION) {
		warn("%s: trace format %lld, this cudaspy reads up to %d: use the cudaspy that "
		     "wrote it (%s)",
		     path, (long long)version, SPY_TRACE_VERSION,
		     metadata_text(m, "cudaspy_version") ?: "version unknown");
		return -EPROTO;
	}
	return 0;
}

/* Takes off what this version writes into each of its traces: five sixths of the text, of which
 * nothing has to be learnt. */
static void skip_known(struct scanner *s)
{
	static const char begins[] = SPY_TSDL_HEAD;
	size_t head = sizeof(begins) - 1, types = sizeof(spy_tsdl_types) - 1;
	size_t rest = sizeof(spy_tsdl_stream) - 1;

	if ((size_t)(s->end - s->at) < head + types + rest || memcmp(s->at, begins, head) ||
	    memcmp(s->at + head, spy_tsdl_types, types) ||
	    memcmp(s->end - rest, spy_tsdl_stream, rest))
		return;
	s->at += head + types;
	s->end -= rest;
}

int metadata_parse(struct metadata *m, const char *path, const char *text, size_t size)
{
	static const char signature[] = "/* CTF 1.8";
	struct scanner *s;

	*m = (struct metadata){0};
	if (!size) {
		warn("%s: empty", path);
		return -ENOMSG;
	}
	if (size < sizeof(signature) - 1 || memcmp(text, signature, sizeof(signature) - 1)) {
		warn("%s: not CTF 1.8 metadata as cudaspy writes it (byte 0 on)", path);
		return -ENOMSG;
	}
	s = xcalloc(1, sizeof(*s));
	s->at = text;
	s->end = text + size;
	skip_known(s);
	for (next(s); s->token != TOKEN_END;)
		parse_statement(m, s);
	free(s);
	take_rank(m);
	return check(m, path);
}

/* The caller frees the text, also after an error. */
static int read_text(const char *path, char **text, size_t *size)
{
	FILE *file = open_regular(path);
	struct stat st;
	int err;

	*text = NULL;
	if (!file)
		return -errno;
	*size = fstat(fileno(file), &st) ? 0 : min_u64((uint64_t)st.st_size, METADATA_MAX_BYTES);
	*text = xrealloc(NULL, *size + 1, 1);
	*size = fread(*text, 1, *size, file);
	err = ferror(file) ? -EIO : 0;
	fclose(file);
	if (err)
		warn("%s: cannot be read", path);
	return err;
}

int metadata_read(struct metadata *m, const char *path)
{
	char *text;
	size_t size = 0;
	int err = read_text(path, &text, &size);

	*m = (struct metadata){0};
	if (!err)
		err = metadata_parse(m, path, text, size);
	free(text);
	return err;
}

void metadata_forget_functions(struct metadata *m)
{
	free_names(m->functions, m->n_functions);
	m->functions = NULL;
	m->n_functions = 0;
}

void metadata_release(struct metadata *m)
{
	for (size_t i = 0; i < m->n_env; i++) {
		free(m->env[i].key);
		free(m->env[i].value);
	}
	free(m->env);
	metadata_forget_functions(m);
	free_names(m->events, m->n_events);
	free(m->event_name);
	*m = (struct metadata){0};
}

static bool is_redacted(const char *key)
{
	return !strcmp(key, "command_line") || !strcmp(key, "cwd") || !strcmp(key, "job") ||
	       !strncmp(key, "env_", 4);
}

void metadata_redact(struct metadata *m)
{
	size_t i, n = 0;

	redact_path(metadata_text(m, "executable"));
	redact_directory(metadata_text(m, "cwd"));
	m->job = NULL;
	for (i = 0; i < m->n_env; i++) {
		if (!is_redacted(m->env[i].key)) {
			m->env[n++] = m->env[i];
			continue;
		}
		free(m->env[i].key);
		free(m->env[i].value);
	}
	m->n_env = n;
}

const char *metadata_text(const struct metadata *m, const char *key)
{
	for (size_t i = 0; i < m->n_env; i++)
		if (!strcmp(m->env[i].key, key))
			return m->env[i].value;
	return NULL;
}

int64_t metadata_number(const struct metadata *m, const char *key, int64_t otherwise)
{
	for (size_t i = 0; i < m->n_env; i++)
		if (m->env[i].is_number && !strcmp(m->env[i].key, key))
			return m->env[i].number;
	return otherwise;
}
