/* links: shim/record/truncation.c shim/record/board.c shim/process/folder.c shim/process/ranks.c shim/lib/disk.c shim/state/subsystem.c */
/*
 * tests/unit/test_truncation.c: the board's file and those of streams are truncated while they are mapped: what is touched
 * then is memory, with what is known of it, and goes back into the file; and a SIGBUS that is the program's is the program's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/elf_object.h"
#include "lib/signal_guard.h"
#include "process/folder.h"
#include "process/options.h"
#include "process/signal_mask.h"
#include "record/board.h"
#include "record/truncation.h"
#include "scratch.h"
#include "state/subsystem.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define SLOTS 4

/* ---- the rest of the shim ---- */

struct spy_thread *spy_threads;
_Atomic bool spy_truncation_watched;
__thread unsigned int spy_self_deferring;
static struct spy_thread threads[SLOTS];
static char *dir;
static bool blocks; /* the program blocks SIGBUS, as it thinks */

gid_t spy_options_group(void)
{
	return SPY_NO_GROUP;
}

uint64_t spy_options_floor_bytes(uint64_t file_system)
{
	(void)file_system;
	return 0;
}

void *spy_next_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

bool spy_signal_mask_clean(int number, const struct sigaction *action, sigset_t *mask)
{
	(void)number;
	(void)action;
	(void)mask;
	return false;
}

void spy_signal_mask_mark(sigset_t *mask)
{
	(void)mask;
}

bool spy_signal_mask_is_marked(const sigset_t *mask)
{
	(void)mask;
	return blocks;
}

int spy_signal_mask_set(int how, const sigset_t *set, sigset_t *old)
{
	return pthread_sigmask(how, set, old);
}

static void fills(struct spy_board *of)
{
	of->range_names = 4711;
}

static const struct spy_subsystem subsystems[] = {
	{.name = "none"}, {.name = "one", .fill_board = fills}, {0}};

/* ---- a recording ---- */

static char path[SPY_PATH_MAX + 64];

static const char *file_of(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", session.directory, name);
	return path;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(threads, 0, sizeof(threads));
	spy_threads = threads;
	spy_subsystems = subsystems;
	dir = scratch_make();
	session.part = 1;
	session.pid = 77;
	session.slots = SLOTS;
	session.frequency = 1234;
	assert_int_equal(spy_folder_create(session.directory, sizeof(session.directory), dir, 7),
			 0);
	assert_int_equal(spy_board_create(&session.board), 0);
	spy_board_fill(session.board);
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		threads[slot].slot = slot;
		threads[slot].page = spy_board_page(session.board, slot);
		threads[slot].page->tid = session.slot_tids[slot] = 100 + slot;
		threads[slot].page->calls = 50 * slot;
		threads[slot].file.packet_calls = 40 * slot;
		threads[slot].file.discarded = 3 * slot;
	}
	spy_truncation_watch();
	return 0;
}

static int end(void **state)
{
	(void)state;
	munmap(session.board, (size_t)(1 + SPY_BOARD_SLOTS) * SPY_BOARD_PAGE);
	spy_truncation_forked();
	spy_folder_forget();
	scratch_remove(dir);
	return 0;
}

static void expect_board(const struct spy_board *of)
{
	assert_int_equal(of->magic, SPY_BOARD_MAGIC);
	assert_int_equal(of->version, SPY_TRACE_VERSION);
	assert_int_equal(of->pid, 77);
	assert_int_equal(of->frequency, 1234);
	assert_int_equal(of->slots, SLOTS);
	assert_int_equal(of->ended, 0);
	assert_int_equal(of->range_names, 4711);
}

static off_t size_of(const char *name)
{
	struct stat status;

	return stat(file_of(name), &status) == 0 ? status.st_size : -1;
}

/* ---- the board ---- */

static void test_board(void **state)
{
	uint32_t beyond = SPY_BOARD_SLOTS;
	char *base = (char *)session.board;

	(void)state;
	expect_board(session.board);
	assert_int_equal(size_of(".board"), (1 + SLOTS) * SPY_BOARD_PAGE);
	for (uint32_t slot = 1; slot < SLOTS; slot++)
		assert_ptr_equal(threads[slot].page, base + (1 + slot) * SPY_BOARD_PAGE);
	assert_true(spy_board_backs(session.board, base));
	assert_true(
		spy_board_backs(session.board, base + (1 + (size_t)beyond) * SPY_BOARD_PAGE - 1));
	assert_false(spy_board_backs(session.board, base + (1 + (size_t)beyond) * SPY_BOARD_PAGE));
	assert_false(spy_board_backs(session.board, base - 1));
	/* The file is gone: memory of this process alone. */
	unlink(file_of(".board"));
	assert_false(spy_board_backs(session.board, spy_board_page(session.board, 1)));
}

