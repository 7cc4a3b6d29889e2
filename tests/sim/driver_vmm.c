/*
 * tests/sim/driver_vmm.c: virtual memory management (cuMemCreate, cuMemMap...), IPC handles within the
 * process, stream memory operations, attributes that are only stored, the profiler's switch. On the
 * calling thread. Physical memory is a memfd, so two mappings of one handle show the same bytes.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };

struct physical {
	struct sim_alloc_prop prop;
	size_t bytes;
	int fd;
	atomic_int refs; /* the handle and each mapping */
};

struct mapping {
	struct mapping *next;
	sim_ptr at;
	size_t bytes;
	struct physical *physical;
	unsigned access; /* bit per device */
};

static struct mapping *mappings;
static struct sim_spin spin;

static void physical_put(struct physical *p)
{
	if (atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	atomic_fetch_sub(&sim_devices[p->prop.location.id].used_bytes, p->bytes);
	close(p->fd);
	free(p);
}

static int create(struct physical **out, size_t bytes, const struct sim_alloc_prop *prop)
{
	struct physical *p;
	int dev = prop ? prop->location.id : -1;

	if (!out || !bytes || bytes % GRANULARITY || !sim_dev_ok(dev))
		return SIM_INVALID_VALUE;
	if (atomic_fetch_add(&sim_devices[dev].used_bytes, bytes) + bytes >
	    sim_script.memory_bytes) {
		atomic_fetch_sub(&sim_devices[dev].used_bytes, bytes);
		return SIM_OUT_OF_MEMORY;
	}
	sim_host_work(FN_cuMemCreate, 7000);
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->prop = *prop;
	p->bytes = bytes;
	atomic_init(&p->refs, 1);
	p->fd = memfd_create("spysim", MFD_CLOEXEC);
	if (p->fd < 0 || ftruncate(p->fd, (off_t)bytes)) {
		physical_put(p);
		return SIM_OUT_OF_MEMORY;
	}
	*out = p;
	return SIM_OK;
}
EXPORT(cuMemCreate,
       (struct physical * *out, size_t bytes, const struct sim_alloc_prop *prop,
	unsigned long long flags),
       create(out, bytes, prop))
EXPORT(cuMemRelease, (struct physical * p), p ? (physical_put(p), SIM_OK) : SIM_INVALID_VALUE)

static int granularity(size_t *out)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = GRANULARITY;
	return SIM_OK;
}
EXPORT(cuMemGetAllocationGranularity, (size_t * out, const struct sim_alloc_prop *prop, int option),
       granularity(out))
EXPORT(cuMemGetAllocationPropertiesFromHandle, (struct sim_alloc_prop * out, struct physical *p),
       out &&p ? (*out = p->prop, SIM_OK) : SIM_INVALID_VALUE)

static int reserve(sim_ptr *out, size_t bytes)
{
	struct sim_block *block;

	if (!out || !bytes || bytes % GRANULARITY)
		return SIM_INVALID_VALUE;
	*out = sim_reserve_va(bytes, &block);
	return *out ? SIM_OK : SIM_OUT_OF_MEMORY;
}
EXPORT(cuMemAddressReserve,
       (sim_ptr * out, size_t bytes, size_t align, sim_ptr hint, unsigned long long flags),
       reserve(out, bytes))

static int unreserve(sim_ptr at)
{
	struct sim_block *block = sim_block_of(at);

	if (!block || !block->vmm || block->base != at)
		return SIM_INVALID_VALUE;
	sim_block_free(block);
	return SIM_OK;
}
EXPORT(cuMemAddressFree, (sim_ptr at, size_t bytes), unreserve(at))

static int map(sim_ptr at, size_t bytes, size_t offset, struct physical *p)
{
	struct sim_block *block = sim_block_of(at);
	struct mapping *m;

	if (!p || !block || !block->vmm || offset + bytes > p->bytes ||
	    at + bytes > block->base + block->granule_bytes)
		return SIM_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 p->fd, (off_t)offset) == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	atomic_fetch_add(&p->refs, 1);
	*m = (struct mapping){NULL, at, bytes, p, 0};
	sim_spin_lock(&spin);
	m->next = mappings;
	mappings = m;
	sim_spin_unlock(&spin);
	return SIM_OK;
}
EXPORT(cuMemMap,
       (sim_ptr at, size_t bytes, size_t offset, struct physical *p, unsigned long long flags),
       map(at, bytes, offset, p))

