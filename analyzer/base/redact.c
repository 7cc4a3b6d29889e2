/*
 * analyzer/base/redact.c: texts without paths and users' names. Called where paths enter (traces, the model, symbols),
 * and where texts leave (reports, timelines, exports, warnings).
 */
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>
#include "hash.h"
#include "redact.h"
#include "util.h"

/* Traces may name any number of them. */
#define USERS_MOST 256
#define ODD_MOST 256
#define RELATIVE_MOST 16384

struct relative {
	UT_hash_handle hh;
	char path[];
};

/* Several threads read traces, and tell what they find. Texts leave when they have ended. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	bool on; /* since before there were several threads */
	bool full; /* more was told than there is room for: the first ones are kept */
	char *users[USERS_MOST];
	size_t n_users;
	char *odd
		[ODD_MOST]; /* directories in whose names a path would seem to end; the longest first */
	size_t n_odd;
	struct relative *relative; /* directories that do not begin with a slash */
} known;

/* ---- what is known --------------------------------------------------------------------------- */

/* Names below /home and the like that are no person's, or a word that texts are made of. */
static bool is_nobodys(const char *name)
{
	static const char *const names[] = {
		"admin",  "app",       "build",    "common",    "conda",  "cuda",
		"data",   "debian",    "ec2-user", "git",       "gpu",    "home",
		"lib",    "linuxbrew", "local",    "miniconda", "nobody", "nvidia",
		"opt",    "project",   "projects", "public",    "python", "root",
		"runner", "scratch",   "share",    "shared",    "src",    "test",
		"ubuntu", "user",      "users",    "vscode",    "work",   "workspace",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return strlen(name) < 2 || !name[strspn(name, "0123456789")];
}

/* The longest first; in whatever order they are told. */
static bool goes_before(const char *text, const char *other)
{
	size_t length = strlen(text), of_other = strlen(other);

	return length != of_other ? length > of_other : strcmp(text, other) < 0;
}

static void learn_user(const char *name, size_t length)
{
	char *copy;
	size_t i;

	copy = xstrndup(name, length);
	for (i = 0; i < known.n_users && strcmp(known.users[i], copy) != 0; i++)
		;
	if (i < known.n_users || is_nobodys(copy)) {
		free(copy);
		return;
	}
	if (known.n_users == USERS_MOST) {
		known.full = true;
		free(copy);
		return;
	}
	for (i = known.n_users++; i && goes_before(copy, known.users[i - 1]); i--)
		known.users[i] = known.users[i - 1];
	known.users[i] = copy;
}

/* Those whose homes the path leads through; `end` is behind it. */
static void learn_users(const char *path, const char *end)
{
	static const char *const homes[] = {"home", "Users", "users"};
	const char *part = path, *next;

	for (; part < end; part = next) {
		size_t length = strcspn(part, "/");

		next = part + length + 1;
		for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
			if (next < end && length == strlen(homes[i]) &&
			    !strncmp(part, homes[i], length))
				learn_user(next, min_u64(strcspn(next, "/"), (size_t)(end - next)));
	}
}

/* Would a path within a text seem to end here? */
static bool ends_path(char c)
{
	return (unsigned char)c <= ' ' || strchr("'\"`()<>[]{}|;\177", c);
}

static bool is_odd(const char *path)
{
	for (; *path; path++)
		if (ends_path(*path))
			return true;
	return false;
}

static void learn_odd(char *dir)
{
	size_t i;

	for (i = 0; i < known.n_odd && strcmp(known.odd[i], dir) != 0; i++)
		;
	known.full |= i == ODD_MOST;
	if (i < known.n_odd || known.n_odd == ODD_MOST) {
		free(dir);
		return;
	}
	for (i = known.n_odd++; i && goes_before(dir, known.odd[i - 1]); i--)
		known.odd[i] = known.odd[i - 1];
	known.odd[i] = dir;
}

static struct relative *find_relative(const char *dir, size_t length)
{
	struct relative *found;

	HASH_FIND(hh, known.relative, dir, (unsigned int)length, found);
	return found;
}

static void learn_relative(const char *dir, size_t length)
{
	struct relative *new;

	if (find_relative(dir, length))
		return;
	known.full |= HASH_COUNT(known.relative) >= RELATIVE_MOST;
	if (HASH_COUNT(known.relative) >= RELATIVE_MOST)
		return;
	new = xcalloc(1, sizeof(*new) + length + 1);
	memcpy(new->path, dir, length);
	HASH_ADD_KEYPTR(hh, known.relative, new->path, (unsigned int)length, new);
}

static void learn_directory(const char *path)
{
	size_t length = path ? strlen(path) : 0;
	char *dir;

	if (!length)
		return;
	learn_users(path, path + length);
	while (length && path[length - 1] == '/')
		length--;
	dir = xstrndup(path, length);
	if (is_odd(dir)) {
		learn_odd(dir);
		return;
	}
	if (*dir != '/')
		learn_relative(dir, length);
	free(dir);
}

void redact_path(const char *path)
{
	const char *slash = path && known.on ? strrchr(path, '/') : NULL;
	char *dir;

	if (!slash)
		return;
	dir = xstrndup(path, (size_t)(slash - path));
	pthread_mutex_lock(&lock);
	learn_users(path, path + strlen(path));
	learn_directory(dir);
	pthread_mutex_unlock(&lock);
	free(dir);
}

void redact_directory(const char *path)
{
	if (!known.on)
		return;
	pthread_mutex_lock(&lock);
	learn_directory(path);
	pthread_mutex_unlock(&lock);
}

bool redact_is_full(void)
{
	return known.full;
}

void redact_begin(void)
{
	const struct passwd *entry = getpwuid(getuid());
	const char *names[] = {getenv("USER"), getenv("LOGNAME"), getenv("SUDO_USER"),
			       entry ? entry->pw_name : NULL, path_basename(getenv("HOME"))};

	known.on = true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && *names[i])
			learn_user(names[i], strlen(names[i]));
}