/* What a part that is finished has of it. */
static void test_board_of_a_part(void **state)
{
	struct spy_board last;
	int fd;

	(void)state;
	unlink(file_of(".board"));
	session.board->lost = 9;
	session.board->request = 5;
	session.board->answered = 4;
	spy_board_finish(1, 6);
	assert_int_equal(size_of(".board"), SPY_BOARD_PAGE);
	fd = open(file_of(".board"), O_RDONLY);
	assert_int_equal(read(fd, &last, sizeof(last)), sizeof(last));
	close(fd);
	assert_int_equal(last.magic, SPY_BOARD_MAGIC);
	assert_int_equal(last.lost, 6);
	assert_int_equal(last.slots, 1);
	assert_int_equal(last.ended, 1);
	assert_int_equal(last.request, 4);
	assert_int_equal(last.range_names, 4711);
	assert_int_equal(session.board->lost, 9);
}

static void test_truncated_board(void **state)
{
	struct spy_board copy;
	int fd;

	(void)state;
	assert_int_equal(truncate(file_of(".board"), 0), 0);
	errno = 4711;
	threads[2].page->depth = 1; /* a fault, within a call of the program's */
	assert_int_equal(errno, 4711);
	assert_true(session.damaged);
	assert_int_equal(threads[2].page->tid, 102);
	assert_int_equal(threads[2].page->calls, 80);
	assert_int_equal(threads[2].page->lost, 6);
	session.damaged = false;
	session.board->windows = 3;
	expect_board(session.board);
	assert_true(session.damaged);
	threads[1].page->calls++;
	assert_int_equal(threads[1].page->calls, 41);
	/* Memory, which the file does not have. */
	assert_int_equal(size_of(".board"), 0);
	/* Its own page, of a thread; all of them, at the end. */
	spy_truncation_repair(&threads[2]);
	assert_int_equal(size_of(".board"), 4 * SPY_BOARD_PAGE);
	spy_truncation_repair(NULL);
	fd = open(file_of(".board"), O_RDWR);
	assert_int_equal(read(fd, &copy, sizeof(copy)), sizeof(copy));
	expect_board(&copy);
	assert_int_equal(copy.windows, 3);
	/* And both are the same again. */
	session.board->windows = 8;
	threads[1].page->calls = 99;
	assert_int_equal(pread(fd, &copy, sizeof(copy), 0), sizeof(copy));
	assert_int_equal(copy.windows, 8);
	{
		struct spy_slot_page page_copy;

		assert_int_equal(pread(fd, &page_copy, sizeof(page_copy), 2 * SPY_BOARD_PAGE),
				 sizeof(page_copy));
		assert_int_equal(page_copy.calls, 99);
		assert_int_equal(page_copy.tid, 101);
	}
	close(fd);
	/* A second time. */
	assert_int_equal(truncate(file_of(".board"), 0), 0);
	assert_int_equal(threads[1].page->calls, 40);
	/* The file is gone, or another one: it stays memory. */
	unlink(file_of(".board"));
	spy_truncation_repair(NULL);
	assert_int_equal(size_of(".board"), -1);
	assert_int_equal(threads[1].page->calls, 40);
}

/* Truncated and grown again meanwhile: all zeros, and no fault. */
static void test_wiped_board(void **state)
{
	int fd = open(file_of(".board"), O_RDWR);
	static const char zeros[SPY_BOARD_PAGE];

	(void)state;
	spy_truncation_repair(NULL);
	assert_false(session.damaged);
	assert_int_equal(threads[1].page->calls, 50);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 2 * SPY_BOARD_PAGE), sizeof(zeros));
	spy_truncation_repair(&threads[2]); /* another one's */
	assert_false(session.damaged);
	spy_truncation_repair(&threads[1]);
	assert_true(session.damaged);
	assert_int_equal(threads[1].page->calls, 40);
	assert_int_equal(threads[1].page->tid, 101);
	/* As many calls as its packets had at least are no damage. */
	session.damaged = false;
	spy_truncation_repair(&threads[1]);
	assert_false(session.damaged);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	spy_truncation_repair(NULL);
	assert_true(session.damaged);
	expect_board(session.board);
	/* A page that is memory of this process alone is never wiped. */
	session.damaged = false;
	threads[1].page = &page;
	page.calls = 0;
	spy_truncation_repair(NULL);
	assert_false(session.damaged);
	assert_int_equal(page.calls, 0);
	threads[1].page = NULL; /* a slot without one */
	spy_truncation_repair(NULL);
	close(fd);
}

