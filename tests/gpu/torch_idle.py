# tests/gpu/torch_idle.py: a training whose GPU has little to do, for one reason or another, and how much it really had
# to do, as torch.profiler (CUPTI) sees it in the same run.
#
#   torch_idle.py loader|launch|sleep|read|gil|busy [STEPS [bare]]
#
#   loader   batches come from a DataLoader whose only worker takes 10 ms for each
#   launch   a small network, in small steps, whose loss is looked at each time
#   sleep    time.sleep(0.005) between two steps
#   read     the batch is read from a pipe that another process fills every 5 ms
#   gil      three other threads run Python meanwhile
#   busy     a large network: the GPU is the longer part
#
#   bare     without torch.profiler: for those who measure with CUPTI themselves
#
# Prints the last loss, and in lines with # when the loop began and ended (ns of CLOCK_REALTIME), and, unless bare, how
# long it took and how long the GPU worked in it (the union of its kernels, copies and memsets).
import os
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 64


class Rows(Dataset):
    def __init__(self, count, delay):
        self.count, self.delay = count, delay

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.delay)
        generator = torch.Generator().manual_seed(i)
        return torch.randn(256, generator=generator), i % 10


def network(width):
    return torch.nn.Sequential(torch.nn.Linear(256, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
                               torch.nn.ReLU(), torch.nn.Linear(width, 10)).cuda()


def fill(end, steps):
    for _ in range(steps):
        time.sleep(0.005)
        os.write(end, b"x" * 64)
    os._exit(0)


def batches(mode, steps):
    """Each with what comes before it."""
    rows = torch.randn(BATCH, 256), torch.arange(BATCH) % 10
    if mode == "loader":
        yield from DataLoader(Rows(steps * BATCH, 0.010 / BATCH), batch_size=BATCH, num_workers=1)
        return
    if mode == "read":
        ends = os.pipe()
        if not os.fork():
            fill(ends[1], steps)
    for _ in range(steps):
        if mode == "sleep":
            time.sleep(0.005)
        elif mode == "read":
            os.read(ends[0], 64)
        yield rows


def spin(stop):
    n = 0
    while not stop.is_set():
        n += 1


def loop(mode, steps):
    torch.manual_seed(1)
    model = network(8192 if mode == "busy" else 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    stop = threading.Event()
    others = [threading.Thread(target=spin, args=(stop,)) for _ in range(3 if mode == "gil" else 0)]
    for thread in others:
        thread.start()
    torch.cuda.synchronize()
    begun, begin_ns, loss = time.perf_counter(), time.time_ns(), None
    for x, y in batches(mode, steps):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        for _ in range(20 if mode == "busy" else 1):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
        optimizer.step()
        loss.item()
    torch.cuda.synchronize()
    took, end_ns = time.perf_counter() - begun, time.time_ns()
    stop.set()
    for thread in others:
        thread.join()
    return loss.item(), took, (begin_ns, end_ns)


def worked(profiler, took):
    """Of the last so many seconds that there is something of: the union of what ran on the GPU."""
    spans = sorted((e.time_range.start, e.time_range.end) for e in profiler.events()
                   if e.device_type == torch.autograd.DeviceType.CUDA)
    total, last = 0.0, spans[-1][1] - took * 1e6 if spans else 0.0
    for begin, end in spans:
        begin = max(begin, last)
        if end > begin:
            total += end - begin
            last = end
    return total / 1e6


def main():
    mode, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    loop(mode, 5)
    if "bare" in sys.argv[3:]:
        loss, took, span = loop(mode, steps)
        print(mode, loss)
        print("# loop %d %d" % span)
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        loss, took, span = loop(mode, steps)
    busy = worked(profiler, took)
    print(mode, loss)
    print("# loop %d %d" % span)
    print("# took %.1f ms, GPU worked %.1f ms, idle %.1f %%" % (took * 1e3, busy * 1e3, 100 * (1 - busy / took)))


main()