static int unmap(sim_ptr at, size_t bytes)
{
	struct mapping **p, *gone = NULL, *m;

	sim_spin_lock(&spin);
	for (p = &mappings; (m = *p);)
		if (m->at >= at && m->at + m->bytes <= at + bytes) {
			*p = m->next;
			m->next = gone;
			gone = m;
		} else {
			p = &m->next;
		}
	sim_spin_unlock(&spin);
	if (!gone)
		return SIM_INVALID_VALUE;
	mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	while ((m = gone)) {
		gone = m->next;
		physical_put(m->physical);
		free(m);
	}
	return SIM_OK;
}
EXPORT(cuMemUnmap, (sim_ptr at, size_t bytes), unmap(at, bytes))

/* ---- who reaches what is mapped: at first nobody ---- */
static struct mapping *mapping_at_locked(sim_ptr at)
{
	struct mapping *m = mappings;

	while (m && (at < m->at || at >= m->at + m->bytes))
		m = m->next;
	return m;
}

int sim_mapped_on(uint64_t address, unsigned *access)
{
	struct mapping *m;
	int dev = -1;

	sim_spin_lock(&spin);
	m = mapping_at_locked(address);
	if (m)
		dev = m->physical->prop.location.id;
	if (access)
		*access = m ? m->access : 0;
	sim_spin_unlock(&spin);
	return dev;
}

static int set_access(sim_ptr at, size_t bytes, const struct sim_access_desc *d, size_t cnt)
{
	if (!sim_block_of(at) || !d)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < cnt; i++)
		if (!sim_dev_ok(d[i].location.id))
			return SIM_INVALID_DEVICE;
	sim_host_work(FN_cuMemSetAccess, 30000);
	sim_spin_lock(&spin);
	for (struct mapping *m = mappings; m; m = m->next)
		for (size_t i = 0; m->at >= at && m->at < at + bytes && i < cnt; i++) {
			if (d[i].flags)
				m->access |= 1u << d[i].location.id;
			else
				m->access &= ~(1u << d[i].location.id);
		}
	sim_spin_unlock(&spin);
	return SIM_OK;
}
EXPORT(cuMemSetAccess, (sim_ptr at, size_t bytes, const struct sim_access_desc *d, size_t cnt),
       set_access(at, bytes, d, cnt))

static int get_access(unsigned long long *out, const struct sim_location *where, sim_ptr at)
{
	unsigned access;

	if (!out || !where || sim_mapped_on(at, &access) < 0)
		return SIM_INVALID_VALUE;
	*out = access >> where->id & 1 ? 3 : 0;
	return SIM_OK;
}
EXPORT(cuMemGetAccess, (unsigned long long *out, const struct sim_location *where, sim_ptr at),
       get_access(out, where, at))

static int retain(struct physical **out, sim_ptr at)
{
	struct mapping *m;
	int rc = SIM_INVALID_VALUE;

	sim_spin_lock(&spin);
	m = mapping_at_locked(at);
	if (m) {
		*out = m->physical;
		atomic_fetch_add(&m->physical->refs, 1);
		rc = SIM_OK;
	}
	sim_spin_unlock(&spin);
	return rc;
}
EXPORT(cuMemRetainAllocationHandle, (struct physical * *out, void *at),
       retain(out, (sim_ptr)(uintptr_t)at))

/* ---- IPC: a handle is the address, good within this process only ---- */
struct handle {
	uint64_t pid, value, reserved[6];
};

static int make_handle(struct handle *out, uint64_t value, bool ok)
{
	if (!out || !ok)
		return SIM_INVALID_VALUE;
	*out = (struct handle){.pid = (uint64_t)getpid(), .value = value};
	return SIM_OK;
}
EXPORT(cuIpcGetMemHandle, (struct handle * out, sim_ptr p), make_handle(out, p, sim_block_of(p)))
EXPORT(cuIpcGetEventHandle, (struct handle * out, struct sim_event *e),
       make_handle(out, (uint64_t)(uintptr_t)e, e && e->magic == EVENT_MAGIC))
