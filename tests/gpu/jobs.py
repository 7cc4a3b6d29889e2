# tests/gpu/jobs.py KIND: jobs as people write them, which are slow for one reason. Prints the shares of the working time of the functions that
# are timed, by the program's own clock ("TRUTH fetch 43.5"), what the loop took, and a last value, which is the same bare and recorded. KIND:
# eager trainer generate lightning gp graphs rejit flax agent server sockets sockets_apart lock pool nan amp ode mcmc images embed spectra states
# bayes vision; nms plans callback features profiled, and their twins nms_batched plans_kept callback_jitted features_gpu profiled_off;
# recommend readout emptycache fragment, and their twins recommend_pinned readout_pinned emptycache_never fragment_never; on two
# GPUs halves and parallel. Each needs the package that it imports; run by tests/gpu/planted.
import os
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
spent = {}
started = 0.0


def timed(function):
    def wrapper(*args, **more):
        begun = time.perf_counter()
        try:
            return function(*args, **more)
        finally:
            spent[function.__name__] = spent.get(function.__name__, 0) + time.perf_counter() - begun
    wrapper.__wrapped__ = function
    return wrapper


def start():
    global started
    spent.clear()
    started = time.perf_counter()


def start_at(step, first):
    if step == first:
        import torch
        torch.cuda.synchronize()
        start()


def end(value):
    wall = time.perf_counter() - started
    for name, seconds in sorted(spent.items(), key=lambda item: item[1]):
        print("TRUTH", name, round(100 * seconds / wall, 1))
    print("loop", round(wall, 2), "s")
    print("last value", value)


# Small layers, step by step: each kernel is shorter than its launch.
def eager():
    import torch
    net = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(128, 128), torch.nn.ReLU())]).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    x, y = torch.randn(64, 128, device="cuda"), torch.randn(64, 128, device="cuda")
    for step in range(3000):
        start_at(step, 20)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    end(round(float(loss), 4))


@timed
def encode(text):
    vocabulary = {}
    return [vocabulary.setdefault(word[:j + 1], len(vocabulary)) % 1000 for word in text.split() for j in range(len(word))]


# transformers' Trainer, whose data set encodes in the same process.
def trainer():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class Texts(torch.utils.data.Dataset):
        text = "the quick brown fox jumps over the lazy dog and then some more words come along " * 6

        def __len__(self):
            return 16 * 120

        def __getitem__(self, i):
            ids = torch.tensor((encode(self.text[i % 50:]) * 3)[:128])
            return {"input_ids": ids, "labels": ids}

    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=128, n_embd=256, n_layer=4, n_head=4))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, per_device_train_batch_size=16, num_train_epochs=2, logging_steps=20,
                                      save_strategy="no", report_to=[], disable_tqdm=True, dataloader_num_workers=0, seed=0)
        start()
        result = Trainer(model=model, args=arguments, train_dataset=Texts()).train()
    end(round(result.training_loss, 3))


def generate():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(vocab_size=5000, n_embd=512, n_layer=8, n_head=8)).cuda().eval()
    x = torch.randint(0, 5000, (1, 16), device="cuda")
    with torch.no_grad():
        for i in range(5):
            if i == 1:
                start()
            y = model.generate(x, max_new_tokens=250 if i else 20, do_sample=False, pad_token_id=0)
    end(int(y.sum()))


# Lightning, with a matrix of confusion in Python in each step.
def lightning():
    import lightning
    import numpy
    import torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64 * 150

        def __getitem__(self, i):
            return torch.full((256,), (i % 97) / 97.0), torch.tensor(i % 10)

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))

        def training_step(self, batch, i):
            x, y = batch
            out = self.net(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            self.log("loss", loss, prog_bar=False)
            self.confusion(out, y)
            return loss

        @timed
        def confusion(self, out, y):
            predicted, truth = out.argmax(1).cpu().numpy(), y.cpu().numpy()
            matrix = numpy.zeros((10, 10))
            for _ in range(12):
                for a, b in zip(truth, predicted):
                    matrix[a, b] += 1

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    net = Net()
    with tempfile.TemporaryDirectory() as folder:
        loop = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, logger=lightning.pytorch.loggers.CSVLogger(folder),
                                 enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, log_every_n_steps=10)
        start()
        loop.fit(net, torch.utils.data.DataLoader(Data(), batch_size=64, num_workers=0))
    end(round(float(net.net[0].weight.sum()), 3))


