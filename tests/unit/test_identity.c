/* links: shim/record/identity.c */
/*
 * tests/unit/test_identity.c: what is given to another user when the process becomes one, in which order, and when that fails,
 * is done a second time, or by another process. The calls that change the user are made up.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
#include "lib/elf_object.h"
#include "no_guard.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim, and the system ---- */

struct spy_thread *spy_threads;
static struct spy_thread threads[4];
static char given[400]; /* what was given away, in order */
static char asked[100]; /* what the real call was asked for */
static int result;

int spy_folder_give(uint32_t part, const char *name, const struct spy_file_id *id, uid_t owner)
{
	size_t at = strlen(given);

	snprintf(given + at, sizeof(given) - at, "%u/%s#%u>%u ", part, name,
		 id ? (unsigned int)id->inode : 0, owner);
	return 0;
}

void spy_stream_tail_name(char *name, uint32_t slot)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "tail%u", slot);
}

void spy_stream_file_name(char *name, uint32_t slot, uint64_t number)
{
	snprintf(name, SPY_STREAM_NAME_BYTES, "full%u_%u", slot, (unsigned int)number);
}

/* The folder is the other one's already, unless it is the last of all. */
static int real_setuid(uid_t user)
{
	snprintf(asked, sizeof(asked), "setuid %d", (int)user);
	errno = result ? EPERM : 0;
	return result;
}

static int real_seteuid(uid_t user)
{
	snprintf(asked, sizeof(asked), "seteuid %d", (int)user);
	return result;
}

static int real_setreuid(uid_t user, uid_t next)
{
	snprintf(asked, sizeof(asked), "setreuid %d %d", (int)user, (int)next);
	return result;
}

static int real_setresuid(uid_t user, uid_t next, uid_t saved)
{
	snprintf(asked, sizeof(asked), "setresuid %d %d %d", (int)user, (int)next, (int)saved);
	return result;
}

void *spy_next_symbol(const char *name)
{
	return strcmp(name, "setuid") == 0      ? (void *)real_setuid
	       : strcmp(name, "seteuid") == 0   ? (void *)real_seteuid
	       : strcmp(name, "setreuid") == 0  ? (void *)real_setreuid
	       : strcmp(name, "setresuid") == 0 ? (void *)real_setresuid
						: NULL;
}

uid_t geteuid(void)
{
	return 40;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
	session.pid = getpid();
	session.part = 3;
	session.slots = 3; /* there is a fourth one, which is not of this session */
	session.board_id.inode = 99;
	memset(threads, 0, sizeof(threads));
	spy_threads = threads;
	for (uint32_t i = 0; i < 4; i++) {
		threads[i].slot = i;
		threads[i].file.part = 3;
		threads[i].file.tail.inode = 10 + i;
	}
	threads[2].file.part = 2; /* it has not come to the new part yet */
	threads[2].file.full.inode = 22;
	threads[2].file.file_number = 7;
	given[0] = asked[0] = '\0';
	result = 0;
	return 0;
}

#define ALL(owner) \
	"3/tail0#10>" #owner " 3/tail1#11>" #owner " 2/tail2#12>" #owner " 2/full2_7#22>" #owner \
	" 3/.board#99>" #owner " 3/#0>" #owner " "

static void expect(const char *what, const char *call)
{
	assert_string_equal(given, what);
	assert_string_equal(asked, call);
	given[0] = asked[0] = '\0';
}

static void test_each(void **state)
{
	assert_int_equal(setuid(41), 0);
	expect(ALL(41), "setuid 41");
	assert_true(session.given);
	assert_int_equal(seteuid(42), 0); /* not a second time */
	expect("", "seteuid 42");
	begin(state);
	assert_int_equal(seteuid(43), 0);
	expect(ALL(43), "seteuid 43");
	begin(state);
	assert_int_equal(setreuid(44, 45), 0);
	expect(ALL(45), "setreuid 44 45");
	begin(state);
	assert_int_equal(setresuid(46, 47, 48), 0);
	expect(ALL(47), "setresuid 46 47 48");
}

static void test_fails(void **state)
{
	(void)state;
	result = -1;
	assert_int_equal(setuid(41), -1);
	assert_int_equal(errno, EPERM);
	expect(ALL(41) ALL(40), "setuid 41");
	assert_false(session.given);
	assert_int_equal(setresuid(1, 42, 2), -1); /* so it can be tried again */
	expect(ALL(42) ALL(40), "setresuid 1 42 2");
	result = 0;
	assert_int_equal(setreuid(1, 42), 0);
	expect(ALL(42), "setreuid 1 42");
	/* A second change that fails gives nothing back, as it gave nothing. */
	result = -1;
	assert_int_equal(seteuid(43), -1);
	expect("", "seteuid 43");
	assert_true(session.given);
}

static void test_nothing_to_give(void **state)
{
	assert_int_equal(seteuid(40), 0); /* it is that one */
	expect("", "seteuid 40");
	assert_int_equal(setreuid(41, (uid_t)-1), 0); /* that stays as it is */
	expect("", "setreuid 41 -1");
	session.pid++; /* another process, in our memory */
	assert_int_equal(setuid(41), 0);
	expect("", "setuid 41");
	begin(state);
	session.state = SPY_SESSION_FAILED;
	result = -1;
	assert_int_equal(setuid(41), -1);
	expect("", "setuid 41");
	assert_false(session.given);
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each),
		TEST(test_fails),
		TEST(test_nothing_to_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
