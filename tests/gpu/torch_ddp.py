# tests/gpu/torch_ddp.py: a data-parallel training, a process for each rank, with the habits that such programs have: a
# DataLoader with worker processes, batches in pageable memory, mixed precision, gradients clipped, the loss looked at
# in each step. Rank 1 empties the allocator's cache every eighth step, for which all others wait. Leaves NVLink
# multicast off.
#
#   torch_ddp.py [STEPS [RANKS]]
#
# RANKS: one for each GPU, or two that share the only one. More ranks than GPUs talk by Gloo, through the host; NCCL
# refuses to.
#
# Prints each rank's losses, which are the same in every run (with CUBLAS_WORKSPACE_CONFIG=:4096:8), and in lines
# with # how long the loop of each rank took.
import os
import sys
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

BATCH = 64


class Pictures(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(3, 32, 32, generator=generator), i % 10


def network():
    layers, channels = [], 3
    for wider in (32, 64, 128):
        layers += [torch.nn.Conv2d(channels, wider, 3, padding=1), torch.nn.BatchNorm2d(wider)]
        layers += [torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        channels = wider
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(128 * 16, 10))


def work(rank, world, steps, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
    gpus = torch.cuda.device_count()
    torch.cuda.set_device(rank % gpus)
    dist.init_process_group("nccl" if world <= gpus else "gloo", rank=rank, world_size=world)
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    model = DistributedDataParallel(network().cuda(), device_ids=[rank % gpus])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(Pictures(steps * BATCH), batch_size=BATCH, num_workers=2)
    losses, begun = [], time.perf_counter()
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        if rank == 1 and step % 8 == 7:
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    results.put((rank, len(losses), losses[-1].hex(), time.perf_counter() - begun))
    dist.barrier()
    dist.destroy_process_group()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 96
    world = int(sys.argv[2]) if len(sys.argv) > 2 else max(2, torch.cuda.device_count())
    results = mp.get_context("spawn").SimpleQueue()
    workers = mp.spawn(work, args=(world, steps, results), nprocs=world, join=False)
    answers = sorted(results.get() for _ in range(world))
    while not workers.join():
        pass
    for rank, count, loss, seconds in answers:
        print("rank %d: %d steps, last loss %s" % (rank, count, loss))
        print("# rank %d: the loop took %.3f s" % (rank, seconds))


if __name__ == "__main__":
    main()
