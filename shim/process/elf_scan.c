/*
 * shim/process/elf_scan.c: walks over the loaded objects. Runs on any thread that makes a first call or a look-up; called by
 * hook/, describe/ and where the library is loaded.
 *
 * dl_iterate_phdr takes a lock of the loader's, which keeps objects from being unloaded meanwhile.
 * Other threads may hold it for any time, and in a forked child it may stay locked. So it is tried
 * first (try_loader): glibc's lock is found by its behaviour, and only then is dl_iterate_phdr
 * called, which gets it at once. If the lock is not to be had the list is read without it, through
 * the kernel (walk_list). What came with the program stays; of everything else a copy is read.
 */
#include <elf.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/signal_guard.h"
#include "process/elf_scan.h"
#include "lib/lock.h"
#include "lib/peek.h"

/* ---- the loader's lock ---------------------------------------------------------------------- */

#define FIRST_MOST 128

typedef int visit_object(const struct spy_object *object, void *data);

static struct {
	pthread_mutex_t *lock; /* the one that dl_iterate_phdr takes; NULL: not found */
	int (*try)(pthread_mutex_t *lock);
	int (*unlock)(pthread_mutex_t *lock);
	size_t first_objects; /* that came with the program, and stay as long as it does */
	struct spy_object
		first[FIRST_MOST]; /* those of them that have symbols, if they are no more */
	size_t first_count;
	bool lost; /* in a forked child: its holder does not exist here */
} loader;

/* One scan at a time, so that … */
static struct spy_lock scan_lock;

/* … whether a forked child has to free the loader's lock, because a scan had it. */
static uint32_t scanner; /* thread that is about to take it, has it, or gives it back; 0: none */

/* A recursive mutex that the calling thread has, as glibc makes them (bits/struct_mutex.h). */
static bool looks_mine(const pthread_mutex_t *mutex, int self)
{
	return mutex->__data.__lock && mutex->__data.__owner == self && mutex->__data.__count &&
	       mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

#define CANDIDATES 8

/* The mutexes in the loader's variables that behave like the thread's own inside a walk. */
struct guess {
	int self;
	size_t count;
	pthread_mutex_t *mutex[CANDIDATES];
	unsigned int times[CANDIDATES];
	size_t objects;
	bool seen_self;
};

static int guess_lock(const struct spy_object *object, void *data)
{
	const ElfW(Sym) *symbol = spy_object_variable(object, "_rtld_global");
	struct guess *guess = data;
	uintptr_t at, end;

	guess->objects = object->position + 1;
	guess->seen_self |= object->is_self;
	/* The dynamic linker comes last of what a program begins with: the shim was opened later, and what is there now may
	 * be closed. */
	if (symbol && !guess->seen_self)
		loader.first_count = FIRST_MOST;
	if (loader.first_count++ < FIRST_MOST)
		loader.first[loader.first_count - 1] = *object;
	if (!symbol || guess->count)
		return 0;
	at = object->base + symbol->st_value;
	end = at + symbol->st_size;
	for (; at + sizeof(pthread_mutex_t) <= end && guess->count < CANDIDATES; at += 8) {
		pthread_mutex_t *mutex = (pthread_mutex_t *)at;

		if (!looks_mine(mutex, guess->self))
			continue;
		guess->times[guess->count] = mutex->__data.__count;
		guess->mutex[guess->count++] = mutex;
	}
	return 0;
}

struct walk {
	visit_object *visit;
	void *data;
	size_t position;
};

static int walk_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *walk = data;
	struct spy_object object = {.path = info->dlpi_name ? info->dlpi_name : "",
				    .base = info->dlpi_addr,
				    .phdr = info->dlpi_phdr,
				    .phdr_count = info->dlpi_phnum,
				    .position = walk->position++};
	uintptr_t dynamic = spy_object_read_headers(&object);

	(void)size;
	if (!dynamic || !spy_object_read_dynamic((const ElfW(Dyn) *)dynamic, &object))
		return 0;
	return walk->visit(&object, walk->data);
}

