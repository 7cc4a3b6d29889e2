# tests/gpu/nvml_shares.py: whose kernels run, as NVML says (nvmlDeviceGetProcessUtilization), asked once a second: of a process alone, of
# two on one GPU; and what the question does to another process's cudaMalloc. Without cudaspy; of the first GPU. Needs PyTorch and CuPy.
import ctypes
import subprocess
import sys
import time


def multiply(width, times, seconds=12):
    import torch

    x = torch.randn(width, width, device="cuda")
    until, rounds = time.time() + seconds, 0
    while time.time() < until:
        for _ in range(times):
            x = (x @ x).tanh()
        torch.cuda.synchronize()
        rounds += 1
    print("%d rounds of %d matrices of %d" % (rounds, times, width), flush=True)


def allocate(seconds=8):
    import cupy

    took, until = [], time.time() + seconds
    while time.time() < until:
        began = time.perf_counter()
        memory = cupy.cuda.runtime.malloc(1 << 20)
        took.append(1e6 * (time.perf_counter() - began))
        cupy.cuda.runtime.free(memory)
        time.sleep(0.0005)
    took.sort()
    print("%d calls of cudaMalloc: median %.1f, 99th percentile %.1f, most %.1f us" %
          (len(took), took[len(took) // 2], took[len(took) * 99 // 100], took[-1]), flush=True)


KINDS = {"large": lambda: multiply(6144, 20), "small": lambda: multiply(64, 200), "malloc": allocate}


class Share(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_us", ctypes.c_ulonglong), ("kernels", ctypes.c_uint),
                ("memory", ctypes.c_uint), ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


def watch(nvml, gpu, seconds, room=256, since=0):
    for _ in range(seconds):
        n, shares = ctypes.c_uint(room), (Share * room)()
        began = time.perf_counter()
        error = nvml.nvmlDeviceGetProcessUtilization(gpu, shares, ctypes.byref(n), ctypes.c_ulonglong(since))
        took = 1e3 * (time.perf_counter() - began)
        found = [(share.pid, share.kernels) for share in shares[:n.value]] if not error else []
        print("  error %d, room for %d asked, %.2f ms: %s" % (error, n.value, took, found), flush=True)
        if found:
            since = max(share.time_us for share in shares[:n.value])
        time.sleep(1)


def main():
    if len(sys.argv) > 1:
        return KINDS[sys.argv[1]]()
    nvml, gpu = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
    print("with little room")
    watch(nvml, gpu, 1, room=64)
    for kinds in (["large"], ["small"], ["large", "large"], ["large", "small"], ["malloc"]):
        print("beside each other: " + ", ".join(kinds))
        running = [subprocess.Popen([sys.executable, __file__, kind]) for kind in kinds]
        time.sleep(6)
        watch(nvml, gpu, 5)
        for process in running:
            process.wait()
    print("cudaMalloc without questions")
    subprocess.run([sys.executable, __file__, "malloc"])


if __name__ == "__main__":
    main()