bool redact_is_on(void)
{
	return known.on;
}

void redact_end(void)
{
	struct relative *item, *rest;

	while (known.n_users)
		free(known.users[--known.n_users]);
	while (known.n_odd)
		free(known.odd[--known.n_odd]);
	HASH_EMPTY (known.relative, item, rest)
		free(item);
	known.on = false;
}

/* ---- paths within a text --------------------------------------------------------------------- */

/* A text on its way: what of it is done. */
struct redacting {
	char *done;
	size_t n;
};

static void put(struct redacting *r, const char *text, size_t length)
{
	memcpy(r->done + r->n, text, length);
	r->n += length;
}

static bool is_joint(char c)
{
	return c && strchr("=:,@", c);
}

/* Behind the word at `at`, or behind the part of it in front of a colon and the like. */
static const char *end_of_word(const char *at, bool part)
{
	while (!ends_path(*at) && !(part && is_joint(*at)))
		at++;
	return at;
}

static bool has_slash(const char *from, const char *to)
{
	return memchr(from, '/', (size_t)(to - from));
}

/* A colon may be part of a path, and so may a blank, if what follows is one still. */
static const char *end_of_path(const char *at)
{
	const char *end = end_of_word(at, true), *all = end_of_word(at, false), *next;

	while (end < all && has_slash(end, all))
		end = end_of_word(end + 1, true);
	while (*end == ' ') {
		next = end_of_word(end + 1, false);
		if (strchr("/.~-", end[1]) || !has_slash(end + 1, next) ||
		    memmem(end + 1, (size_t)(next - end - 1), "://", 3))
			break;
		end = end_of_word(end + 1, true);
		while (end < next && has_slash(end, next))
			end = end_of_word(end + 1, true);
	}
	return end;
}

/* ".py", ".so.13": does the name look like a file's? Not "conv2.3", nor "calls/s." */
static bool looks_like_file(const char *name, const char *end)
{
	const char *dot = memrchr(name, '.', (size_t)(end - name));
	size_t length = dot ? (size_t)(end - dot) - 1 : 0, i;

	if (!dot || dot == name)
		return false;
	if (memmem(name, (size_t)(end - name), ".so.", 4))
		return true;
	for (i = 1; i <= length; i++)
		if (!((dot[i] | 32) >= 'a' && (dot[i] | 32) <= 'z') &&
		    !(i > 1 && dot[i] >= '0' && dot[i] <= '9'))
			return false;
	return length && length <= 8;
}

