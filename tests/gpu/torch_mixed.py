# tests/gpu/torch_mixed.py: what PyTorch programs do: matrix products through cuBLAS, streams, copies
# from pinned and pageable memory, .item(), a CUDA graph captured and replayed, a DataLoader with
# worker processes. All numbers are small integers, exact in any order of summation, so that two runs
# print the same. Exit status 0 only if they are right.
import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        return torch.full((16, 16), float(i % 7)), i


def show(name, value, expected):
    print("%-28s %s%s" % (name, value, "" if value == expected else "  WRONG, not %s" % expected))
    return value == expected


def matmuls():
    a = (torch.arange(256 * 256, device="cuda") % 3).float().reshape(256, 256)
    b = (torch.arange(256 * 256, device="cuda") % 5).float().reshape(256, 256)
    host = (a.cpu().double() @ b.cpu().double()).sum().item()
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    for _ in range(200):
        total += (a @ b).double().sum()
    ok = show("matmul", total.item(), 200 * host)
    half = (a.half() @ torch.eye(256, device="cuda").half()).float().sum().item()
    return show("matmul half", half, a.cpu().sum().item()) and ok


def streams():
    side = torch.cuda.Stream()
    event = torch.cuda.Event()
    x = torch.ones(1 << 20, device="cuda")
    event.record()
    with torch.cuda.stream(side):
        side.wait_event(event)
        y = x * 3
    torch.cuda.current_stream().wait_stream(side)
    return show("streams", int((x + y).sum().item()), 4 << 20)


def copies():
    ok = True
    for pinned in (False, True):
        source = torch.arange(1 << 18, dtype=torch.int64)
        if pinned:
            source = source.pin_memory()
        target = torch.empty(1 << 18, dtype=torch.int64, pin_memory=pinned)
        for _ in range(20):
            device = source.to("cuda", non_blocking=True)
            target.copy_(device * 2, non_blocking=True)
            torch.cuda.synchronize()
        expected = int(source.sum()) * 2
        ok &= show("copies %s" % ("pinned" if pinned else "pageable"), int(target.sum()), expected)
    small = torch.tensor([1, 2, 3]).to("cuda", non_blocking=True)
    return show("small copy", small.tolist(), [1, 2, 3]) and ok


def graph():
    x = torch.zeros(1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            x.add_(1)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        x.add_(1)
        x.mul_(2)
    x.zero_()
    for _ in range(10):
        captured.replay()
    torch.cuda.synchronize()
    return show("graph", x[0].item(), 2.0 * (2**10 - 1))


def loader(workers, context):
    total = 0
    batches = DataLoader(
        Numbers(),
        batch_size=32,
        num_workers=workers,
        pin_memory=True,
        multiprocessing_context=multiprocessing.get_context(context),
    )
    for values, _ in batches:
        total += values.to("cuda", non_blocking=True).sum().item()
    return show("loader %s" % context, total, float(sum(i % 7 for i in range(256)) * 256))


def main():
    if not torch.cuda.is_available():
        sys.exit("torch_mixed: PyTorch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    ok = matmuls()
    ok &= streams()
    ok &= copies()
    ok &= graph()
    ok &= loader(4, "fork")
    ok &= loader(1, "spawn")
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        ok = False
    except torch.cuda.OutOfMemoryError:
        print("out of memory is an exception")
    print("right" if ok else "FAILED")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
