# tests/gpu/cupy_small.py: a small CuPy program: array operations, a kernel compiled at run time, a
# stream, pinned memory. Exact integers, so that two runs print the same.
import sys

import cupy
import numpy

x = cupy.arange(1 << 16, dtype=cupy.int64)
ok = int(x.sum()) == (1 << 16) * ((1 << 16) - 1) // 2
print("sum %d" % int(x.sum()))

triple = cupy.RawKernel(
    """extern "C" __global__ void triple(const long long *in, long long *out, int count)
    {
        int i = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < count)
            out[i] = in[i] * 3;
    }""",
    "triple",
)
y = cupy.empty_like(x)
with cupy.cuda.Stream(non_blocking=True) as stream:
    triple((256,), (256,), (x, y, numpy.int32(x.size)))
    stream.synchronize()
host = cupy.asnumpy(y)
ok = ok and bool((host == numpy.arange(1 << 16) * 3).all())
print("triple %d" % int(host.sum()))

memory = cupy.cuda.alloc_pinned_memory(x.nbytes)
pinned = numpy.frombuffer(memory, numpy.int64, x.size)
pinned[...] = 7
z = cupy.empty_like(x)
z.set(pinned)
ok = ok and int(z.sum()) == 7 << 16
print("pinned %d" % int(z.sum()))
print("right" if ok else "FAILED")
sys.exit(0 if ok else 1)
