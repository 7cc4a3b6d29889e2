# tests/gpu/rank_jobs.py: jobs of two ranks or more, in each of which one thing is planted that makes the others wait, or nothing.
#
#   rank_jobs.py SHAPE PLANTED [--steps N] [--ranks N]
#
# SHAPE    small (data parallel, bound by launches), large (data parallel, the GPUs are busy), pipeline (each rank a stage,
#          which sends what it has to the next one, four microbatches a step), decode (tensor parallel, a token a step; the
#          step is a CUDA graph with the collective operations in it)
# PLANTED  none; checkpoint (rank 0 saves the model each tenth step); collect (the last rank collects garbage each fourth
#          step); uneven (one rank has a sequence four times as long, another one each step); nap (the last rank sleeps 4 ms
#          a step); batch (rank 0 makes its batch in Python); heavy (the last rank has three times the work: of a pipeline, its
#          stage); shared (another process computes on the last rank's GPU)
#
# Prints each rank's last loss, which is the same in every run, and in lines with # how long its loop took.
import argparse
import gc
import os
import subprocess
import sys
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("OMP_NUM_THREADS", "4")

WIDTH = {"small": 256, "large": 1536, "pipeline": 1024, "decode": 4096}
LAYERS = {"small": 8, "large": 8, "pipeline": 6, "decode": 16}
LENGTH = {"small": 64, "large": 1024, "pipeline": 512, "decode": 1}
BATCH = {"small": 4, "large": 8, "pipeline": 4, "decode": 16}
WORDS = 2048


def model_of(torch, shape, layers):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            y = self.norms[0](x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            return x + self.feed(self.norms[1](x))

    return nn.Sequential(*[Block(WIDTH[shape]) for _ in range(layers)])


class Job:
    def __init__(self, torch, args, rank, world):
        self.torch, self.args, self.rank, self.world = torch, args, rank, world
        self.last = rank == world - 1
        self.keep = []

    def close(self):
        pass

    def save(self, step):
        weights = {name: value.cpu() for name, value in self.model.state_dict().items()}
        self.torch.save(weights, "/tmp/checkpoint-%d.pt" % os.getpid())

    def collect(self):
        self.keep = [[i] for i in range(200000)]
        gc.collect()

    def wait_a_little(self):
        time.sleep(0.004)

    def tokenize(self):
        total = 0
        for i in range(60000):
            total += i * i % 7
        return total

    def batch(self, step):
        shape, torch = self.args.shape, self.torch
        length = LENGTH[shape]
        if self.args.planted == "uneven" and step % self.world == self.rank:
            length *= 4
        words = torch.randint(0, WORDS, (BATCH[shape], length + 1))
        return words.cuda(non_blocking=True)

    def before(self, step):
        planted = self.args.planted
        if planted == "checkpoint" and self.rank == 0 and step % 10 == 9:
            self.save(step)
        elif planted == "collect" and self.last and step % 4 == 3:
            self.collect()
        elif planted == "nap" and self.last:
            self.wait_a_little()
        elif planted == "batch" and self.rank == 0:
            self.tokenize()


class DataParallel(Job):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        torch, shape = self.torch, self.args.shape
        nn = torch.nn
        layers = LAYERS[shape]
        self.extra = model_of(torch, shape, 2 * layers).cuda() if self.args.planted == "heavy" and self.last else None
        body = nn.Sequential(nn.Embedding(WORDS, WIDTH[shape]), model_of(torch, shape, layers), nn.Linear(WIDTH[shape], WORDS))
        self.model = nn.parallel.DistributedDataParallel(body.cuda())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=True)

    def step(self, step):
        torch = self.torch
        self.before(step)
        words = self.batch(step)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.args.shape == "large"):
            if self.extra is not None:
                with torch.no_grad():
                    self.extra(torch.ones(BATCH[self.args.shape], LENGTH[self.args.shape], WIDTH[self.args.shape], device="cuda"))
            out = self.model(words[:, :-1])
            loss = torch.nn.functional.cross_entropy(out.flatten(0, 1).float(), words[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        if step % 10 == 9:
            self.loss = loss.item()


class Pipeline(Job):
    MICROBATCHES = 4

    def __init__(self, *arguments):
        super().__init__(*arguments)
        torch = self.torch
        layers = LAYERS["pipeline"] * (3 if self.args.planted == "heavy" and self.last else 1)
        self.model = model_of(torch, "pipeline", layers).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.shape = (BATCH["pipeline"], LENGTH["pipeline"], WIDTH["pipeline"])

    def step(self, step):
        torch, dist = self.torch, self.torch.distributed
        self.before(step)
        inputs, outputs, total = [], [], 0
        for i in range(self.MICROBATCHES):
            if self.rank == 0:
                x = torch.randn(self.shape, device="cuda")
            else:
                x = torch.empty(self.shape, device="cuda")
                dist.recv(x, self.rank - 1)
                x.requires_grad_(True)
            y = self.model(x)
            if not self.last:
                dist.send(y.detach(), self.rank + 1)
            inputs.append(x)
            outputs.append(y)
        for x, y in zip(inputs, outputs):
            if self.last:
                loss = y.square().mean()
                loss.backward()
                total += loss.detach()
            else:
                gradient = torch.empty(self.shape, device="cuda")
                dist.recv(gradient, self.rank + 1)
                y.backward(gradient)
            if self.rank:
                dist.send(x.grad, self.rank - 1)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if step % 10 == 9:
            self.loss = total.item() if self.last else 0.0


class Decode(Job):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        torch = self.torch
        nn = torch.nn
        width, layers = WIDTH["decode"], LAYERS["decode"]
        part = 4 * width // self.world
        self.model = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, part), nn.GELU(), nn.Linear(part, width))
                                    for _ in range(layers)]).cuda().bfloat16()
        self.words = nn.Embedding(WORDS, width).cuda().bfloat16()
        self.extra = model_of(torch, "decode", 4).cuda().bfloat16() if self.args.planted == "heavy" and self.last else None
        self.token = torch.zeros(BATCH["decode"], dtype=torch.long, device="cuda")
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside), torch.no_grad():
            for _ in range(3):
                self.forward()
        torch.cuda.current_stream().wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph), torch.no_grad():
            self.next = self.forward()

    def forward(self):
        x = self.words(self.token)
        for layer in self.model:
            y = layer(x)
            self.torch.distributed.all_reduce(y)
            x = x + y
        if self.extra is not None:
            x = x + 0 * self.extra(x.expand(16, *x.shape))[0]
        logits = x @ self.words.weight.t()
        self.torch.distributed.all_reduce(logits)
        return logits.argmax(dim=-1)

    def step(self, step):
        self.before(step)
        self.graph.replay()
        words = self.next.tolist()
        self.token.copy_(self.torch.tensor(words))
        self.loss = sum(words)

    def close(self):
        self.graph.reset()  # communicators wait for the graphs that they are in


