/*
 * tests/recipes/blas.c: as much of a cuBLAS as llama.cpp calls, for the simulator, whose driver NVIDIA's own does not run on.
 * A product is so many zeros, written on the handle's stream. The types are those of cublas_v2.h, by their sizes.
 */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, ALLOCATION_FAILED = 3, EXECUTION_FAILED = 13, REAL_32F = 0 };

struct handle {
	void *stream;
};

int cudaMemsetAsync(void *memory, int value, size_t bytes, void *stream);

/* Columns of so many rows, apart from each other. */
static int clear(const struct handle *handle, void *matrix, int rows, int columns, int type)
{
	size_t bytes = (size_t)rows * (size_t)columns * (type == REAL_32F ? 4 : 2);

	return cudaMemsetAsync(matrix, 0, bytes, handle->stream) ? EXECUTION_FAILED : SUCCESS;
}

EXPORT int cublasCreate_v2(struct handle **handle)
{
	*handle = calloc(1, sizeof(**handle));
	return *handle ? SUCCESS : ALLOCATION_FAILED;
}

EXPORT int cublasDestroy_v2(struct handle *handle)
{
	free(handle);
	return SUCCESS;
}

EXPORT int cublasSetStream_v2(struct handle *handle, void *stream)
{
	handle->stream = stream;
	return SUCCESS;
}

EXPORT int cublasSetMathMode(struct handle *handle, int mode)
{
	return SUCCESS;
}

EXPORT int cublasSetWorkspace_v2(struct handle *handle, void *memory, size_t bytes)
{
	return SUCCESS;
}

EXPORT const char *cublasGetStatusString(int status)
{
	return status ? "failed" : "success";
}

EXPORT int cublasSgemm_v2(struct handle *handle, int a_turned, int b_turned, int m, int n, int k,
			  const float *alpha, const float *a, int lda, const float *b, int ldb,
			  const float *beta, float *c, int ldc)
{
	return clear(handle, c, ldc, n, REAL_32F);
}

EXPORT int cublasGemmEx(struct handle *handle, int a_turned, int b_turned, int m, int n, int k,
			const void *alpha, const void *a, int a_type, int lda, const void *b,
			int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
			int compute, int algorithm)
{
	return clear(handle, c, ldc, n, c_type);
}

EXPORT int cublasGemmStridedBatchedEx(struct handle *handle, int a_turned, int b_turned, int m,
				      int n, int k, const void *alpha, const void *a, int a_type,
				      int lda, long long a_stride, const void *b, int b_type,
				      int ldb, long long b_stride, const void *beta, void *c,
				      int c_type, int ldc, long long c_stride, int count,
				      int compute, int algorithm)
{
	return clear(handle, c, ldc, n, c_type);
}

/* Those whose matrices are listed in the GPU's memory: nothing is written. */
#define LISTED(name) \
	EXPORT int name(struct handle *handle) \
	{ \
		return SUCCESS; \
	}

LISTED(cublasGemmBatchedEx)
LISTED(cublasSgemmBatched)
LISTED(cublasSgemmStridedBatched)
LISTED(cublasStrsmBatched)