def gp():
    import gpytorch
    import torch
    x = torch.rand(1200, 4).cuda()
    y = torch.sin(x.sum(1) * 6)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=4))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
    model = Model(x, y, likelihood).cuda().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    likelihood_of = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for step in range(250):
        start_at(step, 10)
        optimizer.zero_grad()
        loss = -likelihood_of(model(x), y)
        loss.backward()
        optimizer.step()
        if loss.item() != loss.item():
            break
    end(round(float(loss), 2))


# PyTorch Geometric: batches of graphs are put together in the same process.
def graphs():
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GCNConv, global_mean_pool
    all_graphs = [Data(x=torch.randn(30, 32), edge_index=torch.randint(0, 30, (2, 90)), y=torch.tensor([i % 3])) for i in range(2000)]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.out = GCNConv(32, 64), GCNConv(64, 64), torch.nn.Linear(64, 3)

        def forward(self, data):
            h = self.b(self.a(data.x, data.edge_index).relu(), data.edge_index).relu()
            return self.out(global_mean_pool(h, data.batch))

    @timed
    def fetch(batches):
        return next(batches, None)

    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(13):
        start_at(epoch, 1)
        batches = iter(DataLoader(all_graphs, batch_size=128, shuffle=False))
        while (data := fetch(batches)) is not None:
            data = data.to("cuda")
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(data), data.y)
            loss.backward()
            optimizer.step()
    end(round(float(loss), 2))


# A new function is jitted in each epoch, and so compiled.
def rejit():
    import jax
    import jax.numpy as jnp

    def make_step(scale):
        return jax.jit(lambda w, x: w - 1e-3 * scale * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - x) ** 2))(w))

    @timed
    def schedule(epoch, w):
        step = make_step(1.0 / (1 + epoch))
        return step, step(w, x).block_until_ready()

    w, x = jnp.ones((512, 512)) * 0.01, jnp.ones((512, 512)) * 0.1
    for epoch in range(40):
        if epoch == 2:
            start()
        step, w = schedule(epoch, w)
        for _ in range(40):
            w = step(w, x)
        w.block_until_ready()
    end(round(float(w.sum()), 2))


# Flax and Optax; images are turned on the host.
def flax():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (512, 512, 512):
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(10)(x)

    net = Net()
    images = numpy.random.default_rng(0).integers(0, 255, (4096, 64, 64, 1), dtype=numpy.uint8)
    weights = net.init(jax.random.PRNGKey(0), jnp.ones((1, 4096)))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(weights)

    @jax.jit
    def update(weights, state, x, y):
        def loss_of(weights):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(weights, x), y).mean()
        loss, gradients = jax.value_and_grad(loss_of)(weights)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    @timed
    def load_batch(step):
        chosen = (numpy.arange(256) * 7 + step) % 4096
        batch = images[chosen].astype(numpy.float32) / 255
        batch = numpy.stack([numpy.roll(image, step % 5, axis=1)[::-1] for image in batch])
        return batch.reshape(256, -1), (chosen % 10).astype(numpy.int32)

    for step in range(420):
        if step == 20:
            start()
        x, y = load_batch(step)
        weights, state, loss = update(weights, state, x, y)
        if step % 5 == 0:
            float(loss)
    end(round(float(loss), 2))


