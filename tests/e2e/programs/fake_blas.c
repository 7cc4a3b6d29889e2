/*
 * tests/e2e/programs/fake_blas.c: a library whose handles have memory of the GPU in them, which functions without a name
 * allocate and free: built as one of NVIDIA's, and as another.
 */
int cudaMalloc(void **address, unsigned long bytes);
int cudaFree(void *address);

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);

static volatile int sink;

static __attribute__((noinline)) int make(void **workspace)
{
	sink = cudaMalloc(workspace, 1 << 20);
	return sink + 1;
}

int cublasCreate_v2(void **handle)
{
	sink = make(handle);
	return sink - 1;
}

int cublasDestroy_v2(void *handle)
{
	sink = cudaFree(handle);
	return sink;
}