EXPORT(cuIpcOpenMemHandle_v2, (sim_ptr * out, struct handle h, unsigned flags),
       h.pid == (uint64_t)getpid() ? SIM_INVALID_CONTEXT : SIM_NOT_SUPPORTED)
EXPORT(cuIpcCloseMemHandle, (sim_ptr p), SIM_INVALID_VALUE)

/* ---- memory operations of a stream: writes happen in its order ---- */
static int write_value(void *handle, bool per_thread, sim_ptr at, uint64_t value, bool wide)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	rc = sim_enqueue(stream, sim_set_op(at, 0, (unsigned)value, 4, 1, 1), NULL);
	if (!rc && wide)
		rc = sim_enqueue(stream, sim_set_op(at + 4, 0, (unsigned)(value >> 32), 4, 1, 1),
				 NULL);
	return rc;
}
EXPORT(cuStreamWriteValue32_v2, (void *h, sim_ptr at, unsigned v, unsigned flags),
       write_value(h, false, at, v, false))
EXPORT(cuStreamWriteValue32_v2_ptsz, (void *h, sim_ptr at, unsigned v, unsigned flags),
       write_value(h, true, at, v, false))
EXPORT(cuStreamWriteValue64_v2, (void *h, sim_ptr at, uint64_t v, unsigned flags),
       write_value(h, false, at, v, true))
EXPORT(cuStreamWriteValue64_v2_ptsz, (void *h, sim_ptr at, uint64_t v, unsigned flags),
       write_value(h, true, at, v, true))

/* ---- attributes that change nothing here ---- */
static int stream_attribute(void *handle, bool per_thread, void *value, bool set)
{
	int rc;

	sim_stream_of(handle, per_thread, &rc);
	if (!rc && value && !set)
		memset(value, 0, 64);
	return rc;
}
EXPORT(cuStreamGetAttribute, (void *h, int attr, void *v), stream_attribute(h, false, v, false))
EXPORT(cuStreamGetAttribute_ptsz, (void *h, int attr, void *v), stream_attribute(h, true, v, false))
EXPORT(cuStreamSetAttribute, (void *h, int attr, void *v), stream_attribute(h, false, v, true))
EXPORT(cuStreamSetAttribute_ptsz, (void *h, int attr, void *v), stream_attribute(h, true, v, true))
EXPORT(cuStreamCopyAttributes, (void *dst, void *src), stream_attribute(dst, false, NULL, true))
EXPORT(cuStreamCopyAttributes_ptsz, (void *dst, void *src), stream_attribute(dst, true, NULL, true))

static int range_attribute(void *out, size_t bytes, int attr, sim_ptr p)
{
	struct sim_block *block = sim_block_of(p);

	if (!out || !block || block->kind != MEM_MANAGED)
		return SIM_INVALID_VALUE;
	memset(out, 0, bytes);
	if (attr == 2 || attr == 4) /* preferred location, last prefetch: none */
		*(int *)out = -2;
	return SIM_OK;
}

static int range_attributes(void **out, size_t *bytes, int *attrs, size_t cnt, sim_ptr p)
{
	for (size_t i = 0; i < cnt; i++) {
		int rc = range_attribute(out[i], bytes[i], attrs[i], p);

		if (rc)
			return rc;
	}
	return SIM_OK;
}
EXPORT(cuMemRangeGetAttribute, (void *out, size_t bytes, int attr, sim_ptr p, size_t n),
       range_attribute(out, bytes, attr, p))
EXPORT(cuMemRangeGetAttributes,
       (void **out, size_t *bytes, int *attrs, size_t cnt, sim_ptr p, size_t n),
       range_attributes(out, bytes, attrs, cnt, p))
EXPORT(cuProfilerStart, (void), SIM_OK)
EXPORT(cuProfilerStop, (void), SIM_OK)
