"""tests/recipes/standins/python/train_jax.py: in place of the page's program where there is no JAX: each step's input goes to the
GPU from memory that is not pinned, some kernels, and a result that is read; by the driver's functions alone, on the simulator."""
import ctypes

STEPS, SIZE = 100, 256 * 1024

cuda = ctypes.CDLL("libcuda.so.1")


def ok(result, what):
    if result:
        raise RuntimeError(f"{what}: error {result}")


def main():
    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    x, module, kernel = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
    ok(cuda.cuInit(0), "cuInit")
    ok(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    ok(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    ok(cuda.cuStreamCreate(ctypes.byref(stream), 1), "cuStreamCreate")
    ok(cuda.cuMemAlloc_v2(ctypes.byref(x), ctypes.c_size_t(SIZE)), "cuMemAlloc_v2")
    ok(cuda.cuModuleLoadData(ctypes.byref(module), b"code"), "cuModuleLoadData")
    ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fusion"), "cuModuleGetFunction")
    batch, loss = ctypes.create_string_buffer(SIZE), ctypes.create_string_buffer(4)
    for _ in range(STEPS):
        ok(cuda.cuMemcpyHtoDAsync_v2(x, batch, ctypes.c_size_t(SIZE), stream), "cuMemcpyHtoDAsync_v2")
        for _ in range(8):
            ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, None, None), "cuLaunchKernel")
        ok(cuda.cuMemcpyDtoHAsync_v2(loss, x, ctypes.c_size_t(4), stream), "cuMemcpyDtoHAsync_v2")
        ok(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize")
    print("done True")


if __name__ == "__main__":
    main()
