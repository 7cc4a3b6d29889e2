# tests/gpu/planted.py KIND: a program whose GPU waits for its host, for a reason that is known. Prints the planted function's share of
# the working time by the program's own clock, in per cent ("TRUTH collect 93.5"), or nothing of the kind for clean ones; and a last value,
# which is the same bare and recorded. KIND: checkpoint collect thresholds tokenizer numpy metrics gil jax cupy compile busy
# layers (two GPUs); with torchrun, two ranks, of which one is late: ranks-checkpoint ranks-collect ranks-sleep ranks-tokenizer ranks-clean.
import gc
import json
import os
import sys
import threading
import time

KIND = sys.argv[1]
spent = {}
started = 0.0


def timed(function, *args):
    begun = time.perf_counter()
    result = function(*args)
    spent[function.__name__] = spent.get(function.__name__, 0) + time.perf_counter() - begun
    return result


def start():
    global started
    spent.clear()
    started = time.perf_counter()


def truth(value):
    wall = time.perf_counter() - started
    for name, seconds in spent.items():
        print("TRUTH", name, round(100 * seconds / wall, 1))
    print("last value", value)


def save(net):
    torch.save({name: value.cpu() for name, value in net.state_dict().items()}, "/tmp/planted.%d" % os.getpid())


def collect():
    gc.collect()


def bookkeeping(junk, step):
    for _ in range(300):
        junk.append([step, [step]])


def tokenize(text, batch, size):
    ids = []
    for word in text.split():
        for letter in word:
            ids.append(len(word) * ord(letter) % 97)
    return torch.tensor((ids * 200)[:batch * size], dtype=torch.float32).reshape(batch, size)


def augment(batch, size):
    import numpy
    a = numpy.random.default_rng(0).normal(size=(batch, size)).astype(numpy.float32)
    a = numpy.fft.ifft(numpy.fft.fft(a, axis=1), axis=1).real.astype(numpy.float32)
    return torch.from_numpy(numpy.sort(a, axis=1))


def log_metrics(net):
    json.dumps({name: [round(float(x), 5) for x in value.detach().cpu().flatten()[:400]] for name, value in net.named_parameters()})


def keep_the_gil():
    x = 0
    for i in range(120000):
        x += i * i % 7
    return x


def pt_loader():
    while True:
        keep_the_gil()


def train(steps, size=512, batch=256):
    net = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(size, size), torch.nn.ReLU())]).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(batch, size, device="cuda")
    junk = [[i] for i in range(300000)] if KIND in ("collect", "thresholds") else []
    text = "the quick brown fox jumps over the lazy dog " * 40
    if KIND == "collect":
        gc.disable()
    if KIND == "thresholds":
        gc.set_threshold(200, 2, 2)
    if KIND == "gil":
        threading.Thread(target=pt_loader, name="pt_loader", daemon=True).start()
    for step in range(steps):
        if step == 10:
            torch.cuda.synchronize()
            start()
        if KIND == "tokenizer":
            x = timed(tokenize, text, batch, size).to("cuda", non_blocking=True)
        if KIND == "numpy":
            x = timed(augment, batch, size).to("cuda", non_blocking=True)
        loss = (net(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if KIND == "checkpoint" and step % 10 == 9:
            timed(save, net)
        if KIND == "collect" and step % 4 == 3:
            timed(collect)
        if KIND == "thresholds":
            timed(bookkeeping, junk, step)
        if KIND == "metrics":
            timed(log_metrics, net)
    torch.cuda.synchronize()
    truth(round(float(loss), 4))


def wait_a_little():
    time.sleep(0.004)


def ranks():
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(ddp.parameters())
    junk = [[i] for i in range(300000)]
    gc.disable()
    x = torch.randn(512, 1024, device="cuda")
    for step in range(400):
        if step == 20:
            torch.cuda.synchronize()
            start()
        loss = (ddp(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if KIND == "ranks-checkpoint" and rank == 0 and step % 10 == 9:
            timed(save, net)
        if rank == 1 and KIND == "ranks-collect" and step % 4 == 3:
            timed(collect)
        if rank == 1 and KIND == "ranks-sleep":
            timed(wait_a_little)
        if rank == 1 and KIND == "ranks-tokenizer":
            timed(tokenize, "the quick brown fox " * 300, 16, 1024)
    torch.cuda.synchronize()
    truth(round(float(loss), 4))
    dist.destroy_process_group()
    del junk


def jax_rows():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp
    import numpy

    def preprocess(step):
        return numpy.array([[((r * 31 + c * 7 + step) % 101) / 101 for c in range(256)] for r in range(256)], dtype=numpy.float32)

    @jax.jit
    def advance(w, x):
        return w - 1e-3 * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - x) ** 2))(w)

    w = jnp.ones((256, 256)) * 0.01
    for step in range(300):
        if step == 10:
            w.block_until_ready()
            start()
        w = advance(w, timed(preprocess, step))
    truth(round(float(w.sum()), 3))


def cupy_fit():
    import cupy

    def fit_params(host):
        values = sorted(float(v) for v in host)
        return values[len(values) // 2]

    a = cupy.ones((2000, 2000), dtype=cupy.float32)
    for step in range(600):
        if step == 10:
            start()
        m = timed(fit_params, cupy.asnumpy((a @ a).ravel()[:20000]))
        a = a / cupy.float32(m) * 0.5 + 0.1
    truth(round(float(a.sum()), 1))


def recompile():
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256)).cuda()
    compiled = torch.compile(net, dynamic=False)
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.recompile_limit = 1000
    for step in range(400):
        y = compiled(torch.randn(64 + 8 * (step // 40), 256, device="cuda"))
    print("last value", tuple(y.shape))


def two_gpus():
    first, second = [torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(12)]).cuda(i) for i in (0, 1)]
    x = torch.randn(4096, 4096, device="cuda:0")
    for _ in range(60):
        with torch.no_grad():
            value = float(second(first(x).to("cuda:1")).sum())
    print("last value", round(value, 1))


if KIND == "jax":
    jax_rows()
elif KIND == "cupy":
    cupy_fit()
else:
    import torch
    torch.manual_seed(0)
    if KIND.startswith("ranks-"):
        ranks()
    elif KIND == "compile":
        recompile()
    elif KIND == "layers":
        two_gpus()
    elif KIND == "busy":
        train(150, 4096, 4096)
    else:
        train({"gil": 60, "collect": 200, "thresholds": 1000, "tokenizer": 400, "numpy": 250, "metrics": 200}.get(KIND, 600),
              1024 if KIND == "checkpoint" else 512)
