# tests/gpu/jax_loop.py: a training in JAX: a step is one compiled function, and the host looks at the loss in every
# tenth step.
#
#   jax_loop.py [STEPS]
#
# Prints losses, and in a line with # when the loop began and ended (ns of CLOCK_REALTIME).
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")

import jax
import jax.numpy as jnp

STEPS = 500
WARM = 20
BATCH, WIDTH, LAYERS = 256, 512, 4

if jax.default_backend() != "gpu":
    sys.exit("jax_loop: JAX finds no GPU")


def loss_of(weights, x, y):
    for w in weights[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ weights[-1] - y) ** 2)


@jax.jit
def step(weights, x, y):
    loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
    return [w - 0.05 * slope for w, slope in zip(weights, slopes)], loss


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    keys = jax.random.split(jax.random.PRNGKey(1), LAYERS + 2)
    weights = [jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH**0.5 for k in keys[:LAYERS]]
    x, y = (jax.random.normal(k, (BATCH, WIDTH)) for k in keys[LAYERS:])
    for _ in range(WARM):
        weights, loss = step(weights, x, y)
    jax.block_until_ready(weights)
    losses, begin_ns = [], time.time_ns()
    for number in range(steps):
        weights, loss = step(weights, x, y)
        if number % 10 == 0:
            losses.append(float(loss))
    jax.block_until_ready(weights)
    end_ns = time.time_ns()
    for number in range(0, len(losses), max(1, len(losses) // 5)):
        print("step %d loss %.5f" % (10 * number, losses[number]))
    print("# loop %d %d" % (begin_ns, end_ns))


main()
