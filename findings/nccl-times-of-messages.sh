#!/bin/bash
# NCCL 2.28.9 (PyTorch 2.11's), profiler interface 4: how long a receive ran that shares a kernel with sends.
#
# Expected: the kernel events of a receive last until its data are there, so a rank that waits 20 ms for the other has a receive of 20 ms.
# Seen: rank 1 comes 20 ms late to an all-to-all in which rank 0 sends 8 MiB and receives 56. The event of rank 0's receive ends after less than 1 ms,
# with the send's, whose times it has to the nanosecond: it is over long before the data it is about exist. The messages of a rank to itself, which are
# in the same kernel, have no kernel event at all. A receive that is a kernel of its own lasts 20 ms. So of messages that share a kernel only the
# begin can be trusted.
#
# Needs two GPUs of this machine, gcc, and python3 with PyTorch. Exit status 0: still so; 1: not so any more; 77: it cannot run here.
set -u
work=$(mktemp -d) || exit 77
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 77
export NCCL_NVLS_ENABLE=0
python3 -c 'import sys, torch; sys.exit(not (torch.cuda.device_count() > 1 and torch.cuda.nccl.version() == (2, 28, 9)))' 2>/dev/null ||
	{ echo "no two GPUs with PyTorch and NCCL 2.28.9 here"; exit 77; }
command -v gcc >/dev/null || { echo "no gcc here"; exit 77; }

# A profiler that remembers of each message the first begin and the last end of its kernel's channels.
cat >profiler.c <<'END'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct event { /* as NCCL describes it, as far as it is asked for */
	uint64_t type;
	void *parent;
	int32_t rank, padding;
	union {
		struct { const char *func; void *buffer; const char *datatype; size_t count; int32_t peer; } message;
		struct { uint64_t channel, timer; } channel;
	};
};

struct message { int rank, peer, receives, channels; size_t count; uint64_t begin, end; };

static struct message all[1000];
static int n;

static int begin(void **context, int *mask, const char *name, uint64_t comm, int nodes, int ranks, int rank, void *log)
{
	(void)name, (void)comm, (void)nodes, (void)ranks, (void)rank, (void)log;
	*context = all;
	*mask = 1 << 2 | 1 << 6; /* messages, channels of kernels */
	return 0;
}

static int start(void *context, void **handle, struct event *e)
{
	struct message *m = e->parent;

	(void)context;
	*handle = NULL;
	if ((uint8_t)e->type == 4 && n < 1000) {
		m = &all[n++];
		*m = (struct message){e->rank, e->message.peer, e->message.func[0] == 'R', 0, e->message.count, UINT64_MAX, 0};
		*handle = m;
	} else if ((uint8_t)e->type == 64 && m >= all && m < all + 1000) {
		m->channels++;
		m->begin = e->channel.timer < m->begin ? e->channel.timer : m->begin;
		*handle = m;
	}
	return 0;
}

static int stop(void *handle)
{
	(void)handle;
	return 0;
}

static int record(void *handle, int state, uint64_t *timer)
{
	struct message *m = handle;

	if (m && state == 22 && timer)
		m->end = *timer > m->end ? *timer : m->end;
	return 0;
}

static int end(void *context)
{
	(void)context;
	for (int i = 0; i < n; i++)
		printf("rank %d %s %d %zu %d %lld\n", all[i].rank, all[i].receives ? "from" : "to", all[i].peer, all[i].count,
		       all[i].channels, all[i].channels ? (long long)(all[i].end - all[i].begin) : -1);
	fflush(stdout);
	n = 0;
	return 0;
}

const struct {
	const char *name;
	int (*begin)(void **, int *, const char *, uint64_t, int, int, int, void *);
	int (*start)(void *, void **, struct event *);
	int (*stop)(void *);
	int (*record)(void *, int, uint64_t *);
	int (*end)(void *);
} ncclProfiler_v4 = {"times", begin, start, stop, record, end};
END
gcc -O2 -shared -fPIC -o libtimes.so profiler.c || exit 77
cat >ranks.py <<'END'
import os, sys, time
import torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
MIB = 1 << 20
has = [[8, 8], [56, 56]]  # MiB that rank i sends to each one
send = torch.zeros(sum(has[rank]) * MIB, dtype=torch.uint8, device="cuda")
takes = [has[0][rank] * MIB, has[1][rank] * MIB]
receive = torch.empty(sum(takes), dtype=torch.uint8, device="cuda")
for turn in range(4):
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()
    if rank == 1:
        time.sleep(0.02)
    if sys.argv[1] == "all":
        dist.all_to_all_single(receive, send, takes, [m * MIB for m in has[rank]])
    elif rank == 0:
        dist.recv(receive[:8 * MIB], 1)
    else:
        dist.send(send[:8 * MIB], 0)
    torch.cuda.synchronize()
dist.destroy_process_group()
END
run() {
	local rank
	for rank in 0 1; do
		RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 NCCL_PROFILER_PLUGIN=$work/libtimes.so \
			timeout 120 python3 ranks.py "$1" >"$1.$rank" 2>"$1.err.$rank" &
	done
	wait
	grep -h '^rank' "$1.0" || { tail -n 2 "$1".err.*; exit 77; }
}
echo "all-to-all, rank 0: message, bytes, channels with events, ns"
run all
echo "a receive alone, rank 0"
run alone
# The second of four turns and later: the first one also connects.
both=$(grep '^rank 0 from 1 ' all.0 | tail -n 1 | cut -d' ' -f7) sent=$(grep '^rank 0 to 1 ' all.0 | tail -n 1 | cut -d' ' -f7)
itself=$(grep -c '^rank 0 .* 0 [0-9]* [1-9]' all.0) alone=$(grep '^rank 0 from 1 ' alone.0 | tail -n 1 | cut -d' ' -f7)
echo "receive beside a send: $both ns, that send $sent ns; a receive alone $alone ns; messages to itself with events: $itself"
[ "$both" -gt 0 ] && [ "$both" -lt 1000000 ] && [ "$both" = "$sent" ] && [ "$itself" = 0 ] && [ "$alone" -gt 15000000 ]