/* ---- tails ---- */

static void map_tail(struct spy_thread *of, const char *name)
{
	int fd = open(file_of(name), O_RDWR | O_CREAT, 0600);

	assert_int_equal(ftruncate(fd, SPY_PACKET_BYTES), 0);
	of->packet = of->file.packet =
		mmap(NULL, SPY_PACKET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	of->head = (uint8_t *)of->packet + 500;
	of->page = of->page ?: &page;
	spy_thread_use_room(of, (uint8_t *)of->packet + 20000);
	close(fd);
}

static void expect_mended(struct spy_thread *of, bool mended)
{
	assert_int_equal(of->file.truncated, mended);
	assert_ptr_equal(of->full_at, mended ? of->head : (uint8_t *)of->packet + 20000);
}

/* The calling thread's own; the session's; and one that is no thread's. */
static void test_tails(void **state)
{
	struct spy_thread *of[] = {&threads[1], &threads[0], &threads[2]};

	(void)state;
	for (int i = 0; i < 3; i++) {
		map_tail(of[i], "tail");
		spy_self = &threads[1];
		session.taken[SPY_STREAM_GPU] = &threads[2];
		assert_int_equal(truncate(file_of("tail"), 0), 0);
		((volatile uint8_t *)of[i]->packet)[SPY_PACKET_BYTES - 1] = 7;
		expect_mended(of[i], true);
		assert_int_equal(((uint8_t *)of[i]->packet)[SPY_PACKET_BYTES - 1], 7);
		assert_int_equal(((uint8_t *)of[i]->packet)[0], 0);
		for (int k = i + 1; k < 3; k++)
			assert_false(of[k]->file.truncated);
		munmap(of[i]->packet, SPY_PACKET_BYTES);
		of[i]->file.packet = of[i]->packet = NULL;
	}
	/* A packet that is full stays so. */
	map_tail(&threads[1], "full");
	threads[1].head = (uint8_t *)threads[1].packet + 30000;
	assert_int_equal(truncate(file_of("full"), 0), 0);
	((volatile uint8_t *)threads[1].packet)[0] = 7;
	assert_true(threads[1].file.truncated);
	assert_ptr_equal(threads[1].full_at, (uint8_t *)threads[1].packet + 20000);
	munmap(threads[1].packet, SPY_PACKET_BYTES);
	threads[1].file.packet = NULL;
}

/* ---- the program's own ---- */

static volatile int handled, fault_again;
static sigset_t mask_inside;
static sigjmp_buf back;

static void on_signal(int number)
{
	assert_int_equal(number, SIGBUS);
	handled++;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_inside);
	if (fault_again)
		siglongjmp(back, 1);
}

/* A file of the program's own, that ends before what it touches. */
static volatile char *truncated_file(void)
{
	int fd = open(file_of("own"), O_RDWR | O_CREAT, 0600);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	return map;
}

static void test_own_handler(void **state)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, old;
	volatile char *file = truncated_file();

	(void)state;
	sigaddset(&action.sa_mask, SIGUSR2);
	assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, on_signal); /* ours is not to be seen */
	handled = 0;
	fault_again = 0;
	raise(SIGBUS);
	assert_int_equal(handled, 1);
	assert_true(sigismember(&mask_inside, SIGUSR2) && sigismember(&mask_inside, SIGBUS));
	assert_false(sigismember(&mask_inside, SIGUSR1));
	sigaction(SIGBUS, NULL, &old);
	assert_ptr_equal(old.sa_handler, SIG_DFL); /* once, as it wanted */
	/* Again and again; without its own signal in the mask. */
	action.sa_flags = SA_NODEFER;
	sigaction(SIGBUS, &action, &old);
	assert_ptr_equal(old.sa_handler, SIG_DFL);
	for (int i = 0; i < 2; i++)
		raise(SIGBUS);
	assert_int_equal(handled, 3);
	assert_false(sigismember(&mask_inside, SIGBUS));
	/* A fault of its own. */
	fault_again = 1;
	if (!sigsetjmp(back, 1)) {
		file[0] = 1;
		assert_true(false);
	}
	assert_int_equal(handled, 4);
	/* Ours is there all the same, whatever is set. */
	assert_int_equal(truncate(file_of(".board"), 0), 0);
	assert_int_equal(threads[1].page->calls, 40);
	assert_int_equal(handled, 4);
	signal(SIGBUS, SIG_DFL);
	munmap((void *)file, 4096);
}

