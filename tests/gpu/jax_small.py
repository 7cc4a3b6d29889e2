# tests/gpu/jax_small.py: a small JAX program: compiled functions, copies to and from the GPU. Exact
# integers, so that two runs print the same.
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

if jax.default_backend() != "gpu":
    sys.exit("jax_small: JAX finds no GPU")


@jax.jit
def step(x, w):
    return jnp.round(jnp.tanh(x @ w) * 0) + x @ w


x = jax.device_put(np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 3)
w = jnp.eye(64, dtype=jnp.float32) * 2
for _ in range(5):
    y = step(x, w)
total = float(np.asarray(y).sum())
expected = float((np.arange(64 * 64) % 3).sum() * 2)
print("sum %s" % total)
print("scan %d" % int(jax.lax.fori_loop(0, 100, lambda i, s: s + i, 0)))
print("right" if total == expected else "FAILED")
sys.exit(0 if total == expected else 1)
