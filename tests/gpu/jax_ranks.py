# tests/gpu/jax_ranks.py: two processes of one JAX program, each with a GPU, that sum what each has computed in every
# step; one of them holds the other up.
#
#   jax_ranks.py KIND STRAGGLER [--steps N]
#
# KIND       pmap, shard_map
# STRAGGLER  what the last process does in every eighth step: cpu (computes in Python), sleep, load (waits for data from a
#            process); none: nothing
#
# Processes that share a GPU need an MPS daemon, and NCCL takes each for a host of its own (NCCL_HOSTID). Prints the sums,
# which are the same in every run, and in lines with # how long the loop took. Leaves NVLink multicast off.
import argparse
import os
import subprocess
import sys
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

WIDTH, EVERY, RANKS = 1024, 8, 2


def load():
    with subprocess.Popen(["sh", "-c", "sleep 0.03; echo data"], stdout=subprocess.PIPE) as loader:
        loader.stdout.read()


def cpu():
    until = time.perf_counter() + 0.03
    total = 0
    while time.perf_counter() < until:
        total += 1


STRAGGLERS = {"load": load, "cpu": cpu, "sleep": lambda: time.sleep(0.03), "none": None}


def work(args):
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    import numpy

    rank = int(os.environ["RANK"])
    jax.distributed.initialize(os.environ["MASTER"], RANKS, rank, local_device_ids=[rank % int(os.environ["GPUS"])])
    held_up = STRAGGLERS[args.straggler] if rank == RANKS - 1 else None

    def compute(x, axis):
        for _ in range(4):
            x = jnp.tanh(x @ x.T) / WIDTH
            x = x + jax.lax.psum(x, axis)
        return x

    own = jnp.ones((WIDTH, WIDTH)) * (rank + 1) / WIDTH
    if args.kind == "pmap":
        step = jax.pmap(lambda x: compute(x, "ranks"), axis_name="ranks")
        x = own[None]
    else:
        mesh = Mesh(numpy.array(jax.devices()), ("ranks",))
        spec = PartitionSpec("ranks")
        shard_map = getattr(jax, "shard_map", None)
        if shard_map is None:
            from jax.experimental.shard_map import shard_map
        step = jax.jit(shard_map(lambda x: compute(x[0], "ranks")[None], mesh=mesh, in_specs=spec, out_specs=spec))
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, spec), numpy.asarray(own)[None])
    for number in range(3):
        jax.block_until_ready(step(x))
    began = time.time_ns()
    total = 0.0
    for number in range(args.steps):
        if held_up and number % EVERY == EVERY - 1:
            held_up()
        total += float(step(x).addressable_shards[0].data[0, 0, 0])
    ended = time.time_ns()
    print("rank %d: %s\n# rank %d: loop %d %d, %.1f ms" % (rank, total.hex(), rank, began, ended, (ended - began) / 1e6),
          flush=True)
    jax.distributed.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["pmap", "shard_map"])
    parser.add_argument("straggler", choices=list(STRAGGLERS))
    parser.add_argument("--steps", type=int, default=64)
    args = parser.parse_args()
    if "RANK" in os.environ:
        return work(args)
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.splitlines())
    ranks = []
    for rank in range(RANKS):
        where = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS), GPUS=str(gpus),
                     MASTER="127.0.0.1:%d" % (29500 + os.getpid() % 500))
        if RANKS > gpus:
            where["NCCL_HOSTID"] = str(rank)
        ranks.append(subprocess.Popen([sys.executable] + sys.argv, env=where))
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
