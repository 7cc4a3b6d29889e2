/*
 * tests/gpu/mixed_copies.cu: the sections of mixed that copy, in every form: 1D, 2D, 3D, symbols,
 * arrays and peers, from and to memory of each kind. Called by main in mixed.cu.
 */
#include "mixed.h"

void copy_1d(void)
{
	unsigned *page = pageable(), *back = pageable(), *registered = pageable(), *pinned,
		 *managed;
	unsigned *device = device_memory(), *second = device_memory();
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaHostRegister(registered, BYTES, cudaHostRegisterDefault));
	CHECK(cudaMallocManaged(&managed, BYTES));

	fill(page, 1);
	CHECK(cudaMemcpy(device, page, BYTES, cudaMemcpyHostToDevice));
	launch(device, 3, 0);
	CHECK(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
	expect("1d pageable", back, 1, "3");

	CHECK(cudaMemcpyAsync(device, page, BYTES, cudaMemcpyHostToDevice, stream));
	launch(device, 4, stream);
	CHECK(cudaMemcpyAsync(second, device, BYTES, cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemcpyAsync(back, second, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d pageable async", back, 1, "4");

	fill(pinned, 2);
	CHECK(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, stream));
	launch(device, 5, stream);
	CHECK(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d pinned async", pinned, 2, "5");

	fill(registered, 3);
	CHECK(cudaMemcpyAsync(device, registered, BYTES, cudaMemcpyDefault, stream));
	launch(device, 6, stream);
	CHECK(cudaMemcpyAsync(registered, device, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d registered async", registered, 3, "6");
	CHECK(cudaHostUnregister(registered));
	CHECK(cudaMemcpyAsync(registered, device, BYTES - 16, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d registered no more", registered, 3, "6");

	fill(managed, 4);
	launch(managed, 7, stream);
	CHECK(cudaMemcpyAsync(second, managed, BYTES, cudaMemcpyDefault, stream));
	CHECK(cudaMemcpyAsync(pinned, second, BYTES, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d managed", pinned, 4, "7");

	fill(page, 5);
	CHECK(cudaMemcpy(back, page, BYTES, cudaMemcpyHostToHost));
	CHECK(cudaMemcpyAsync(pinned, page, BYTES, cudaMemcpyHostToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("1d host to host", back, 5);
	expect("1d host to host async", pinned, 5);

	CHECK(cudaFree(managed));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	CHECK(cudaFree(second));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
	free(registered);
}

/* The array as 256 rows of 256 values. */
void copy_2d(void)
{
	unsigned *page = pageable(), *back = pageable(), *pinned, *device;
	cudaStream_t stream;
	size_t pitch;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaMallocPitch(&device, &pitch, 1024, 256));
	fill(page, 11);
	CHECK(cudaMemcpy2D(device, pitch, page, 1024, 1024, 256, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(back, 1024, device, pitch, 1024, 256, cudaMemcpyDeviceToHost));
	expect("2d pageable", back, 11);
	fill(pinned, 12);
	CHECK(cudaMemcpy2DAsync(device, pitch, pinned, 1024, 1024, 256, cudaMemcpyHostToDevice,
				stream));
	CHECK(cudaMemcpy2DAsync(back, 1024, device, pitch, 1024, 256, cudaMemcpyDeviceToHost,
				stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("2d pinned to pageable async", back, 12);
	CHECK(cudaFree(device));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}

/* The array as 16 slices of 64 rows of 64 values. */
void copy_3d(void)
{
	cudaExtent extent = make_cudaExtent(256, 64, 16);
	unsigned *page = pageable(), *back = pageable();
	cudaMemcpy3DParms in = {}, out = {};
	cudaPitchedPtr device;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc3D(&device, extent));
	in.srcPtr = make_cudaPitchedPtr(page, 256, 64, 64);
	in.dstPtr = device;
	in.extent = extent;
	in.kind = cudaMemcpyHostToDevice;
	out.srcPtr = device;
	out.dstPtr = make_cudaPitchedPtr(back, 256, 64, 64);
	out.extent = extent;
	out.kind = cudaMemcpyDeviceToHost;
	fill(page, 21);
	CHECK(cudaMemcpy3D(&in));
	CHECK(cudaMemcpy3D(&out));
	expect("3d pageable", back, 21);
	fill(page, 22);
	CHECK(cudaMemcpy3DAsync(&in, stream));
	CHECK(cudaMemcpy3DAsync(&out, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("3d pageable async", back, 22);
	CHECK(cudaFree(device.ptr));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}

__device__ unsigned symbol_values[COUNT];

void copy_symbol(void)
{
	unsigned *page = pageable(), *back = pageable(), *pinned;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocHost(&pinned, BYTES));
	fill(page, 31);
	CHECK(cudaMemcpyToSymbol(symbol_values, page, BYTES));
	CHECK(cudaMemcpyFromSymbol(back, symbol_values, BYTES));
	expect("symbol pageable", back, 31);
	fill(pinned, 32);
	CHECK(cudaMemcpyToSymbolAsync(symbol_values, pinned, BYTES, 0, cudaMemcpyHostToDevice,
				      stream));
	CHECK(cudaMemcpyFromSymbolAsync(back, symbol_values, BYTES, 0, cudaMemcpyDeviceToHost,
					stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("symbol pinned to pageable async", back, 32);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}

void copy_array(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
	unsigned *page = pageable(), *back = pageable();
	cudaStream_t stream;
	cudaArray_t array;
	cudaError_t result;

	result = cudaMallocArray(&array, &format, 256, 256);
	if (result == cudaErrorNotSupported) { /* the simulator */
		printf("%-32s none here\n", "arrays");
		cudaGetLastError();
		return;
	}
	CHECK(result);
	CHECK(cudaStreamCreate(&stream));
	fill(page, 41);
	CHECK(cudaMemcpy2DToArray(array, 0, 0, page, 1024, 1024, 256, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArray(back, 1024, array, 0, 0, 1024, 256, cudaMemcpyDeviceToHost));
	expect("array pageable", back, 41);
	fill(page, 42);
	CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, page, 1024, 1024, 256, cudaMemcpyHostToDevice,
				       stream));
	CHECK(cudaMemcpy2DFromArrayAsync(back, 1024, array, 0, 0, 1024, 256, cudaMemcpyDeviceToHost,
					 stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("array pageable async", back, 42);
	CHECK(cudaFreeArray(array));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}

void copy_peer(void)
{
	unsigned *page = pageable(), *back = pageable(), *here, *there;
	cudaStream_t stream;
	int cnt, access;

	CHECK(cudaGetDeviceCount(&cnt));
	printf("%-32s %d\n", "devices", cnt);
	if (cnt < 2)
		return;
	CHECK(cudaDeviceCanAccessPeer(&access, 0, 1));
	if (access)
		CHECK(cudaDeviceEnablePeerAccess(1, 0));
	here = device_memory();
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaSetDevice(1));
	there = device_memory();
	CHECK(cudaSetDevice(0));
	fill(page, 51);
	CHECK(cudaMemcpy(here, page, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyPeer(there, 1, here, 0, BYTES));
	CHECK(cudaMemset(here, 0, BYTES));
	CHECK(cudaMemcpyPeerAsync(here, 0, there, 1, BYTES, stream));
	CHECK(cudaMemcpyAsync(back, here, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect("peer", back, 51);
	CHECK(cudaFree(here));
	CHECK(cudaFree(there));
	CHECK(cudaStreamDestroy(stream));
	free(page);
	free(back);
}
