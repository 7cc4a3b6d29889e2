# tests/gpu/torch_ranks.py: two ranks that train together, one of which holds the other up.
#
#   torch_ranks.py KIND STRAGGLER [--steps N] [--ranks N] [--profile FOLDER]
#
# KIND       ddp (DistributedDataParallel), fsdp (fully sharded), tensor (a matrix divided between the ranks by hand)
# STRAGGLER  what the last rank does in every sixth step: free (empties the allocator's cache), load (waits for data
#            from a process), sync (looks at many values), cpu (computes in Python), kernel (more work for its GPU),
#            sleep; none: nothing; gone: after ten steps it waits for data that do not come for 20 seconds, and then
#            all ranks end
# --profile  a trace by torch.profiler for each rank, FOLDER/rank0.json …, of the same loop
#
# A process for each rank, one on each GPU. Ranks that share a GPU need an MPS daemon to run at the same time, and NCCL
# takes each for a host of its own (NCCL_HOSTID). Prints each rank's last losses, which are the same in every run, and
# in lines with # how long its loop took. Leaves NVLink multicast off.
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

WIDTH, LAYERS, BATCH, EVERY = 2048, 6, 256, 6


def free(torch, x):
    junk = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(48)]
    del junk
    torch.cuda.empty_cache()


def load(torch, x):
    with subprocess.Popen(["sh", "-c", "sleep 0.03; echo data"], stdout=subprocess.PIPE) as loader:
        loader.stdout.read()


def sync(torch, x):
    for i in range(300):
        x[i % 64, 0].item()


def cpu(torch, x):
    until = time.perf_counter() + 0.03
    total = 0
    while time.perf_counter() < until:
        total += 1


def kernel(torch, x):
    y = torch.ones(4096, 4096, device="cuda")
    for _ in range(20):
        y = y @ y
        y = y / y.max()


def sleep(torch, x):
    time.sleep(0.03)


def gone(torch, x):
    print("# it does not come", flush=True)
    with subprocess.Popen(["sleep", "20"], stdout=subprocess.PIPE) as loader:
        loader.stdout.read()
    os.killpg(0, signal.SIGTERM)


STRAGGLERS = {"free": free, "load": load, "sync": sync, "cpu": cpu, "kernel": kernel, "sleep": sleep,
              "gone": gone, "none": None}


def network(torch, kind, rank, world):
    nn = torch.nn
    layers = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 1)).cuda()
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        return fully_shard(model)
    return model


def tensor_step(torch, dist, pieces, x):
    """Each rank has a piece of each matrix: columns of the first, rows of the second; the sum is everybody's."""
    for first, second in pieces:
        x = torch.relu(x @ first) @ second
        dist.all_reduce(x)
        x = x / x.norm(dim=1, keepdim=True)
    return x.square().mean()


def work(args):
    import torch
    import torch.distributed as dist

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    if args.kind == "tensor":
        scale = WIDTH ** -0.5
        pieces = [(torch.randn(WIDTH, 4 * WIDTH // world, device="cuda") * scale,
                   torch.randn(4 * WIDTH // world, WIDTH, device="cuda") * scale) for _ in range(LAYERS)]
    else:
        model = network(torch, args.kind, rank, world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(BATCH, WIDTH, device="cuda")
    held_up = STRAGGLERS[args.straggler] if rank == world - 1 else None

    def step(number):
        if held_up and number % EVERY == EVERY - 1 and (args.straggler != "gone" or number > 10):
            held_up(torch, x)
        if args.kind == "tensor":
            return tensor_step(torch, dist, pieces, x).item()
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for number in range(5):
        step(number)
    torch.cuda.synchronize()
    dist.barrier()
    if args.profile:
        profiler = torch.profiler.profile()
    else:
        profiler = contextlib.nullcontext()
    with profiler:
        began = time.time_ns()
        losses = [step(number) for number in range(args.steps)]
        torch.cuda.synchronize()
        ended = time.time_ns()
    if args.profile:
        os.makedirs(args.profile, exist_ok=True)
        profiler.export_chrome_trace("%s/rank%d.json" % (args.profile, rank))
    print("rank %d: %d losses, the last %s\n# rank %d: loop %d %d, %.1f ms" %
          (rank, len(losses), losses[-1].hex(), rank, began, ended, (ended - began) / 1e6), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["ddp", "fsdp", "tensor"])
    parser.add_argument("straggler", choices=list(STRAGGLERS))
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--profile")
    args = parser.parse_args()
    if "RANK" in os.environ:
        return work(args)
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.splitlines())
    ranks = []
    for rank in range(args.ranks):
        where = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks),
                     MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getpid() % 500))
        if args.ranks > gpus:
            where["NCCL_HOSTID"] = str(rank)
        ranks.append(subprocess.Popen([sys.executable] + sys.argv, env=where))
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