/* The mutex that is taken once less when the walk is over is the one that a walk takes. */
void spy_elf_scan_init(void)
{
	struct guess guess = {.self = (int)spy_syscall(SYS_gettid)};
	struct walk walk = {.visit = guess_lock, .data = &guess};

	*(void **)&loader.try = spy_next_symbol("pthread_mutex_trylock");
	*(void **)&loader.unlock = spy_next_symbol("pthread_mutex_unlock");
	dl_iterate_phdr(walk_one, &walk);
	loader.first_objects = guess.objects;
	for (size_t i = 0; i < guess.count; i++) {
		bool still = looks_mine(guess.mutex[i], guess.self);

		if (!still || guess.mutex[i]->__data.__count + 1 == guess.times[i])
			loader.lock = loader.try && loader.unlock ? guess.mutex[i] : NULL;
	}
}

bool spy_loader_is_held_here(void)
{
	return loader.lock && looks_mine(loader.lock, (int)spy_syscall(SYS_gettid));
}

/*
 * What another thread had is never given back. If a scan had it the list is whole, and the lock is
 * made as it was: without the shim it would have been free. So it is where the owner is not known
 * yet, or no more.
 */
void spy_elf_scan_forked(void)
{
	pthread_mutex_t *lock = loader.lock;
	uint32_t owner = lock ? (uint32_t)lock->__data.__owner : 0;

	spy_lock_forget(&scan_lock);
	loader.lost = lock && lock->__data.__lock;
	if (loader.lost && (!owner || owner == scanner)) {
		lock->__data.__count = lock->__data.__nusers = 0;
		lock->__data.__owner = lock->__data.__lock = 0;
		loader.lost = false;
	}
	scanner = 0;
}

#define LOADER_TRIES 100

/*
 * Takes the scan_lock and the loader's lock, if they are to be had soon. The signals are masked. A
 * thread that has the latter already may have been interrupted by a signal in the middle of a
 * dlclose: its list has what is mapped no more.
 */
static bool try_loader(void)
{
	int self = (int)spy_syscall(SYS_gettid);

	if (!loader.lock || loader.lost || looks_mine(loader.lock, self) || !spy_lock(&scan_lock))
		return false;
	__atomic_store_n(&scanner, (uint32_t)self, __ATOMIC_SEQ_CST);
	for (int i = 0; i < LOADER_TRIES; i++) {
		if (loader.try(loader.lock) == 0)
			return true;
		spy_syscall(SYS_sched_yield);
	}
	__atomic_store_n(&scanner, 0, __ATOMIC_SEQ_CST);
	spy_unlock(&scan_lock);
	return false;
}

static void leave_loader(void)
{
	loader.unlock(loader.lock);
	__atomic_store_n(&scanner, 0, __ATOMIC_SEQ_CST);
	spy_unlock(&scan_lock);
}

/* ---- the loader's list, read without its lock ----------------------------------------------- */

#define OBJECTS_MOST 8192
#define WALKS 5 /* until the list held still */

/* The object that is looked at. */
struct copy {
	char path[4096];
	union {
		ElfW(Ehdr) header;
		char bytes[4096];
	} start;
	ElfW(Dyn) dynamic[1024];
	char image[1 << 20]; /* its first addresses, where the tables are */
};

/* What can be read of one piece, and the end of a text or a table behind it. */
static size_t copy_some(void *to, uintptr_t from, size_t bytes, size_t room)
{
	size_t most = room - sizeof(ElfW(Dyn));
	size_t got = spy_peek_some(getpid(), to, from, bytes < most ? bytes : most);

	__builtin_memset((char *)to + got, 0, sizeof(ElfW(Dyn)));
	return got;
}

/* How far the object's first pages reach that lie without a gap, of which its file has
 * something. */
static size_t first_bytes(const struct spy_object *object)
{
	size_t end = 0;

	for (size_t i = 0; i < object->phdr_count; i++) {
		const ElfW(Phdr) *header = &object->phdr[i];

		if (header->p_type == PT_LOAD && header->p_vaddr <= ((end + 4095) & ~4095ul))
			end = header->p_vaddr + header->p_filesz;
	}
	return end;
}

/* Nothing is believed but what was copied; where the file's header is not at the first address,
 * nothing is. */
