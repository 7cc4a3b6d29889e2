# tests/gpu/torch_servers.py: a server with a worker for each GPU, as threads of one process or as processes.
# Each worker answers requests: it pins the request's memory, copies it to its GPU, multiplies, copies the answer
# back, and gives its cached memory back to the driver ("to be safe"), which makes the driver allocate anew.
#
#   torch_servers.py threads|processes [cured] [REQUESTS [WORKERS]]   cured: memory is pinned once and kept
#
# WORKERS: one for each GPU, or so many, which share the GPUs.
#
# Prints the sums of the answers, which are the same in every run and in every way, and in lines with # when the first
# request began and the last one was answered (ns of CLOCK_REALTIME), and the time of a request.
import statistics
import sys
import threading
import time

import torch
import torch.multiprocessing as multiprocessing

ROWS, COLUMNS = 1024, 1024


def answer(gpu, weights, batch, pinned, stream):
    with torch.cuda.stream(stream):
        x = (pinned.copy_(batch) if pinned is not None else batch).to(gpu, non_blocking=True)
        y = x
        for _ in range(4):
            y = torch.remainder(y @ weights, 7)
        total = y.sum()
    stream.synchronize()
    return int(total.item())


def serve(number, requests, cured, results, start):
    gpu = torch.device("cuda", number % torch.cuda.device_count())
    torch.cuda.set_device(gpu)
    generator = torch.Generator().manual_seed(number)
    weights = torch.randint(0, 3, (COLUMNS, COLUMNS), generator=generator).float().to(gpu)
    stream = torch.cuda.Stream(gpu)
    kept = torch.empty(ROWS, COLUMNS, pin_memory=True) if cured else None
    cudart = torch.cuda.cudart()
    batches = [torch.randint(0, 3, (ROWS, COLUMNS), generator=generator).float() for _ in range(8)]
    answer(gpu, weights, batches[0], kept, stream)
    start.wait()
    times, total, begin_ns = [], 0, time.time_ns()
    for i in range(requests):
        begun = time.perf_counter()
        batch = batches[i % len(batches)]
        if not cured:
            cudart.cudaHostRegister(batch.data_ptr(), batch.numel() * 4, 0)
        total += answer(gpu, weights, batch, kept, stream)
        if not cured:
            cudart.cudaHostUnregister(batch.data_ptr())
            torch.cuda.empty_cache()
        times.append(time.perf_counter() - begun)
    results.put((number, total, statistics.mean(times), begin_ns, time.time_ns()))


def main():
    way, options = sys.argv[1], sys.argv[2:]
    cured = "cured" in options
    numbers = [int(o) for o in options if o.isdigit()]
    requests = numbers[0] if numbers else 200
    count = numbers[1] if len(numbers) > 1 else torch.cuda.device_count()
    torch.backends.cuda.matmul.allow_tf32 = False
    if way == "threads":
        import queue

        results, start, Worker = queue.Queue(), threading.Barrier(count), threading.Thread
    else:
        context = multiprocessing.get_context("spawn")
        results, start, Worker = context.Queue(), context.Barrier(count), context.Process
    workers = [
        Worker(target=serve, args=(n, requests, cured, results, start))
        for n in range(count)
    ]
    for worker in workers:
        worker.start()
    answers = sorted(results.get() for _ in workers)
    for worker in workers:
        worker.join()
    for number, total, *_ in answers:
        print("worker %d: %d" % (number, total))
    print("# loop %d %d" % (min(a[3] for a in answers), max(a[4] for a in answers)))
    print("# %.0f us a request" % (1e6 * statistics.mean(a[2] for a in answers)))


if __name__ == "__main__":
    main()