/* Of the handler that is there really. */
static unsigned long kernels_flags(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = {0};

	assert_int_equal(syscall(SYS_rt_sigaction, SIGBUS, NULL, &action, sizeof(action.mask)), 0);
	return action.flags;
}

/* The C library's other functions answer as ever. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_signal(void **state)
{
	struct sigaction old;

	(void)state;
	handled = fault_again = 0;
	signal(SIGBUS, SIG_DFL); /* cmocka has one */
	assert_ptr_equal(signal(SIGBUS, on_signal), SIG_DFL);
	assert_ptr_equal(signal(SIGBUS, SIG_IGN), on_signal);
	raise(SIGBUS); /* one that was sent is ignored */
	assert_int_equal(handled, 0);
	assert_ptr_equal(signal(SIGBUS, on_signal), SIG_IGN);
	raise(SIGBUS);
	assert_int_equal(handled, 1);
	siginterrupt(SIGBUS, 1);
	sigaction(SIGBUS, NULL, &old);
	assert_ptr_equal(old.sa_handler, on_signal);
	assert_false(old.sa_flags & SA_RESTART);
	siginterrupt(SIGBUS, 0);
	sigaction(SIGBUS, NULL, &old);
	assert_true(old.sa_flags & SA_RESTART);
	/* Ours behaves as theirs does: on the same stack, and calls are restarted or not. */
	for (int i = 0; i < 4; i++) {
		struct sigaction own = {.sa_handler = on_signal,
					.sa_flags = (i & 1 ? SA_ONSTACK : 0) |
						    (i & 2 ? SA_RESTART : 0) | SA_NODEFER};

		sigaction(SIGBUS, &own, NULL);
		assert_int_equal(kernels_flags() &
					 (SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_SIGINFO),
				 (own.sa_flags & ~SA_NODEFER) | SA_SIGINFO);
		own.sa_handler =
			i & 1 ? SIG_DFL : SIG_IGN; /* which has no stack and interrupts nothing */
		sigaction(SIGBUS, &own, NULL);
		assert_int_equal(kernels_flags() & (SA_ONSTACK | SA_RESTART),
				 SA_ONSTACK | SA_RESTART);
	}
	signal(SIGBUS, on_signal);
	assert_int_equal(truncate(file_of(".board"), 0), 0);
	assert_int_equal(threads[1].page->calls, 40);
	assert_int_equal(handled, 1);
	assert_ptr_equal(signal(SIGUSR1, SIG_IGN), SIG_DFL); /* another signal is none of ours */
	assert_ptr_equal(signal(SIGUSR1, SIG_DFL), SIG_IGN);
	signal(SIGBUS, SIG_DFL);
}

/* A thread that blocks it, or is at work here, gets one that was sent later. */
static void test_deferred(void **state)
{
	sigset_t bus, before;

	(void)state;
	handled = fault_again = 0;
	signal(SIGBUS, on_signal);
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	for (int i = 0; i < 2; i++) {
		blocks = i == 0;
		spy_self_deferring = i == 1;
		raise(SIGBUS);
		assert_int_equal(handled, i);
		pthread_sigmask(SIG_SETMASK, NULL, &before);
		assert_true(sigismember(&before, SIGBUS));
		sigpending(&before);
		assert_true(sigismember(&before, SIGBUS));
		blocks = false;
		spy_self_deferring = 0;
		pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
		assert_int_equal(handled, i + 1);
	}
	signal(SIGBUS, SIG_DFL);
}

/* Without a handler the process ends by it, as it would without us. */
static void test_ends_the_process(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t child = fork();

		if (!child) {
			volatile char *file = truncated_file();

			signal(SIGBUS, i == 2 ? SIG_IGN : i == 3 ? on_signal : SIG_DFL);
			blocks = i == 3; /* a fault that is blocked has no handler */
			if (i == 0)
				raise(SIGBUS);
			else
				file[0] = 1;
			_exit(9);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGBUS);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_board),       TEST(test_board_of_a_part), TEST(test_truncated_board),
		TEST(test_wiped_board), TEST(test_tails),           TEST(test_own_handler),
		TEST(test_signal),      TEST(test_deferred),        TEST(test_ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