# Reinforcement learning: each action is fetched, and the environment is Python.
def agent():
    import numpy
    import torch
    policy = torch.nn.Sequential(torch.nn.Linear(8, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4)).cuda()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)

    @timed
    def advance(states, actions):
        for k in range(32):
            row = states[k]
            for j in range(8):
                row[j] = 0.9 * row[j] + 0.1 * ((actions[k] + j) % 3) - 0.05
        return float(states.sum())

    for episode in range(22):
        start_at(episode, 2)
        states, logs, rewards = numpy.zeros((32, 8), dtype=numpy.float32), [], []
        for _ in range(120):
            chosen = torch.distributions.Categorical(logits=policy(torch.from_numpy(states).cuda()), validate_args=False)
            actions = chosen.sample()
            logs.append(chosen.log_prob(actions))
            rewards.append(advance(states, actions.cpu().numpy()))
        loss = -(torch.stack(logs).mean(1) * torch.tensor(rewards, device="cuda")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    end(len(rewards))


# An event loop that copies, computes and waits for the GPU within its coroutines.
def server():
    import asyncio
    import torch
    net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(10)]).cuda().eval().half()

    @timed
    def infer(x):
        with torch.no_grad():
            return net(x.cuda()).float().cpu()

    async def client(queue):
        for _ in range(60):
            answer = asyncio.get_running_loop().create_future()
            await queue.put((torch.randn(256, 4096).half(), answer))
            await answer
            await asyncio.sleep(0.001)

    async def serve(queue):
        while True:
            x, answer = await queue.get()
            answer.set_result(infer(x))

    async def run():
        queue = asyncio.Queue()
        task = asyncio.create_task(serve(queue))
        infer(torch.randn(256, 4096).half())
        start()
        await asyncio.gather(*[client(queue) for _ in range(8)])
        task.cancel()

    asyncio.run(run())
    end(0)


# A server of connections, whose loop waits for the GPU while other clients' requests are there. sockets_apart: in another thread.
def serve_sockets(apart):
    import asyncio
    import torch
    net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(10)]).cuda().eval().half()
    x = torch.ones(8192, 4096, device="cuda", dtype=torch.float16)
    client = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\nfor _ in range(60):\n s.sendall(b'ask\\n')\n s.recv(64)"
    answers = []

    @timed
    def infer():
        with torch.no_grad():
            return net(x)[0, 0].item()

    async def serve(reader, writer):
        while await reader.readline():
            answers.append(await asyncio.to_thread(infer) if apart else infer())
            writer.write(b"%f\n" % answers[-1])
        writer.close()

    async def run():
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = str(listener.sockets[0].getsockname()[1])
        infer()
        start()
        clients = [await asyncio.create_subprocess_exec(sys.executable, "-c", client, port) for _ in range(8)]
        for one in clients:
            await one.wait()

    asyncio.run(run())
    end(len(answers))


def sockets():
    serve_sockets(apart=False)


def sockets_apart():
    serve_sockets(apart=True)

