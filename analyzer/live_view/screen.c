/*
 * analyzer/live_view/screen.c: running programs on a terminal. Called by `top`.
 *
 * Names come from the programs and may hold anything: what is drawn goes through visible().
 */
#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>
#include "base/lines.h"
#include "screen.h"
#include "text/text.h"

#define LEAST_LINES 8
#define LEAST_COLUMNS 40
#define LOCKS_MOST 3 /* lines of each part above the threads */
#define GPUS_MOST 3
#define COSTS_MOST 4

enum { PAIR_PLAIN, PAIR_BAD, PAIR_TITLE, PAIR_WAIT };

bool screen_begin(void)
{
	setlocale(LC_CTYPE, "");
	if (!newterm(NULL, stdout, stdin)) {
		warn("top: no terminal that can be drawn on (TERM); --once needs none");
		return false;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	if (!getenv("NO_COLOR") && has_colors()) {
		start_color();
		use_default_colors();
		init_pair(PAIR_BAD, COLOR_RED, -1);
		init_pair(PAIR_TITLE, COLOR_CYAN, -1);
		init_pair(PAIR_WAIT, COLOR_YELLOW, -1);
	}
	return true;
}

void screen_end(void)
{
	endwin();
}

/* ---- keys ------------------------------------------------------------------------------------ */

static enum screen_key move_to(struct screen *s, size_t chosen)
{
	if (s->detail)
		s->top = chosen;
	else
		s->chosen = chosen;
	s->chosen_tid = 0; /* draw_threads finds out who it is */
	return SCREEN_CHANGED;
}

static enum screen_key handle_key(struct screen *s, int key)
{
	size_t at = s->detail ? s->top : s->chosen, page = (size_t)(LINES > 8 ? LINES - 8 : 1);

	switch (key) {
	case ERR:
		return SCREEN_NOTHING;
	case 'q':
	case 27: /* Escape */
		if (!s->detail && !s->help)
			return key == 'q' ? SCREEN_QUIT : SCREEN_NOTHING;
		s->detail = s->help = false;
		s->top = 0;
		return SCREEN_CHANGED;
	case ' ':
	case 'p':
		s->stopped = !s->stopped;
		return SCREEN_CHANGED;
	case 's':
		s->order = (s->order + 1) % SCREEN_ORDERS;
		return SCREEN_CHANGED;
	case KEY_UP:
	case 'k':
		return move_to(s, at ? at - 1 : 0);
	case KEY_DOWN:
	case 'j':
		return move_to(s, at + 1);
	case KEY_PPAGE:
		return move_to(s, at > page ? at - page : 0);
	case KEY_NPAGE:
		return move_to(s, at + page);
	case KEY_HOME:
	case 'g':
		return move_to(s, 0);
	case '\r':
	case '\n':
	case KEY_ENTER:
		s->detail = !s->detail;
		s->top = 0;
		return SCREEN_CHANGED;
	case '?':
	case 'h':
		s->help = !s->help;
		return SCREEN_CHANGED;
	default: /* KEY_RESIZE, too */
		return SCREEN_CHANGED;
	}
}

enum screen_key screen_wait(struct screen *screen, uint64_t ns)
{
	timeout((int)min_u64(ns / 1000000, 60000));
	return handle_key(screen, getch());
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Without its last character; of UTF-8 that may be several bytes. */
static void drop_last(char *text)
{
	size_t n = strlen(text);

	while (n > 1 && (text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n - 1] = 0;
}

/* One line: of names what fits, and cut at the screen's edge. */
static void put_line(int y, attr_t attributes, const char *text)
{
	char *shown = visible(text);

	if (y < LINES) {
		if (columns_of(shown) > (size_t)COLS) {
			char *shorter = shorten_to(shown, (size_t)COLS);

			free(shown);
			shown = shorter;
		}
		while (columns_of(shown) > (size_t)COLS)
			drop_last(shown);
		attron(attributes);
		mvaddstr(y, 0, shown);
		if (attributes & A_REVERSE)
			hline(' ' | attributes,
			      COLS - (int)min_u64(columns_of(shown), (size_t)COLS));
		attroff(attributes);
	}
	free(shown);
}

/* On as many lines as it takes, up to `most`; returns the next line. */
static int put_words(int y, int most, attr_t attributes, const char *text)
{
	char *buffer = NULL, *line, *rest;
	size_t size;
	FILE *out = open_memstream(&buffer, &size);

	print_words(text, 0, 0, (size_t)COLS, out);
	fclose(out);
	for (rest = buffer; most > 0 && (line = strsep(&rest, "\n")) && *line; most--)
		put_line(y++, attributes, line);
	free(buffer);
	return y;
}

static const char *head_text(const struct screen *s, const struct screen_picture *p)
{
	struct arena *texts = &p->report->arena;
	const struct live *live = p->words->live;
	uint64_t threads = 0, waiting = 0, calls = 0;
	time_t taken = (time_t)(p->taken_ns / 1000000000);
	struct tm tm;
	char clock[16] = "";

	for (size_t i = 0; i < live->n_processes; i++) {
		for (size_t j = 0; j < live->processes[i].n_threads; j++)
			threads += live->processes[i].threads[j]->slot != 0;
		waiting += live_waiting(&live->processes[i]);
		calls += live_calls_per_s(&live->processes[i]);
	}
	if (localtime_r(&taken, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	return arena_printf(texts, "cudaspy top  %s  %zu process%s  %s, %llu waiting  %s/s%s",
			    clock, live->n_processes, live->n_processes == 1 ? "" : "es",
			    text_count(texts, threads, "thread"), (unsigned long long)waiting,
			    text_count(texts, calls, "call"), s->stopped ? "  STOPPED" : "");
}

static int draw_verdicts(int y, const struct screen_picture *p)
{
	bool bad = verdicts_hang(p->verdicts);

	return put_words(y, LINES >= 20 ? 4 : 1, bad ? COLOR_PAIR(PAIR_BAD) | A_BOLD : A_NORMAL,
			 p->verdicts->all[0].text);
}

static int draw_gpus(int y, const struct screen_picture *p)
{
	struct report *report = p->report;
	const struct table *t = report_find(report, "gpus");

	for (size_t i = 0; t && i < t->n_rows && i < GPUS_MOST; i++) {
		const char *last = table_text_at(t, i, "last"), *nvml = table_text_at(t, i, "nvml");

		put_line(y++, A_NORMAL,
			 report_text(report, "GPU %llu  %llu outstanding, %llu waiting%s%s%s%s",
				     (unsigned long long)table_number_at(t, i, "device"),
				     (unsigned long long)table_number_at(t, i, "outstanding"),
				     (unsigned long long)table_number_at(t, i, "waiting"),
				     nvml ? "; " : "", nvml ?: "", last ? "; last: " : "",
				     last ?: ""));
	}
	return y;
}

static int draw_locks(int y, const struct screen_picture *p)
{
	struct report *report = p->report;
	const struct table *t = report_find(report, "locks");

	for (size_t i = 0; t && i < t->n_rows && i < LOCKS_MOST; i++) {
		const char *holder = table_text_at(t, i, "holder");

		put_line(y++, COLOR_PAIR(PAIR_WAIT),
			 report_text(report, "%s  %llu waiting, longest %s, %s in %s, held by %s",
				     table_text_at(t, i, "lock"),
				     (unsigned long long)table_number_at(t, i, "waiters"),
				     text_time(&report->arena, table_number_at(t, i, "longest_ns")),
				     table_text_at(t, i, "kind"), table_text_at(t, i, "lies"),
				     holder ?: "an unknown thread"));
	}
	return y;
}

static int draw_costs(int y, const struct screen_picture *p)
{
	struct report *report = p->report;
	const struct table *t = report_find(report, "costs");

	if (!t || !t->n_rows)
		return y;
	put_line(y++, COLOR_PAIR(PAIR_TITLE), "costliest calls and waits, of all threads together");
	for (size_t i = 0; i < t->n_rows && i < COSTS_MOST; i++)
		put_line(y++, A_NORMAL,
			 report_text(report, "  %9s  %s",
				     text_time(&report->arena, table_number_at(t, i, "ns")),
				     table_text_at(t, i, "what")));
	return y;
}

/* ---- threads --------------------------------------------------------------------------------- */

static enum screen_order order_now;

static uint64_t stuck_of(const struct live_thread *t)
{
	uint64_t ns = t->waits ? t->wait_ns : t->in_call ? t->call_ns : 0;

	return t->doing == LIVE_GOES_ON || ns == UNKNOWN_NS ? 0 : ns;
}

static int by_order(const void *x, const void *y)
{
	const struct live_thread *a = *(struct live_thread *const *)x;
	const struct live_thread *b = *(struct live_thread *const *)y;
	bool a_first = a->cycle || a->in_call || a->doing == LIVE_LOCK;
	bool b_first = b->cycle || b->in_call || b->doing == LIVE_LOCK;

	if (order_now == SCREEN_BY_CALLS && a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	if (order_now == SCREEN_BY_WAIT && a_first != b_first)
		return a_first ? -1 : 1;
	if (order_now == SCREEN_BY_WAIT && stuck_of(a) != stuck_of(b))
		return stuck_of(a) > stuck_of(b) ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static struct live_thread **sorted(const struct screen *s, const struct live *live)
{
	struct live_thread **all = xcalloc(live->n_threads, sizeof(*all));

	if (live->n_threads)
		memcpy(all, live->threads, live->n_threads * sizeof(*all));
	order_now = s->order;
	if (live->n_threads)
		qsort(all, live->n_threads, sizeof(*all), by_order);
	return all;
}

/* The same thread as before, wherever it is now; else the row. */
static void keep_choice(struct screen *s, struct live_thread *const *all, size_t n)
{
	for (size_t i = 0; s->chosen_tid && i < n; i++)
		if (all[i]->tid == s->chosen_tid &&
		    all[i]->process->trace->pid == s->chosen_process)
			s->chosen = i;
	if (s->chosen >= n)
		s->chosen = n ? n - 1 : 0;
	if (n) {
		s->chosen_tid = all[s->chosen]->tid;
		s->chosen_process = all[s->chosen]->process->trace->pid;
	}
}

/* Widths of a row's columns; the last one, where, has what is left: at least as much as each of them gets of a wider screen. */
static void widths(int w[3])
{
	bool wide = COLS >= 110;
	int more = COLS > 130 ? (COLS - 130) / 4 : 0;

	w[0] = more + (wide ? 24 : 16); /* thread */
	w[1] = more + (wide ? 28 : 20); /* call */
	w[2] = more + (wide ? 30 : 14); /* what it waits for */
}

/* So many columns of a text, cut at the end: the beginnings say more; or filled with blanks. */
static const char *cell(struct report *report, const char *text, int width)
{
	char *shown = visible(text);
	const char *made;
	size_t n = 0, used = 0;
	uint32_t code;

	for (; shown[n] && used < (size_t)width; used++)
		n += utf8_character(shown + n, &code) ?: 1;
	made = report_text(report, "%.*s%*s", (int)n, shown, width - (int)used, "");
	free(shown);
	return made;
}

static const char *row_of(const struct screen_picture *p, const char *thread, const char *time,
			  const char *call, const char *wait, const char *place)
{
	int w[3], left;

	widths(w);
	left = COLS - w[0] - w[1] - w[2] - 9 - 7;
	return report_text(p->report, "%s %9s  %s  %s  %s", cell(p->report, thread, w[0]), time,
			   cell(p->report, call, w[1]), cell(p->report, wait, w[2]),
			   left > 0 ? cell(p->report, place, left) : "");
}

static const char *row_text(const struct screen_picture *p, const struct live_thread *t)
{
	struct arena *texts = &p->report->arena;
	const char *wait = live_wait_text(p->words, t), *place = live_place(p->words, t);
	uint64_t ns = stuck_of(t);
	const char *call = t->doing == LIVE_NO_CUDA ? "(no CUDA calls)"
			   : t->in_call             ? text_function(&p->words->live->set, t->fn)
						    : "-";

	return row_of(p, live_thread_short(p->words, t), ns ? text_time(texts, ns) : "-", call,
		      t->doing == LIVE_GOES_ON ? "(goes on)" : wait ?: "-", place ?: "");
}

static void draw_threads(int y, struct screen *s, const struct screen_picture *p)
{
	static const char *const orders[] = {"longest wait first", "by number", "most calls first"};
	const struct live *live = p->words->live;
	struct live_thread **all = sorted(s, live);
	size_t rows = y + 2 < LINES ? (size_t)(LINES - 2 - y) : 0, i;

	keep_choice(s, all, live->n_threads);
	if (s->chosen < s->top)
		s->top = s->chosen;
	if (rows && s->chosen >= s->top + rows)
		s->top = s->chosen + 1 - rows;
	put_line(y++, A_REVERSE,
		 row_of(p, "thread", "for", "in call", "waits for",
			report_text(p->report, "where (%s)", orders[s->order])));
	for (i = s->top; i < live->n_threads && i < s->top + rows; i++) {
		attr_t attributes = all[i]->cycle                ? COLOR_PAIR(PAIR_BAD)
				    : all[i]->doing == LIVE_LOCK ? COLOR_PAIR(PAIR_WAIT)
								 : A_NORMAL;

		if (i == s->chosen)
			attributes |= A_BOLD | A_UNDERLINE;
		put_line(y++, attributes, row_text(p, all[i]));
	}
	free(all);
}

/* ---- one thread, and help -------------------------------------------------------------------- */

static int put_fact(int y, const struct screen_picture *p, const char *title, const char *text)
{
	return text && y < LINES - 1 ? put_words(y, LINES - 1 - y, A_NORMAL,
						 report_text(p->report, "%-11s %s", title, text))
				     : y;
}

static void draw_detail(struct screen *s, const struct screen_picture *p)
{
	const struct live *live = p->words->live;
	struct live_thread **all = sorted(s, live);
	const struct live_thread *t;
	const struct table *stack;
	int y = 2;

	keep_choice(s, all, live->n_threads);
	t = live->n_threads ? all[s->chosen] : NULL;
	free(all);
	if (!t)
		return;
	put_line(0, A_REVERSE, head_text(s, p));
	y = put_words(y, 2, A_BOLD, live_thread_name(p->words, t));
	y = put_fact(y, p, "process", text_process(&p->report->arena, t->process->trace));
	y = put_fact(y, p, "now", live_doing_text(p->words, t));
	y = put_fact(y, p, "system", live_state_text(p->words, t));
	if (t->holder || t->doing == LIVE_GPU)
		y = put_fact(y, p, "chain", live_chain_text(p->words, t));
	y = put_fact(y, p, "waiting",
		     t->waiters ? text_count(&p->report->arena, t->waiters, "thread waits for it")
				: NULL);
	stack = live_last_stack(p->report, p->words, t);
	if (!stack)
		return;
	y = put_words(y + 1, 2, COLOR_PAIR(PAIR_TITLE), stack->intro);
	for (size_t i = s->top; i < stack->n_rows && y < LINES - 1; i++) {
		const char *frame = table_text(stack, i, &stack->kind->columns[0]);

		if (frame)
			put_line(y++, A_NORMAL, report_text(p->report, "  %s", frame));
	}
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"s          sort threads: by wait, by number, by calls",
		"space, p   stop at this moment, go on",
		"up, down   choose a thread (j, k; page up, page down; home)",
		"enter      all that is known of the thread, and back",
		"q, escape  back; q: quit",
		"",
		"for: how long the thread has been in its call, or waits for what it waits for.",
		"Red: in a deadlock. Yellow: waits for a lock. `cudaspy snapshot` has it in words.",
	};

	put_line(0, A_REVERSE, "cudaspy top: keys");
	for (int i = 0; i < (int)ARRAY_SIZE(lines); i++)
		put_line(2 + i, A_NORMAL, lines[i]);
}

static void draw_all(struct screen *s, const struct screen_picture *p)
{
	int y = 1;

	if (!p) {
		put_line(0, A_REVERSE, "cudaspy top");
		put_line(2, A_NORMAL,
			 "No recorded program is running. (`cudaspy run -- app` records one.)");
		return;
	}
	put_line(0, A_REVERSE, head_text(s, p));
	y = draw_verdicts(y, p);
	if (LINES >= 16) {
		y = draw_gpus(y, p);
		y = draw_locks(y, p);
	}
	if (LINES >= 22)
		y = draw_costs(y, p);
	draw_threads(y, s, p);
}

void screen_draw(struct screen *s, const struct screen_picture *picture)
{
	erase();
	if (LINES < LEAST_LINES || COLS < LEAST_COLUMNS) {
		put_line(0, A_NORMAL, "too small: 40 x 8 at least");
		refresh();
		return;
	}
	if (s->help)
		draw_help();
	else if (s->detail && picture)
		draw_detail(s, picture);
	else
		draw_all(s, picture);
	put_line(LINES - 1, A_REVERSE,
		 s->detail || s->help
			 ? "q back  space stop"
			 : "q quit  s sort  space stop  up/down choose  enter show  ? help");
	refresh();
}