/* Of the path from `at` to `end` the last part. */
static const char *put_last(struct redacting *r, const char *at, const char *end)
{
	const char *behind = end, *last;

	learn_users(at, end);
	while (behind > at && behind[-1] == '/')
		behind--;
	for (last = behind; last > at && last[-1] != '/'; last--)
		;
	if (behind > last)
		put(r, last, (size_t)(behind - last));
	else
		put(r, "/", 1);
	return end;
}

/* The scheme that ends at the colon in front of `at`: is it that of files? */
static bool is_of_file(const char *text, const char *at)
{
	return at - text >= 5 && !strncasecmp(at - 5, "file:", 5);
}

/* What begins at `at`, where a path could: if it is one, puts what is left of it. Returns what it is behind, NULL if it
 * is none. */
static const char *try_path(struct redacting *r, const char *text, const char *at)
{
	const char *end = end_of_word(at, true), *slash;

	if (at[0] == '/' && at[1] == '/' && at > text && at[-1] == ':' && !is_of_file(text, at)) {
		end = end_of_word(at, false); /* a URL */
		put(r, at, (size_t)(end - at));
		return end;
	}
	if (at[0] == '/' && !ends_path(at[1]))
		return put_last(r, at, end_of_path(at));
	slash = memrchr(at, '/', (size_t)(end - at));
	if (!slash)
		return NULL;
	if (*at == '~' || !strncmp(at, "./", 2) || !strncmp(at, "../", 3))
		return put_last(r, at, end_of_path(at));
	if (find_relative(at, (size_t)(slash - at)) || looks_like_file(slash + 1, end) ||
	    find_relative(at, (size_t)(end - at)))
		return put_last(r, at, end);
	return NULL;
}

static char *without_paths(const char *text)
{
	struct redacting r = {.done = xcalloc(strlen(text) + 1, 1)};
	const char *at = text, *behind;

	while (*at) {
		bool first = at == text || ends_path(at[-1]) || is_joint(at[-1]);

		behind = first && !ends_path(*at) ? try_path(&r, text, at) : NULL;
		if (behind)
			at = behind;
		else
			put(&r, at++, 1);
	}
	return r.done;
}

/* ---- words within a text --------------------------------------------------------------------- */

/* Each place of `word` at which `fits` says so becomes `other`. */
static char *replace(char *text, const char *word, const char *other,
		     bool (*fits)(const char *text, const char *at, const char *end))
{
	size_t length = strlen(word);
	const char *from = text, *at;
	char *longer, *all = NULL;

	for (at = text; (at = strcasestr(at, word));) {
		if (!fits(text, at, at + length)) {
			at++;
			continue;
		}
		longer = xasprintf("%s%.*s%s", all ?: "", (int)(at - from), from, other);
		free(all);
		all = longer;
		at = from = at + length;
	}
	if (!all)
		return text;
	longer = xasprintf("%s%s", all, from);
	free(all);
	free(text);
	return longer;
}

static bool is_of_word(char c)
{
	return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || (c & 0x80);
}

static bool is_word(const char *text, const char *at, const char *end)
{
	return (at == text || !is_of_word(at[-1])) && !is_of_word(*end);
}

static bool is_directory(const char *text, const char *at, const char *end)
{
	(void)text;
	(void)at;
	return *end == '/';
}

/* It ends there. */
static bool is_last(const char *text, const char *at, const char *end)
{
	(void)text;
	(void)at;
	return !is_of_word(*end) && *end != '/';
}

/* What follows a directory with an odd name is then a path that begins with a slash. */
static char *without_odd(const char *text)
{
	char *left = xstrdup(text);

	for (size_t i = 0; i < known.n_odd; i++) {
		left = replace(left, known.odd[i], "", is_directory);
		left = replace(left, known.odd[i], path_basename(known.odd[i]), is_last);
	}
	return left;
}

char *redacted(const char *text)
{
	char *whole, *left;

	if (!known.on || !text)
		return text ? xstrdup(text) : NULL;
	whole = without_odd(text);
	left = without_paths(whole);
	free(whole);
	for (size_t i = 0; i < known.n_users; i++)
		left = replace(left, known.users[i], REDACTED_USER, is_word);
	return left;
}