# Threads that share a model, its lock held while they decode.
def lock():
    import threading
    import torch
    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda().eval()
    x, guard = torch.randn(64, 1024), threading.Lock()

    def decode(y):
        return sum(hash((round(float(v), 3), k)) % 7 for k, v in enumerate(y.flatten()[:3000]))

    @torch.no_grad()
    def handle(n):
        for _ in range(n):
            with guard:
                decode(net(x.cuda()).cpu())
            time.sleep(0.0005)

    handle(20)
    start()
    threads = [threading.Thread(target=handle, args=(150,), name="worker-%d" % i) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end(0)


def pool():
    import cupy
    cupy.random.seed(0)
    a = cupy.random.rand(2048, 2048, dtype=cupy.float32)

    @timed
    def trim():
        cupy.get_default_memory_pool().free_all_blocks()

    for step in range(300):
        if step == 10:
            cupy.cuda.Device().synchronize()
            start()
        b = cupy.sqrt(cupy.abs(a @ a))
        b = b - b.mean()
        a = b / cupy.abs(b).max()
        trim()
    end(round(float(cupy.abs(a).sum()), 0))


# Each gradient is looked at in each step.
def nan():
    import torch
    net = torch.nn.Sequential(*[m for _ in range(12) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(128, 512, device="cuda")

    @timed
    def check():
        for name, value in net.named_parameters():
            if torch.isnan(value.grad).any():
                raise SystemExit(name)

    for step in range(500):
        start_at(step, 20)
        loss = (net(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        check()
        optimizer.step()
    end(round(float(loss), 4))


# A transformer in bfloat16 by autocast, as it is: its casts and small kernels leave half of the GPU's time unused.
def amp():
    import torch
    torch.set_float32_matmul_precision("high")
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0, norm_first=True)
    net = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    x = torch.randn(16, 512, 1024, device="cuda")
    for step in range(90):
        start_at(step, 5)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = (net(x) - x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    end(round(float(loss), 1))


# GPT-2, the first half of its blocks on one GPU, the second half on another.
def halves():
    import torch
    from transformers import GPT2Config, GPT2Model
    model = GPT2Model(GPT2Config(vocab_size=1000, n_embd=1024, n_layer=12, n_head=16, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0))
    first, second = torch.nn.ModuleList(model.h[:6]).to("cuda:0"), torch.nn.ModuleList(model.h[6:]).to("cuda:1")
    words, head = model.wte.to("cuda:0"), torch.nn.Linear(1024, 1000).to("cuda:1")
    parts = [*first.parameters(), *second.parameters(), *words.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parts, lr=0.01)
    ids = torch.randint(0, 1000, (8, 512))

    def hidden(made):
        return made[0] if isinstance(made, tuple) else made

    for step in range(60):
        start_at(step, 5)
        x = words(ids.to("cuda:0"))
        for block in first:
            x = hidden(block(x))
        x = x.to("cuda:1")
        for block in second:
            x = hidden(block(x))
        loss = torch.nn.functional.cross_entropy(head(x).flatten(0, 1), ids.to("cuda:1").flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize(1)
    end(round(float(loss), 2))


# DataParallel: threads for each step, weights sent to the second GPU in each step.
def parallel():
    import torch
    net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(2048, 2048), torch.nn.ReLU())])
    net = torch.nn.DataParallel(net.cuda(), device_ids=[0, 1])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(1024, 2048, device="cuda")
    for step in range(220):
        start_at(step, 20)
        optimizer.zero_grad()
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    end(round(float(loss), 3))


# An ordinary differential equation, whose solver looks at the error of each step.
def ode():
    import torch
    from torchdiffeq import odeint
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64)).cuda()
    x = torch.randn(128, 64, device="cuda")
    times = torch.linspace(0, 4, 20, device="cuda")
    with torch.no_grad():
        for step in range(32):
            start_at(step, 2)
            y = odeint(lambda t, z: net(z), x, times, rtol=1e-5, atol=1e-6, method="dopri5")
    end(round(float(y.sum()), 2))


# A chain of NUTS in one compiled program, and its convergence, chain by chain, in Python.
def mcmc():
    import jax
    import jax.numpy as jnp
    import numpy
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS
    x = numpy.random.default_rng(0).normal(size=(2000, 8)).astype(numpy.float32)
    y = x @ numpy.arange(8, dtype=numpy.float32)

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(jnp.zeros(8), 1.0))
        numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)

    @timed
    def diagnose(samples):
        rows = numpy.asarray(samples)
        return sum(abs(float(a) - float(b)) > 1 for row in rows for a, b in zip(row, row[1:])) + len([v for v in rows.flatten() if v > 3])

    chain = MCMC(NUTS(model), num_warmup=50, num_samples=200, progress_bar=False)
    for turn in range(6):
        if turn == 1:
            start()
        chain.run(jax.random.PRNGKey(turn), x, y)
        found = [diagnose(chain.get_samples()["w"]) for _ in range(20)]
    end(found[0])


