"""tests/e2e/sampled.py KIND STEPS: a program whose GPU waits for Python, of known shares. Prints these in per cent: of each function the
least and the most, for on a busy machine it is known only of long times between calls how much of them the thread had no CPU."""
import copy
import ctypes
import gc
import os
import sys
import threading
import time
import zlib

cuda = ctypes.CDLL("libcudart.so.13")
memory, host = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 16)
spent = {}


def load(n):
    x = 0
    for i in range(5 * n):
        x += i * i
    return x


def augment(n):
    x = 0
    for i in range(3 * n):
        x += i * i
    return x


def log(n):
    x = 0
    for i in range(2 * n):
        x += i * i
    return x


def collect():
    gc.collect()


def pieces(n):
    """Generators, which come and go, and which C code asks for their values."""
    for i in range(n):
        word = str(100000 + i)
        max(sum(ord(letter) for letter in word[:k]) for k in range(1, 6))


def save(n):
    with open(os.devnull, "w") as file:
        for i in range(n):
            print(i, file=file)


def deep():
    copy.deepcopy(nested)


def pack(n):
    for _ in range(n):
        zlib.compress(texts, 6)


def alternate(n):
    """A line in C and one in Python, by turns, both far shorter than the time between two samples."""
    x = 0
    for _ in range(n):
        zlib.compress(text, 6)
        x = sum(i * x for i in range(150))


def pt_loader():
    while True:
        augment(30000)


def submit(calls=400, n=0):
    """As a framework does: some Python for each small operation; or something of the program's own, that takes longer."""
    for i in range(calls):
        x = [str(j) for j in range(40)]
        if n:
            augment(n)
        cuda.cudaMemsetAsync(memory, 0, 64, None)


def augment_often(calls):
    """Some microseconds of Python for each call: a look at the thread takes longer."""
    for i in range(calls):
        [str(j) for j in range(30)]
        cuda.cudaMemsetAsync(memory, 0, 64, None)


def log_often(calls):
    for i in range(calls):
        [str(j) for j in range(30)]
        cuda.cudaMemsetAsync(memory, 0, 64, None)


def timed(function, *args):
    begun, ran = time.perf_counter(), time.thread_time()
    function(*args)
    wall, cpu = spent.get(function.__name__, (0, 0))
    spent[function.__name__] = wall + time.perf_counter() - begun, cpu + time.thread_time() - ran


def step(kind, number):
    if kind == "shares":
        for function in (load, augment, log):
            timed(function, 800)
    elif kind == "rare":  # nine short gaps, then a long one
        timed(load, 400)
        if number % 10 == 9:
            timed(save, 60000)
    elif kind == "gc":
        timed(collect)
    elif kind == "generators":
        timed(load, 2000)
        timed(pieces, 400)
    elif kind == "gil":
        timed(load, 4000)
    elif kind == "eager-slow":
        timed(submit, 40, 3000)
    elif kind in ("eager", "eager-load"):
        timed(submit)
        if kind == "eager-load":
            timed(load, 8000)
    elif kind == "quick":
        timed(augment_often, 300)
        timed(log_often, 100)
    elif kind == "c":
        timed(pack, 2)
        timed(load, 200)
    elif kind == "interpreter":
        timed(load, 20000)
    elif kind == "c-alternate":
        timed(alternate, 30)
    elif kind == "naps":  # for what takes time and no CPU
        time.sleep(0.01)
    elif kind == "deep":  # two frames of a library for each level
        for _ in range(40):
            timed(deep)
    cuda.cudaMemcpy(memory, host, 1 << 16, 1)
    cuda.cudaDeviceSynchronize()


kind, steps = sys.argv[1], int(sys.argv[2])
junk = [[i] for i in range(60000 if kind == "gc" else 10)]
text = bytes((i * i >> 3) % 251 for i in range(4000))
texts = text * 20
nested = []
for _ in range(60):
    nested = [nested]
other = threading.Thread(target=pt_loader if kind == "gil" else time.sleep, args=() if kind == "gil" else (100,), daemon=True)
other.start()
cuda.cudaMalloc(ctypes.byref(memory), 1 << 20)
for number in range(steps):
    step(kind, number)
for name, (wall, cpu) in spent.items():
    others = [times for other, times in spent.items() if other != name]
    print(name, 100 * cpu / (cpu + sum(times[0] for times in others)), 100 * wall / (wall + sum(times[1] for times in others)))
