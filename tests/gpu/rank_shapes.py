# tests/gpu/rank_shapes.py SHAPE PLANTED [--steps N]: jobs of two ranks in shapes that rank_jobs.py does not have, in each of which one thing is
# planted that makes the others wait, or nothing (none).
#
# SHAPE     PLANTED
# experts   hot: seven eighths of the tokens go to the last rank's expert (all_to_all_single of uneven sizes)
# stages    deep: the last stage of PyTorch's 1F1B pipeline has 14 layers, the other one 6
# sharded   metrics: rank 1 of FSDP writes a JSON file in each step
# folded    evaluate: rank 0 alone evaluates every fourth step; gradients of four microbatches are added up
# loader    slow: rank 1's DataLoader takes 8 ms a sample
# cache     empty: rank 1 empties PyTorch's cache of memory in each step
# buckets   none; for NCCL_P2P_DISABLE=1
#
# Prints in lines with # how long each rank's loop took.
import argparse
import json
import os
import random
import subprocess
import sys
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("OMP_NUM_THREADS", "4")


def layers_of(torch, width, layers):
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0, norm_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def parallel(torch, rank, width, layers):
    net = layers_of(torch, width, layers).cuda()
    model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    return net, model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def learn(model, optimizer, x):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def experts(torch, dist, rank, world, planted):
    nn = torch.nn
    expert = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)).cuda().bfloat16()
    dense = nn.Linear(2048, 2048).cuda().bfloat16()
    tokens = 16384
    x = torch.randn(tokens, 2048, device="cuda", dtype=torch.bfloat16)
    part = [tokens // world] * world
    if planted == "hot":
        part = [tokens // 8] * (world - 1)
        part.append(tokens - sum(part))
    mine = [part[rank]] * world

    def step(i):
        with torch.no_grad():
            got = torch.empty(sum(mine), 2048, device="cuda", dtype=torch.bfloat16)
            dist.all_to_all_single(got, dense(x), mine, part)
            for _ in range(6):
                got = expert(got) * 0.1
            back = torch.empty_like(x)
            dist.all_to_all_single(back, got, part, mine)
            dense(back)
    return step, 150


def stages(torch, dist, rank, world, planted):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    net = layers_of(torch, 1024, 14 if planted == "deep" and rank == world - 1 else 6).cuda()
    stage = PipelineStage(net, rank, world, torch.device("cuda", rank))
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(16, 256, 1024, device="cuda")

    def step(i):
        schedule.step(*([] if rank else [x]), **({"target": x} if rank == world - 1 else {}))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step, 60


def write_metrics(history, step):
    history.append({"step": step, "values": [random.random() for _ in range(300)]})
    with open("/tmp/metrics-%d.json" % os.getpid(), "w") as file:
        json.dump(history[-60:], file, indent=1)


def sharded(torch, dist, rank, world, planted):
    from torch.distributed.fsdp import fully_shard
    model = layers_of(torch, 1024, 8).cuda()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(8, 512, 1024, device="cuda")
    history = []

    def step(i):
        learn(model, optimizer, x)
        if planted == "metrics" and rank == 1:
            write_metrics(history, i)
    return step, 60


def evaluate(torch, net, x):
    with torch.no_grad():
        return sum(net(x).square().mean().item() for _ in range(6))


def folded(torch, dist, rank, world, planted):
    net, model, optimizer = parallel(torch, rank, 768, 6)
    x = torch.randn(8, 256, 768, device="cuda")

    def step(i):
        with model.no_sync():
            for _ in range(3):
                model(x).square().mean().backward()
        learn(model, optimizer, x)
        if planted == "evaluate" and rank == 0 and i % 4 == 3:
            evaluate(torch, net, x)
    return step, 80


class Samples:
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        import torch
        time.sleep(self.seconds)
        return torch.full((64, 768), (i % 31) / 31.0)


def loader(torch, dist, rank, world, planted):
    _, model, optimizer = parallel(torch, rank, 768, 6)
    samples = Samples(0.008 if planted == "slow" and rank == 1 else 0)
    batches = iter(torch.utils.data.DataLoader(samples, batch_size=16, num_workers=2, pin_memory=True))
    return lambda i: learn(model, optimizer, next(batches).cuda(non_blocking=True)), 80


def cache(torch, dist, rank, world, planted):
    _, model, optimizer = parallel(torch, rank, 768, 8)
    x = torch.randn(16, 256, 768, device="cuda")

    def step(i):
        learn(model, optimizer, x)
        if planted == "empty" and rank == 1:
            torch.cuda.empty_cache()
    return step, 80


def buckets(torch, dist, rank, world, planted):
    net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(12)]).cuda()
    model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank], bucket_cap_mb=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(512, 4096, device="cuda")
    return lambda i: learn(model, optimizer, x), 120


SHAPES = {shape.__name__: shape for shape in (experts, stages, sharded, folded, loader, cache, buckets)}


def work(args):
    import torch
    import torch.distributed as dist
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(1 + rank)
    step, steps = SHAPES[args.shape](torch, dist, rank, world, args.planted)
    steps = args.steps or steps
    for i in range(5):
        step(i)
    torch.cuda.synchronize()
    dist.barrier()
    began = time.perf_counter()
    for i in range(steps):
        step(i)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    print("# rank %d: %.3f ms a step, %.3f s" % (rank, 1e3 * took / steps, took), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("planted", choices=["none", "hot", "deep", "metrics", "evaluate", "slow", "empty"])
    parser.add_argument("--steps", type=int, default=0)
    args = parser.parse_args()
    if "RANK" in os.environ:
        return work(args)
    port = str(random.randrange(20000, 40000))
    ranks = [subprocess.Popen([sys.executable] + sys.argv, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                                                               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for rank in range(2)]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