# Pictures, decoded and cut by two workers.
def images():
    import io
    import numpy
    import torch
    import torchvision
    from PIL import Image
    from torchvision import transforms
    noise = numpy.random.default_rng(0).integers(0, 255, (512, 512, 3), dtype=numpy.uint8)
    packed = io.BytesIO()
    Image.fromarray(noise).resize((700, 500)).save(packed, "JPEG")
    cut = transforms.Compose([transforms.CenterCrop(224), transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.2,) * 3)])

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 64 * 40

        def __getitem__(self, i):
            return cut(Image.open(io.BytesIO(packed.getvalue())).rotate(i % 7)), i % 10

    net = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=64, num_workers=2, pin_memory=True)
    for step, (x, y) in enumerate(loader):
        start_at(step, 3)
        loss = torch.nn.functional.cross_entropy(net(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    end(round(float(loss), 1))


# Sentences, split into pieces by Python and put together into one batch.
def embed():
    import torch
    from transformers import BertConfig, BertModel
    net = BertModel(BertConfig(vocab_size=2000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)).cuda().eval()
    sentences = ["the %dth sentence says little about %d other things than those before it" % (i, i * 7) for i in range(64)]

    @timed
    def pieces(text):
        found = []
        for word in text.split():
            while word:
                cut = max((n for n in range(1, len(word) + 1) if hash_of(word[:n]) % 3 or n == 1), default=1)
                found.append(hash_of(word[:cut]) % 2000)
                word = word[cut:]
        return (found + [0] * 64)[:64]

    def hash_of(word):
        value = 7
        for letter in word:
            value = (value * 31 + ord(letter)) % 1000003
        return value

    with torch.no_grad():
        for step in range(120):
            start_at(step, 5)
            ids = torch.tensor([pieces(s) for s in sentences]).cuda()
            out = net(input_ids=ids).last_hidden_state.mean(1)
            answer = torch.nn.functional.normalize(out, dim=1).cpu()
    end(round(float(answer.sum()), 2))


# Spectra of records that the host prepares, there and back through pageable memory.
def spectra():
    import cupy
    import numpy
    records = numpy.random.default_rng(0).normal(size=(64, 1 << 16)).astype(numpy.float32)

    @timed
    def detrend(step):
        block = numpy.roll(records, step, axis=1)
        return (block - numpy.median(block, axis=1, keepdims=True)) * numpy.hanning(block.shape[1]).astype(numpy.float32)

    total = 0.0
    for step in range(60):
        if step == 5:
            start()
        power = cupy.abs(cupy.fft.rfft(cupy.asarray(detrend(step)), axis=1)) ** 2
        total += float(power.get()[:, 10].sum())
    end(round(total, 0))


# Hugging Face's accelerate, which writes the state of the training every twentieth step.
def states():
    import torch
    from accelerate import Accelerator
    helper = Accelerator()
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, dropout=0.0), 6, enable_nested_tensor=False)
    data = torch.utils.data.DataLoader(torch.randn(16 * 162, 128, 768), batch_size=16)
    net, optimizer, data = helper.prepare(net, torch.optim.AdamW(net.parameters(), lr=1e-4), data)
    with tempfile.TemporaryDirectory() as folder:
        @timed
        def keep_state(step):
            helper.save_state(os.path.join(folder, "state"))

        for step, x in enumerate(data):
            start_at(step, 2)
            with helper.accumulate(net):
                loss = (net(x) - x).square().mean()
                helper.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if step % 20 == 10:
                keep_state(step)
    end(round(float(loss), 2))


# Bayesian optimisation: its acquisition function is maximised by SciPy, on the host.
def bayes():
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood
    x = torch.rand(40, 4, dtype=torch.double, device="cuda")
    y = torch.sin(x.sum(1, keepdim=True) * 4)
    bounds = torch.stack([torch.zeros(4), torch.ones(4)]).double().cuda()
    for turn in range(6):
        if turn == 1:
            start()
        model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        best, value = optimize_acqf(LogExpectedImprovement(model, best_f=y.max()), bounds=bounds, q=1, num_restarts=4, raw_samples=32)
        x, y = torch.cat([x, best]), torch.cat([y, torch.sin(best.sum(1, keepdim=True) * 4)])
    end(round(float(y.max()), 1))