static bool copy_object(const struct link_map *map, struct copy *copy, struct spy_object *object)
{
	const ElfW(Ehdr) *header = &copy->start.header;
	uintptr_t dynamic;
	size_t got;

	copy_some(copy->path, (uintptr_t)map->l_name, sizeof(copy->path), sizeof(copy->path));
	got = copy_some(&copy->start, map->l_addr, sizeof(copy->start), sizeof(copy->start));
	if (got < sizeof(*header) ||
	    *(const uint32_t *)header->e_ident != *(const uint32_t *)ELFMAG ||
	    header->e_phentsize != sizeof(ElfW(Phdr)) ||
	    header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > got)
		return false;
	object->path = copy->path;
	object->base = map->l_addr;
	object->phdr = (const ElfW(Phdr) *)(copy->start.bytes + header->e_phoff);
	object->phdr_count = header->e_phnum;
	dynamic = spy_object_read_headers(object);
	object->copy = copy->image;
	object->copy_bytes =
		copy_some(copy->image, object->base, first_bytes(object), sizeof(copy->image));
	copy_some(copy->dynamic, dynamic, sizeof(copy->dynamic), sizeof(copy->dynamic));
	return dynamic && spy_object_read_dynamic(copy->dynamic, object);
}

/* What came with the program; the executable's header is where the kernel says. */
static bool read_first(const struct link_map *map, size_t position, struct spy_object *object)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;

	object->path = map->l_name ? map->l_name : "";
	object->base = map->l_addr;
	if (position) {
		object->phdr = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
		object->phdr_count = header->e_phnum;
	} else {
		object->phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR);
		object->phdr_count = getauxval(AT_PHNUM);
	}
	return spy_object_read_headers(object) && spy_object_read_dynamic(map->l_ld, object);
}

/* Once through the list. False: it changed on the way. */
static bool walk_once(struct walk *walk, struct copy *copy, int *result)
{
	struct link_map *at = _r_debug.r_map, *before = NULL;

	for (walk->position = 0; at && walk->position < OBJECTS_MOST; walk->position++) {
		struct spy_object object = {.position = walk->position};
		struct link_map map;
		bool first = walk->position < loader.first_objects, read = first;

		if (first)
			map = *at;
		else
			read = spy_peek(getpid(), &map, (uintptr_t)at, sizeof(map));
		if (!read || map.l_prev != before)
			return false;
		read = first ? read_first(&map, walk->position, &object)
			     : copy_object(&map, copy, &object);
		if (read && (*result = walk->visit(&object, walk->data)))
			return true;
		before = at;
		at = map.l_next;
	}
	return true;
}

/* A visitor may see objects twice, if the list changes meanwhile: it sees the same again, or one
 * more. */
static int walk_list(struct walk *walk)
{
	struct copy *copy = mmap(NULL, sizeof(*copy), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int result = 0;

	if (copy == MAP_FAILED)
		return 0;
	for (int i = 0; i < WALKS && !walk_once(walk, copy, &result); i++)
		;
	munmap(copy, sizeof(*copy));
	return result;
}

/* ---- scans ---------------------------------------------------------------------------------- */

/* A sandbox may forbid it. Then there is nothing but to wait. */
static bool can_peek(void)
{
	int word = 1, copied = 0;

	return spy_peek(getpid(), &copied, (uintptr_t)&word, sizeof(word));
}

static int scan(visit_object *visit, void *data, bool try)
{
	struct walk walk = {.visit = visit, .data = data};
	int result = 0;
	SPY_SIGNAL_GUARD;

	if (try_loader()) {
		result = dl_iterate_phdr(walk_one, &walk);
		leave_loader();
	} else if (!try && (loader.lost || can_peek())) {
		result = walk_list(&walk);
	} else if (!try) {
		result = dl_iterate_phdr(walk_one, &walk);
	}
	return result;
}

int spy_each_object(visit_object *visit, void *data)
{
	return scan(visit, data, false);
}

int spy_try_each_object(visit_object *visit, void *data)
{
	return scan(visit, data, true);
}

bool spy_each_first_object(visit_object *visit, void *data)
{
	if (loader.first_count > FIRST_MOST)
		return false;
	for (size_t i = 0; i < loader.first_count && !visit(&loader.first[i], data); i++)
		;
	return true;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *data)
{
	struct spy_object_counters *counters = data;

	(void)size;
	counters->added = info->dlpi_adds;
	counters->removed = info->dlpi_subs;
	return 1;
}

bool spy_count_objects(struct spy_object_counters *counters)
{
	SPY_SIGNAL_GUARD;

	if (!try_loader())
		return false;
	dl_iterate_phdr(read_counters, counters);
	leave_loader();
	return true;
}
