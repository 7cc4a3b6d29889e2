"""tests/recipes/standins/python/calls.py: the CUDA and NCCL calls of a training, from Python, without a framework: for the
stand-ins of the recipes' programs, on the simulator, whose libraries have variables in static TLS: opened this late they need
room there (GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192)."""
import ctypes
import os
import time

H2D, D2H = 1, 2
INT32, SUM = 2, 0


class Wrapper(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_int), ("version", ctypes.c_int), ("data", ctypes.c_char_p), ("unused", ctypes.c_void_p)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


nccl = ctypes.CDLL("libnccl.so.2")
cuda = ctypes.CDLL("libcudart.so.13")
kernel = ctypes.c_char()


def ok(result, what):
    if result:
        raise RuntimeError(f"{what}: error {result}")


class Gpu:
    """A device with a stream, a buffer on it, and a kernel that lasts."""

    def __init__(self, device, size):
        self.size = size
        self.stream, self.numbers = ctypes.c_void_p(), ctypes.c_void_p()
        ok(cuda.cudaSetDevice(device), "cudaSetDevice")
        wrapper = Wrapper(0x466243B1, 1, b"code", None)
        getattr(cuda, "__cudaRegisterFatBinary").restype = ctypes.c_void_p
        code = ctypes.c_void_p(getattr(cuda, "__cudaRegisterFatBinary")(ctypes.byref(wrapper)))
        getattr(cuda, "__cudaRegisterFunction")(code, ctypes.byref(kernel), None, b"_Z5delayi", -1, None, None, None, None, None)
        getattr(cuda, "__cudaRegisterFatBinaryEnd")(code)
        self.kept = wrapper
        ok(cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1), "cudaStreamCreateWithFlags")
        ok(cuda.cudaMalloc(ctypes.byref(self.numbers), ctypes.c_size_t(size)), "cudaMalloc")

    def copy_in(self, host):
        ok(cuda.cudaMemcpyAsync(self.numbers, host, ctypes.c_size_t(self.size), H2D, self.stream), "cudaMemcpyAsync")

    def launch(self, us):
        one, argument = Dim3(1, 1, 1), ctypes.c_int(us)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        ok(cuda.cudaLaunchKernel(ctypes.byref(kernel), one, one, arguments, ctypes.c_size_t(0), self.stream), "cudaLaunchKernel")

    def wait(self):
        ok(cuda.cudaStreamSynchronize(self.stream), "cudaStreamSynchronize")


class Ranks:
    """The communicator of all ranks, which meet by a file."""

    def __init__(self, rank, ranks):
        self.comm, identity = ctypes.c_void_p(), Id()
        path = os.path.join(os.environ["RANK_MEET"], "ranks-meet")
        if rank == 0:
            ok(nccl.ncclGetUniqueId(ctypes.byref(identity)), "ncclGetUniqueId")
            with open(path + ".part", "wb") as file:
                file.write(bytes(identity))
            os.rename(path + ".part", path)
        for _ in range(6000):
            if os.path.exists(path):
                break
            time.sleep(0.01)
        with open(path, "rb") as file:
            ctypes.memmove(ctypes.byref(identity), file.read(), ctypes.sizeof(identity))
        ok(nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, identity, rank), "ncclCommInitRank")

    def all_reduce(self, gpu):
        count = ctypes.c_size_t(gpu.size // 4)
        ok(nccl.ncclAllReduce(gpu.numbers, gpu.numbers, count, INT32, SUM, self.comm, gpu.stream), "ncclAllReduce")

    def leave(self):
        ok(nccl.ncclCommDestroy(self.comm), "ncclCommDestroy")


def batches(steps, workers, seconds, size):
    """From forked workers through a pipe each, as a DataLoader has them; in order."""
    pipes = []
    for worker in range(workers):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            for _ in range(worker, steps, workers):
                time.sleep(seconds)
                os.write(writer, b"x")
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    for step in range(steps):
        if not os.read(pipes[step % workers], 1):
            raise RuntimeError("a worker has ended")
        yield ctypes.create_string_buffer(size)
    for _ in pipes:
        os.wait()