# Tables on the host, whose rows are sent to the GPU. pinned: into memory that is kept, and pinned.
def recommend(pinned=False):
    import torch
    table = torch.randn(2_000_000, 64)
    net = torch.nn.Sequential(torch.nn.Linear(64 * 26, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512), torch.nn.ReLU(),
                              torch.nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.Adagrad(net.parameters())
    kept = torch.empty(8192 * 26, 64).pin_memory() if pinned else None

    @timed
    def gather(ids):
        return torch.index_select(table, 0, ids.flatten(), out=kept) if pinned else table[ids.flatten()]

    for step in range(160):
        start_at(step, 10)
        x = gather(torch.randint(0, 2_000_000, (8192, 26))).to("cuda", non_blocking=pinned).reshape(8192, -1)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    end(round(float(loss), 2))


def recommend_pinned():
    recommend(True)


# Results of 256 MiB come back in each step, to memory that is new each time. pinned: to memory that is kept, and pinned.
def readout(pinned=False):
    import torch
    net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU())]).cuda().eval()
    x = torch.randn(64, 64, 128, 128, device="cuda")
    kept = torch.empty(64, 64, 128, 128).pin_memory() if pinned else None
    with torch.no_grad():
        for step in range(120):
            start_at(step, 10)
            y = net(x)
            if pinned:
                kept.copy_(y, non_blocking=True)
                torch.cuda.synchronize()
            else:
                y.cpu()
    end(round(float(y.sum()), 0))


def readout_pinned():
    readout(True)


