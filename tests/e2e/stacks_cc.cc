/*
 * tests/e2e/stacks_cc.cc: who calls calls that are worth a look, in C++: namespaces, templates, virtual
 * functions, lambdas; one function compiled into another. With an argument, in a std::thread.
 */
#include <cstddef>
#include <dlfcn.h>
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

int main(int argc, char **)
{
	data::typed_loader<float> l;
	data::loader *volatile p = &l;

	dlopen("libcuda.so.1", RTLD_NOW); // knows which memory is pageable
	if (argc > 1)
		std::thread(data::epoch, std::ref(*p)).join();
	else
		data::epoch(*p); // mark: main
	return sink < 0;
}
