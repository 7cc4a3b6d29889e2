# tests/gpu/torch_lines.py: asynchronous copies of pageable memory in PyTorch, from where its users make them.
# Prints for each what cudaspy has to tell, "more=0 line:function:file,..." innermost first, by the
# interpreter's own idea of its frames. tests/gpu/lines compares.
import sys
import threading

import torch

MOST = 24
names = hasattr((lambda: 0).__code__, "co_qualname")
device = torch.device("cuda")
host = torch.zeros(64 << 20, dtype=torch.uint8)
torch.zeros(1, device=device)


def note(frame):
    frames = []
    while frame:
        code = frame.f_code
        name = code.co_qualname if names else code.co_name
        frames.append("%d:%s:%s" % (frame.f_lineno, name, code.co_filename))
        frame = frame.f_back
    print("more=%d %s" % (len(frames) > MOST, ",".join(frames[:MOST])), flush=True)


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