# The allocator gives everything back in each step. never: it does not, for comparison.
def emptycache(never=False):
    import torch
    net = torch.nn.Sequential(*[m for _ in range(12) for m in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x = torch.randn(2048, 2048, device="cuda")
    for step in range(300):
        start_at(step, 10)
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not never:
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    end(round(float(loss), 2))


def emptycache_never():
    emptycache(True)


# Batches of any size in little memory: now and then the allocator has to give back what it keeps, and waits for a GPU that works all the time.
def fragment(memory=0.035):
    import random
    import torch
    random.seed(0)
    torch.cuda.set_per_process_memory_fraction(memory)
    net = torch.nn.Sequential(*[m for _ in range(8) for m in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    for step in range(160):
        start_at(step, 10)
        loss = net(torch.randn(random.randrange(2000, 26000), 2048, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    end(torch.cuda.memory_stats()["num_alloc_retries"])


def fragment_never():
    fragment(0.9)


# Five epochs; cuDNN tries its kernels, and compiles some, in the first one.
def vision():
    import numpy
    import torch
    import torchvision
    torch.backends.cudnn.benchmark = True

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 64 * 40

        def __getitem__(self, i):
            return numpy.random.default_rng(i).standard_normal((3, 96, 96), dtype=numpy.float32), i % 100

    net = torchvision.models.resnet50(num_classes=100).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    loader = torch.utils.data.DataLoader(Pictures(), 64, num_workers=8, pin_memory=True, persistent_workers=True)

    @timed
    def keep(path):
        torch.save(net.state_dict(), path)

    for epoch in range(5):
        start_at(epoch, 1)
        for x, y in loader:
            x, y = x.cuda(non_blocking=True).to(memory_format=torch.channels_last), y.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            keep(os.path.join(folder, "net.pt"))
    end(0)


# Boxes are chosen class by class: each mask and each choice is read back. batched: in one call, for comparison.
def nms(batched=False):
    import torch
    import torchvision
    net, x = torchvision.models.resnet18().cuda().eval(), torch.randn(8, 3, 224, 224, device="cuda")
    boxes, scores = torch.rand(2000, 4, device="cuda") * 200, torch.rand(2000, 80, device="cuda")
    boxes[:, 2:] += boxes[:, :2]

    @timed
    def select():
        if batched:
            return torchvision.ops.batched_nms(boxes, scores[:, 0], torch.arange(2000, device="cuda") % 80, 0.5)
        kept = []
        for number in range(80):
            mask = scores[:, number] > 0.9
            kept.append(torchvision.ops.nms(boxes[mask], scores[mask, number], 0.5))
        return torch.cat(kept)

    with torch.no_grad():
        for step in range(80):
            start_at(step, 3)
            net(x)
            chosen = select()
    end(len(chosen))


def nms_batched():
    nms(True)


# A plan of cuFFT for each transform. kept: CuPy keeps them, as it does by itself.
def plans(kept=False):
    import cupy
    if not kept:
        cupy.fft.config.get_plan_cache().set_size(0)
    x = cupy.ones((64, 4096), dtype=cupy.complex64)

    @timed
    def spectrum():
        return cupy.fft.fft(x)

    for step in range(1500):
        if step == 3:
            cupy.cuda.Device().synchronize()
            start()
        x = cupy.fft.ifft(spectrum() * 0.999)
    end(round(float(abs(x).sum()), 1))


def plans_kept():
    plans(True)


# A function in NumPy, called back in each step. jitted: in jax.numpy.
def callback(jitted=False):
    import jax
    import numpy

    @timed
    def simulate(x):
        return numpy.tanh(numpy.asarray(x)).cumsum(1)

    @jax.jit
    def step(w, x):
        y = x @ w
        z = jax.numpy.tanh(y).cumsum(1) if jitted else jax.pure_callback(simulate, jax.ShapeDtypeStruct(y.shape, y.dtype), y)
        return w - 1e-8 * x.T @ z, z.mean()

    w, x = jax.numpy.full((1024, 1024), 0.01), jax.numpy.ones((2048, 1024))
    for i in range(150):
        w, mean = step(w, x)
        if i == 3:
            mean.block_until_ready()
            start()
    end(round(float(mean), 2))


def callback_jitted():
    callback(True)


# What the network is fed is computed on the CPU. gpu: by the same module, moved there.
def features(gpu=False):
    import torch
    import torchaudio
    torch.set_num_threads(4)
    spectrogram = torchaudio.transforms.MelSpectrogram(16000, n_mels=64).to("cuda" if gpu else "cpu")
    net = torch.nn.Sequential(torch.nn.Conv1d(64, 256, 5), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(),
                              torch.nn.Linear(256, 10)).cuda()
    optimizer, wave = torch.optim.Adam(net.parameters()), torch.randn(64, 48000)

    @timed
    def prepare():
        return spectrogram(wave.cuda()) if gpu else spectrogram(wave).cuda()

    for step in range(100):
        start_at(step, 3)
        optimizer.zero_grad()
        loss = net(prepare()).square().mean()
        loss.backward()
        optimizer.step()
    end(round(float(loss), 4))


def features_gpu():
    features(True)


# torch.profiler is left on. off: without it.
def profiled(off=False):
    import contextlib
    import torch
    net = torch.nn.Sequential(*[m for _ in range(24) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]).cuda()
    optimizer, x = torch.optim.AdamW(net.parameters()), torch.randn(512, 512, device="cuda")
    start()
    with contextlib.nullcontext() if off else torch.profiler.profile(with_stack=True, record_shapes=True):
        for _ in range(300):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
    end(round(float(loss), 4))


def profiled_off():
    profiled(True)


KINDS = [nms, nms_batched, plans, plans_kept, callback, callback_jitted, features, features_gpu, profiled, profiled_off, recommend, recommend_pinned, readout, readout_pinned, emptycache, emptycache_never, fragment, fragment_never, vision, eager,
         trainer, generate, lightning, gp, graphs, rejit, flax, agent, server, sockets, sockets_apart, lock, pool, nan, amp, halves,
         parallel, ode, mcmc, images, embed, spectra, states, bayes]
if __name__ == "__main__":
    run = {kind.__name__: kind for kind in KINDS}[sys.argv[1]]
    if run not in (rejit, flax, pool, mcmc, spectra, plans, plans_kept, callback, callback_jitted):
        import torch
        torch.manual_seed(0)
    run()