def work(args):
    import torch

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(1 + rank)
    job = {"pipeline": Pipeline, "decode": Decode}.get(args.shape, DataParallel)(torch, args, rank, world)
    for step in range(5):
        job.step(step)
    torch.cuda.synchronize()
    torch.distributed.barrier()
    began = time.perf_counter()
    for step in range(args.steps):
        job.step(step)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    print("rank %d: the last loss %.6f" % (rank, job.loss))
    print("# rank %d: %.3f ms a step, %.3f s" % (rank, 1e3 * took / args.steps, took), flush=True)
    job.close()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def neighbour(gpu):
    """Another program, on that GPU, for as long as it is let."""
    import torch

    x = torch.randn(6144, 6144, device="cuda:%d" % gpu)
    while True:
        for _ in range(20):
            x = (x @ x).tanh()
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=["small", "large", "pipeline", "decode"])
    parser.add_argument("planted", choices=["none", "checkpoint", "collect", "uneven", "nap", "batch", "heavy", "shared"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    if "NEIGHBOUR" in os.environ:
        return neighbour(int(os.environ["NEIGHBOUR"]))
    if "RANK" in os.environ:
        return work(args)
    beside = None
    if args.planted == "shared":
        quiet = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("CUDASPY")}
        beside = subprocess.Popen([sys.executable] + sys.argv, env=dict(quiet, NEIGHBOUR=str(args.ranks - 1)))
        time.sleep(8)
    ranks = [subprocess.Popen([sys.executable] + sys.argv,
                              env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks),
                                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getpid() % 500)))
             for rank in range(args.ranks)]
    status = max(rank.wait() for rank in ranks)
    if beside:
        beside.kill()
    return status


if __name__ == "__main__":
    sys.exit(main())
