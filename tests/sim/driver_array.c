/*
 * tests/sim/driver_array.c: arrays, mipmapped arrays, textures and surfaces, on the calling thread. An
 * array is plain rows of device memory; a texture object is a number with what it was made from.
 * Freeing an array waits for the device, as freeing memory does.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static unsigned format_bytes(int format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 4;
	}
	return 0;
}

static int make(struct sim_array **out, const struct sim_array3d_desc *d, struct sim_ctx *ctx)
{
	struct sim_array *array = calloc(1, sizeof(*array));
	int rc;

	if (!array)
		return SIM_OUT_OF_MEMORY;
	array->magic = ARRAY_MAGIC;
	array->desc = *d;
	array->dev = ctx->dev;
	array->element = format_bytes(d->format) * d->channels;
	array->pitch = array->element * d->width;
	array->slice = array->pitch * (d->height ? d->height : 1);
	array->bytes = array->slice * (d->depth ? d->depth : 1);
	rc = sim_block_new(&array->block, MEM_DEVICE, ctx->dev, array->bytes);
	if (rc) {
		free(array);
		return rc;
	}
	array->block->ctx = ctx;
	array->data = (unsigned char *)(uintptr_t)array->block->base;
	*out = array;
	return SIM_OK;
}

static bool sane(const struct sim_array3d_desc *d)
{
	return d && d->width && format_bytes(d->format) &&
	       (d->channels == 1 || d->channels == 2 || d->channels == 4);
}

static int create(struct sim_array **out, const struct sim_array3d_desc *d)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !out || !sane(d))
		return rc ? rc : SIM_INVALID_VALUE;
	held = sim_lock(HOLD_PROCESS, ctx->dev);
	sim_host_work(FN_cuArray3DCreate_v2, 30000);
	rc = make(out, d, ctx);
	sim_unlock(held, ctx->dev);
	return rc;
}
EXPORT(cuArray3DCreate_v2, (struct sim_array * *out, const struct sim_array3d_desc *d),
       create(out, d))

static int create_2d(struct sim_array **out, const struct sim_array_desc *d)
{
	struct sim_array3d_desc all;

	if (!d)
		return SIM_INVALID_VALUE;
	all = (struct sim_array3d_desc){d->width, d->height, 0, d->format, d->channels, 0};
	return create(out, &all);
}
EXPORT(cuArrayCreate_v2, (struct sim_array * *out, const struct sim_array_desc *d),
       create_2d(out, d))

static struct sim_array *check(void *handle)
{
	struct sim_array *array = handle;

	return array && array->magic == ARRAY_MAGIC ? array : NULL;
}

static void array_free(struct sim_array *array)
{
	for (unsigned i = 0; i < array->level_cnt; i++)
		array_free(array->levels[i]);
	free(array->levels);
	if (array->block)
		sim_block_free(array->block);
	array->magic = 0;
	free(array);
}

static int destroy(struct sim_array *array)
{
	unsigned held;
	int dev;

	if (!check(array))
		return SIM_INVALID_HANDLE;
	dev = array->dev;
	held = sim_lock_idle(dev);
	sim_host_work(FN_cuArrayDestroy, 20000);
	array_free(array);
	sim_unlock(held, dev);
	return SIM_OK;
}
EXPORT(cuArrayDestroy, (struct sim_array * a), destroy(a))
EXPORT(cuMipmappedArrayDestroy, (struct sim_array * a), destroy(a))

static int describe(struct sim_array3d_desc *out, struct sim_array *array)
{
	if (!check(array) || !out)
		return SIM_INVALID_HANDLE;
	*out = array->desc;
	return SIM_OK;
}
EXPORT(cuArray3DGetDescriptor_v2, (struct sim_array3d_desc * out, struct sim_array *a),
       describe(out, a))

static int describe_2d(struct sim_array_desc *out, struct sim_array *array)
{
	if (!check(array) || !out)
		return SIM_INVALID_HANDLE;
	*out = (struct sim_array_desc){array->desc.width, array->desc.height, array->desc.format,
				       array->desc.channels};
	return SIM_OK;
}
EXPORT(cuArrayGetDescriptor_v2, (struct sim_array_desc * out, struct sim_array *a),
       describe_2d(out, a))

static int create_mipmapped(struct sim_array **out, const struct sim_array3d_desc *d,
			    unsigned levels)
{
	struct sim_array3d_desc level;
	struct sim_array *array;
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (rc || !out || !sane(d) || levels < 1 || levels > 32)
		return rc ? rc : SIM_INVALID_VALUE;
	level = *d;
	array = calloc(1, sizeof(*array));
	if (!array)
		return SIM_OUT_OF_MEMORY;
	array->magic = ARRAY_MAGIC;
	array->desc = *d;
	array->dev = ctx->dev;
	array->levels = calloc(levels, sizeof(struct sim_array *));
	if (!array->levels)
		abort();
	for (; array->level_cnt < levels; array->level_cnt++) {
		rc = make(&array->levels[array->level_cnt], &level, ctx);
		if (rc) {
			array_free(array);
			return rc;
		}
		level.width = level.width > 1 ? level.width / 2 : 1;
		level.height = level.height > 1 ? level.height / 2 : level.height;
		level.depth = level.depth > 1 ? level.depth / 2 : level.depth;
	}
	*out = array;
	return SIM_OK;
}
EXPORT(cuMipmappedArrayCreate,
       (struct sim_array * *out, const struct sim_array3d_desc *d, unsigned levels),
       create_mipmapped(out, d, levels))
EXPORT(cuMipmappedArrayGetLevel, (struct sim_array * *out, struct sim_array *a, unsigned level),
       check(a) && level < a->level_cnt ? (*out = a->levels[level], SIM_OK) : SIM_INVALID_VALUE)

/* ---- textures and surfaces ---- */
static int object_create(unsigned long long *out, const void *resource)
{
	static atomic_ullong next = 1;

	if (!out || !resource)
		return SIM_INVALID_VALUE;
	*out = atomic_fetch_add(&next, 1);
	return SIM_OK;
}
EXPORT(cuTexObjectCreate,
       (unsigned long long *out, const void *resource, const void *texture, const void *view),
       object_create(out, resource))
EXPORT(cuTexObjectDestroy, (unsigned long long object), object ? SIM_OK : SIM_INVALID_VALUE)
EXPORT(cuSurfObjectCreate, (unsigned long long *out, const void *resource),
       object_create(out, resource))
EXPORT(cuSurfObjectDestroy, (unsigned long long object), object ? SIM_OK : SIM_INVALID_VALUE)
