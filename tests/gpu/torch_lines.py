# tests/gpu/torch_lines.py: asynchronous copies of pageable memory in PyTorch, from where its users make them.
# Prints for each what cudaspy has to tell, "more=0 line:function:file,..." innermost first, by the
# interpreter's own idea of its frames. tests/gpu/lines compares.
import os
import sys
import threading

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from python_note import note

device = torch.device("cuda")
host = torch.zeros(64 << 20, dtype=torch.uint8)
torch.zeros(1, device=device)


def copy():
    return note(sys._getframe()), host.to(device, non_blocking=True)


class Inner(torch.nn.Module):
    def forward(self, x):
        copy()
        return x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(Inner()))

    def forward(self, x):
        return self.layers(
            x
        )


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        copy()
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        copy()
        return gradient * 2


@torch.no_grad()
def without_gradients():
    for _ in (copy() for _ in range(1)):
        pass


copy()
Model()(torch.zeros(1))
without_gradients()
x = torch.ones(1, device=device, requires_grad=True)
Function.apply(x).sum().backward()  # the second copy is made in the engine's thread
thread = threading.Thread(target=copy)
thread.start()
thread.join()
torch.cuda.synchronize()
