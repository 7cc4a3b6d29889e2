"""tests/recipes/standins/python/train.py: in place of the page's train.py where there is no PyTorch: the same ranks, workers and
habits, by CUDA's and NCCL's functions."""
import os

from calls import Gpu, Ranks, batches

STEPS, SIZE = 60, 64 * 1024


def checkpoint():
    total = 0
    for number in range(400000):
        total += number % 7
    return total


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    gpu = Gpu(int(os.environ["LOCAL_RANK"]), SIZE)
    group = Ranks(rank, ranks)
    for step, batch in enumerate(batches(STEPS, 2, 0, SIZE)):
        gpu.copy_in(batch)
        gpu.launch(500)
        group.all_reduce(gpu)
        gpu.wait()
        if rank == 1 and step % 2 == 1:
            checkpoint()
    print(f"rank {rank}: done", flush=True)
    group.leave()


if __name__ == "__main__":
    main()
