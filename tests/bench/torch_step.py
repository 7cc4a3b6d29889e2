# tests/bench/torch_step.py: the time of a training step of a network so small that launching its
# kernels is all it does: the worst case for a tracer. Prints the median of many steps.
import statistics
import sys
import time

import torch

if not torch.cuda.is_available():
    sys.exit("torch_step: PyTorch finds no GPU")
torch.manual_seed(1)
layers = [torch.nn.Linear(64, 64) for _ in range(12)]
model = torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(32, 64, device="cuda")
y = torch.randn(32, 64, device="cuda")

times = []
for step in range(440):
    begin = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    torch.cuda.synchronize()
    if step >= 40:
        times.append((time.perf_counter() - begin) * 1e3)
print("step_ms %.4f" % statistics.median(times))
