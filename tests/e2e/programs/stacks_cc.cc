/*
 * tests/e2e/programs/stacks_cc.cc: who calls calls that are worth a look, in C++: namespaces, templates, virtual
 * functions, lambdas; one function compiled into another. With an argument, in a std::thread; with "wrapped",
 * "wrapped-twice" or "wrapped-deep", by functions as CUDA's headers have them.
 */
#include <cstddef>
#include <dlfcn.h>
#include <cstring>
#include <functional>
#include <thread>

extern "C" int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

static volatile int sink;
static char host[4096];

namespace data
{

struct loader {
	virtual ~loader() = default;
	virtual void fetch(int n) = 0;
};

template <typename T> struct typed_loader final : loader {
	__attribute__((noinline)) void fetch(int n) override
	{
		sink = cudaMemcpyAsync(host, reinterpret_cast<void *>(0x7000), sizeof(T) * n, 2, nullptr); // mark: fetch
		sink = sink + 1;
	}
};

struct guard {
	~guard() { sink = sink + 1; }
};

template <typename F> inline __attribute__((always_inline)) void each(int n, F &&f)
{
	guard g;
	for (int i = 1; i <= n; i++)
		f(i); // mark: each
}

__attribute__((noinline)) void epoch(loader &l)
{
	each(3, [&](int i) __attribute__((noinline)) { // mark: each_in
		l.fetch(i); // mark: lambda
		sink = sink + 1;
	});
	sink = sink + 1;
}

} // namespace data

/* Not compiled into its callers, as without optimisation; and with a line, where the headers have debug information. */
template <typename T> __attribute__((noinline)) static int cudaMemcpyAsync(T *to, int n)
{
	int result = cudaMemcpyAsync(to, reinterpret_cast<void *>(0x7000), n * sizeof(T), 2, nullptr);

	sink = sink + 1; // or the wrapper is left before the call
	return result;
}

__attribute__((noinline)) static void first_load()
{
	sink = cudaMemcpyAsync(reinterpret_cast<float *>(host), 8); // mark: first_load
	sink = sink + 1;
}

__attribute__((noinline)) static void second_load()
{
	sink = cudaMemcpyAsync(reinterpret_cast<float *>(host), 9);
	sink = sink + 1;
}

/* As a header of Thrust has it, by two functions of other names than CUDA's. */
#line 10 "/opt/cuda/include/cccl/thrust/detail/copy.h"
namespace thrust
{
__attribute__((noinline)) int trivial_copy(float *to)
{
	return cudaMemcpyAsync(to, reinterpret_cast<void *>(0x7000), 10, 2, nullptr) + 1;
}
__attribute__((noinline)) int copy(float *to)
{
	return trivial_copy(to) + 1;
}
} // namespace thrust
#line 90 "tests/e2e/programs/stacks_cc.cc"

__attribute__((noinline)) static void third_load()
{
	sink = thrust::copy(reinterpret_cast<float *>(host)); // mark: third_load
	sink = sink + 1;
}

int main(int argc, char **argv)
{
	data::typed_loader<float> l;
	data::loader *volatile p = &l;

	dlopen("libcuda.so.1", RTLD_NOW); // knows which memory is pageable
	if (argc > 1 && !strncmp(argv[1], "wrapped", 7)) {
		for (int i = 0; i < 3; i++) {
			first_load();
			if (!strcmp(argv[1], "wrapped-twice"))
				second_load();
			if (!strcmp(argv[1], "wrapped-deep"))
				third_load();
		}
	} else if (argc > 1)
		std::thread(data::epoch, std::ref(*p)).join();
	else
		data::epoch(*p); // mark: main
	return sink < 0;
}
