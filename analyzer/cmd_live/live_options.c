/*
 * analyzer/cmd_live/live_options.c: which running programs to look at. Called by `ps`, `top` and `snapshot`.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "live_options.h"

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")] && strlen(word) < 10;
}

static void add_dir(struct live_targets *t, const char *dir)
{
	t->dirs = grow(t->dirs, t->n_dirs, sizeof(*t->dirs));
	t->dirs[t->n_dirs++] = dir;
}

/* It may be another user's, whom recorded_find leaves out for all but root. */
static const struct recorded *find_pid(struct live_targets *t, pid_t pid)
{
	struct recorded_list one;

	for (size_t i = 0; i < t->recorded.n; i++)
		if (t->recorded.all[i].pid == pid)
			return &t->recorded.all[i];
	if (!recorded_find_one(&one, pid)) {
		recorded_release(&one);
		return NULL;
	}
	t->recorded.all = grow(t->recorded.all, t->recorded.n, sizeof(*t->recorded.all));
	t->recorded.all[t->recorded.n] = one.all[0];
	free(one.all);
	return &t->recorded.all[t->recorded.n++];
}

static void say_missing(const char *verb, const char *word)
{
	char *path = xasprintf("/proc/%s", word);

	if (!access(path, F_OK))
		warn("%s: process %s is not recorded by cudaspy, has made no CUDA call yet, or "
		     "is not yours to look at (cudaspy ps lists those that are)",
		     verb, word);
	else
		warn("%s: there is no process %s (cudaspy ps lists those that are recorded)", verb,
		     word);
	free(path);
}

/* verb NULL: nothing is said. */
static bool find_all(struct live_targets *t, const char *verb, char **words, size_t n)
{
	const struct recorded *found;

	*t = (struct live_targets){0};
	recorded_find(&t->recorded);
	for (size_t i = 0; i < n; i++) {
		/* a folder may be called by a number */
		bool there = !access(words[i], F_OK);

		if (!is_number(words[i]) || there) {
			if (there || verb)
				add_dir(t, words[i]);
			continue;
		}
		found = find_pid(t, (pid_t)atoi(words[i]));
		if (found) {
			add_dir(t, found->dir);
		} else if (verb) {
			say_missing(verb, words[i]);
			return false;
		}
	}
	for (size_t i = 0; !n && i < t->recorded.n; i++)
		add_dir(t, t->recorded.all[i].dir);
	return true;
}

bool live_targets_find(struct live_targets *t, const char *verb, char **words, size_t n)
{
	return find_all(t, verb, words, n);
}

void live_targets_find_again(struct live_targets *t, char **words, size_t n)
{
	find_all(t, NULL, words, n);
}

void live_targets_release(struct live_targets *t)
{
	recorded_release(&t->recorded);
	free(t->dirs);
	*t = (struct live_targets){0};
}

bool live_read_time(const char *verb, const char *option, const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"min", 60e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (isdigit((unsigned char)text[0]) && !strcmp(end, units[i].unit) &&
		    isfinite(value) && value * units[i].ns < 86400e9) {
			*ns = (uint64_t)(value * units[i].ns);
			return true;
		}
	warn("%s: --%s=%s: not a time below a day, such as 500ms or 2s", verb, option, text);
	return false;
}
