# tests/gpu/nccl_small.py: an all-reduce through NCCL, one process for each of two GPUs, as training does
# it. Exact integers. Exit status 0 only if the sums are right. Leaves NVLink multicast off.
import os
import sys

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZE = 1 << 20
ROUNDS = 20


def work(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    total = 0
    for i in range(ROUNDS):
        x = torch.full((SIZE,), float(rank + i), device="cuda")
        dist.all_reduce(x)
        total += int(x[i].item())
    expected = sum(2 * i + 1 for i in range(ROUNDS))
    if rank == 0:
        print("sum %d" % total)
    dist.destroy_process_group()
    if total != expected:
        raise SystemExit("rank %d: %d, not %d" % (rank, total, expected))


if __name__ == "__main__":
    if torch.cuda.device_count() < 2:
        sys.exit("nccl_small: needs two GPUs")
    mp.spawn(work, args=(2,), nprocs=2)
    print("right")
