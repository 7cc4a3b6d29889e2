# tests/gpu/torch_turns.py early|late: a product on the GPU, and work of the host that does not need it. `early`
# waits for the GPU first, so that the two take turns; `late` waits when its own work is done. Prints how long
# each way took.
import sys
import time

import torch

STEPS, SIZE, HOST_MS = 100, 4096, 3
x = torch.randn(SIZE, SIZE, device="cuda")
w = torch.randn(SIZE, SIZE, device="cuda")
late = sys.argv[1:] == ["late"]


def host_work():
    end = time.perf_counter() + HOST_MS / 1000
    while time.perf_counter() < end:
        pass


begin = time.perf_counter()
for step in range(STEPS):
    y = x @ w
    if not late:
        torch.cuda.synchronize()
    host_work()
    if late:
        torch.cuda.synchronize()
print("%s %.3f s" % ("late" if late else "early", time.perf_counter() - begin))
