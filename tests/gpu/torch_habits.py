# tests/gpu/torch_habits.py: a PyTorch training loop (cuDNN, cuBLAS) with three bad habits, or without:
# batches copied with non_blocking=True from memory that is not pinned, .item() in every step, and a buffer
# in every step that is given back to the driver and allocated anew. `torch_habits.py cured` does the same
# the right way, and never runs more than a few steps ahead of the GPU. Prints losses, which are the same both
# ways.
import sys

import torch

STEPS, BATCH, SCRATCH, AHEAD = 300, 512, 256 << 20, 8
cured = sys.argv[1:] == ["cured"]
torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
device = torch.device("cuda")
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 3, 3, padding=1),
    torch.nn.Flatten(),
    torch.nn.Linear(3 * 64 * 64, 64),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
host = torch.randn(BATCH, 3, 64, 64)
if cured:
    host = host.pin_memory()
    scratch = torch.empty(SCRATCH, dtype=torch.uint8, device=device)
losses = torch.zeros(STEPS, device=device)
shown = []
done = [torch.cuda.Event() for _ in range(AHEAD)]
for step in range(STEPS):
    data = host.to(device, non_blocking=True)
    if not cured:
        scratch = None
        torch.cuda.empty_cache()
        scratch = torch.empty(SCRATCH, dtype=torch.uint8, device=device)
    scratch.zero_()
    loss = model(data).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    if cured:
        losses[step] = loss.detach()
        if step >= AHEAD:
            done[step % AHEAD].synchronize()
        done[step % AHEAD].record()
    else:
        shown.append(loss.item())
if cured:
    torch.cuda.synchronize()  # else the copy below would be the one that waits
    shown = losses.tolist()
print("%.5f %.5f %.5f" % (shown[0], shown[STEPS // 2], shown[-1]))
