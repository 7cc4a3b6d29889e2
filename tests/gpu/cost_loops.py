# tests/gpu/cost_loops.py KIND SECONDS: loops of PyTorch and JAX for tests/gpu/cost.
#   train   a small model, step by step: many small kernels     tokens  a small transformer, a look at each token
#   matmul  large products by cuBLAS, a wait now and then        jax     a training step that is compiled as a whole
import os
import sys
import time

kind, seconds = sys.argv[1], float(sys.argv[2])


def train():
    import torch
    torch.manual_seed(1)
    layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss
    return step, lambda loss: loss.item()


def tokens():
    import torch
    layers = torch.nn.ModuleList([torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
                                  for _ in range(6)]).cuda().eval()
    head = torch.nn.Linear(512, 50257).cuda()
    x = torch.randn(1, 32, 512, device="cuda")

    @torch.no_grad()
    def step():
        h = x
        for layer in layers:
            h = layer(h)
        return head(h[:, -1]).argmax().item()
    return step, lambda token: None


def matmul():
    import torch
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    return lambda: a @ b, lambda product: torch.cuda.synchronize()


def jax_loop():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    keys = jax.random.split(jax.random.PRNGKey(1), 6)
    weights = [jax.random.normal(k, (256, 256)) / 16 for k in keys[:4]]
    x, y = (jax.random.normal(k, (64, 256)) for k in keys[4:])

    @jax.jit
    def train_step(weights):
        def loss_of(weights):
            h = x
            for w in weights:
                h = jnp.tanh(h @ w)
            return jnp.mean((h - y) ** 2)
        loss, gradients = jax.value_and_grad(loss_of)(weights)
        return [w - 0.05 * g for w, g in zip(weights, gradients)], loss

    def step():
        nonlocal weights
        weights, loss = train_step(weights)
        return loss
    return step, float


step, wait = {"train": train, "tokens": tokens, "matmul": matmul, "jax": jax_loop}[kind]()
wait(step())
begun, n = time.time(), 0
while time.time() - begun < seconds:
    for _ in range(20):
        result = step()
        n += 1
    wait(result)
print("steps/s %.1f" % (n / (time.time() - begun)))
