"""tests/recipes/standins/python/loader.py: in place of the page's loader.py where there is no PyTorch: a program that waits for its
workers, by CUDA's functions."""
import sys

from calls import Gpu, batches

STEPS, SIZE = 40, 64 * 1024


def main():
    gpu = Gpu(0, SIZE)
    for batch in batches(STEPS, int(sys.argv[1]), 0.03, SIZE):
        gpu.copy_in(batch)
        gpu.launch(1000)
        gpu.wait()
    print("done")


if __name__ == "__main__":
    main()
