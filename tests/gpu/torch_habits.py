# tests/gpu/torch_habits.py: a PyTorch training loop with three bad habits, or without: batches copied with
# non_blocking=True from memory that is not pinned, .item() in every step, and a tensor allocated for each
# step that no cache can give (its size changes). `torch_habits.py cured` does the same the right way.
# Prints the losses, which are the same both ways.
import sys

import torch

cured = sys.argv[1:] == ["cured"]
torch.manual_seed(1)
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps, batch = 150, 512
host = torch.randn(batch, 1024)
if cured:
    host = host.pin_memory()
scratch = torch.empty(steps * (1 << 20), dtype=torch.uint8, device=device) if cured else None
losses = torch.zeros(steps, device=device)
shown = []
for step in range(steps):
    data = host.to(device, non_blocking=True)
    bytes_wanted = (step + 1) * (1 << 20)
    if cured:
        work = scratch[:bytes_wanted]
    else:
        torch.cuda.empty_cache()
        work = torch.empty(bytes_wanted, dtype=torch.uint8, device=device)
    work.zero_()
    loss = (model(data) - data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if cured:
        losses[step] = loss.detach()
    else:
        shown.append(loss.item())
    del work
if cured:
    shown = losses.tolist()
print("%.5f %.5f %.5f" % (shown[0], shown[steps // 2], shown[-1]))
