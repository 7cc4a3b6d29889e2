# tests/gpu/torch_loader.py: a training loop and a thread that loads its data: a DataLoader with worker
# processes, pinned and pageable batches, copies on a stream of the thread's own. Prints the losses,
# which are the same in every run (with CUBLAS_WORKSPACE_CONFIG=:4096:8), and in a line with # the
# time of a step.
import queue
import statistics
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = 300
WARM = 40


class Numbers(Dataset):
    def __len__(self):
        return STEPS * 128

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        x = torch.randn(256, generator=generator)
        return x, x[:16].abs()


def load(batches):
    """The loading thread. Every fourth batch is left in pageable memory, as it is easily forgotten."""
    stream = torch.cuda.Stream()
    workers = DataLoader(Numbers(), batch_size=128, num_workers=4)
    try:
        with torch.cuda.stream(stream):
            for step, (x, y) in enumerate(workers):
                if step % 4:
                    x, y = x.pin_memory(), y.pin_memory()
                x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
                done = torch.cuda.Event()
                done.record(stream)
                batches.put((x, y, done))
    finally:
        batches.put(None)


def main():
    if not torch.cuda.is_available():
        sys.exit("torch_loader: PyTorch finds no GPU")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 16),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = queue.Queue(4)
    threading.Thread(target=load, args=(batches,), daemon=True).start()

    times, step = [], 0
    while True:
        batch = batches.get()
        if batch is None:
            break
        begin = time.perf_counter()
        x, y, done = batch
        torch.cuda.current_stream().wait_event(done)
        for tensor in (x, y):
            tensor.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print("step %d loss %s" % (step, loss.item().hex()))
        if step >= WARM:
            times.append((time.perf_counter() - begin) * 1e3)
        step += 1
    torch.cuda.synchronize()
    times.sort()
    print("# step_ms %.3f %.3f" % (statistics.median(times), times[int(0.99 * (len(times) - 1))]))
    return 0 if step == STEPS else 1


if __name__ == "__main__":
    sys.exit(main())
