/*
 * tests/sim/driver_device.c: which GPUs are the program's devices, and the attributes of a simulated
 * device, one row each; the runtime builds cudaDeviceProp from them. Numbers resemble a large
 * data-centre GPU. Called on any thread.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* clang-format off */
static const struct { short attr; int value; } table[] = {
	{   1, 1024 },       { 2, 1024 },        { 3, 1024 },        { 4, 64 },          /* block */
	{   5, 2147483647 }, { 6, 65535 },       { 7, 65535 },                           /* grid */
	{   8, 49152 },      { 9, 65536 },       { 10, 32 },         { 11, 2147483647 }, /* shared, constant, warp, pitch */
	{  12, 65536 },      { 13, 1980000 },    { 14, 512 },        { 15, 1 },          /* registers, clock, texture, overlap */
	{  17, 0 },          { 18, 0 },          { 19, 1 },          { 20, 0 },
	{  21, 131072 },     { 22, 131072 },     { 23, 65536 },      { 24, 16384 },      { 25, 16384 },
	{  26, 16384 },      { 27, 32768 },      { 28, 32768 },      { 29, 2048 },       { 30, 512 },
	{  31, 1 },          { 32, 1 },          { 34, 0 },          { 35, 0 },          { 36, 3201000 },
	{  37, 6144 },       { 38, 62914560 },   { 39, 2048 },       { 40, 3 },          { 41, 1 },
	{  42, 32768 },      { 43, 2048 },       { 44, 1 },          { 45, 32768 },      { 46, 32768 },
	{  47, 8192 },       { 48, 8192 },       { 49, 32768 },      { 50, 0 },          { 51, 32 },
	{  52, 32768 },      { 53, 32768 },      { 54, 2046 },       { 55, 32768 },      { 56, 131072 },
	{  57, 65536 },      { 58, 16384 },      { 59, 16384 },      { 60, 16384 },      { 61, 32768 },
	{  62, 2048 },       { 63, 32768 },      { 64, 32768 },      { 65, 2048 },       { 66, 32768 },
	{  67, 32768 },      { 68, 2046 },       { 69, 268435456 },  { 70, 131072 },     { 71, 65000 },
	{  72, 2097120 },    { 73, 32768 },      { 74, 32768 },      { 75, 9 },          { 76, 0 },
	{  77, 32768 },      { 78, 1 },          { 79, 1 },          { 80, 1 },          { 81, 233472 },
	{  82, 65536 },      { 83, 1 },          { 84, 0 },          { 86, 0 },          { 87, 2 },
	{  88, 0 },          { 89, 1 },          { 90, 1 },          { 91, 1 },          { 92, 0 },
	{  95, 1 },          { 96, 0 },          { 97, 232448 },     { 98, 1 },          { 99, 1 },
	{ 100, 0 },          { 101, 0 },         { 102, 1 },         { 103, 1 },         { 106, 32 },
	{ 107, 0 },          { 108, 39321600 },  { 109, 134213632 }, { 110, 0 },         { 111, 1024 },
	{ 112, 0 },          { 113, 1 },         { 114, 0 },         { 115, 1 },         { 116, 0 },
	{ 117, 1 },          { 118, 100 },       { 119, 1 },         { 120, 1 },         { 121, 0 },
	{ 122, 1 },          { 123, 1 },         { 124, 0 },         { 125, 1 },         { 126, 4 },
	{ 129, 0 },          { 130, 0 },         { 131, -1 },        { 134, 0 },
};
/* clang-format on */

int sim_attribute(int *value, int attr, int dev)
{
	if (!value || attr < 1 || attr > 160)
		return SIM_INVALID_VALUE;
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	*value = 0;
	if (attr == 33) /* PCI bus */
		*value = sim_devices[dev].gpu + 1;
	if (attr == 85) /* board group */
		*value = sim_devices[dev].gpu;
	if (attr == 133)
		*value = sim_mps.client;
	if (attr == 16)
		*value = sim_mps.multiprocessors;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].attr == attr)
			*value = table[i].value;
	return SIM_OK;
}

/* What a GPU is called everywhere: its first byte tells it from the others. */
void sim_uuid(int gpu, unsigned char out[16])
{
	memcpy(out, "?-simulated-gpu-", 16);
	out[0] = (unsigned char)('a' + gpu);
}

static int gpu_by_ordinal(const char *entry, size_t len)
{
	char *end;
	long gpu = strtol(entry, &end, 10);

	return *entry >= '0' && *entry <= '9' && end == entry + len && gpu < sim_script.gpus
		       ? (int)gpu
		       : -1;
}

/* By the beginning of `GPU-` and the UUID, if only one GPU's begins so. */
static int gpu_by_uuid(const char *entry, size_t len)
{
	int found = -1;

	for (int gpu = 0; gpu < sim_script.gpus && len > 4; gpu++) {
		unsigned char uuid[16];
		char text[41] = "GPU-";
		size_t at = 4;

		sim_uuid(gpu, uuid);
		for (int i = 0; i < 16; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x",
					       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					       uuid[i]);
		if (len <= at && strncasecmp(entry, text, len) == 0) {
			if (found >= 0)
				return -1;
			found = gpu;
		}
	}
	return found;
}

/* Which GPU each device is. CUDA_VISIBLE_DEVICES lists them by ordinal or UUID; an entry that is
 * neither ends the list, and so does, here, one that comes again. Returns how many there are. */
int sim_find_gpus(void)
{
	const char *entry = getenv("CUDA_VISIBLE_DEVICES");
	int cnt = 0;

	for (; !entry && cnt < sim_script.gpus; cnt++)
		sim_devices[cnt].gpu = cnt;
	while (entry && *entry) {
		size_t len = strcspn(entry, ",");
		int gpu = gpu_by_ordinal(entry, len);

		if (gpu < 0)
			gpu = gpu_by_uuid(entry, len);
		for (int i = 0; i < cnt; i++)
			if (sim_devices[i].gpu == gpu)
				gpu = -1;
		if (gpu < 0)
			break;
		sim_devices[cnt++].gpu = gpu;
		entry += len + (entry[len] == ',');
	}
	return cnt;
}
