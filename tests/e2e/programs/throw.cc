/*
 * tests/e2e/programs/throw.cc: C++ exceptions that leave CUDA calls through the stubs, one and several at a
 * time; destructors on the way run.
 */
#include <cstdio>
#include <stdexcept>

extern "C" int cudaSetDevice(int device);
extern "C" int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

static int destroyed;

struct witness {
	~witness() { destroyed++; }
};

static void thrower(void *)
{
	witness one;
	cudaSetDevice(1);
	throw std::runtime_error("thrown inside a call");
}

static void outer(void *)
{
	witness two;
	cudaLaunchHostFunc(nullptr, thrower, nullptr);
}

static void catcher(void *)
{
	try {
		cudaLaunchHostFunc(nullptr, thrower, nullptr);
	} catch (const std::exception &) {
		cudaSetDevice(2); /* inside catcher's call: depth 1 */
	}
}

int main()
{
	for (int i = 0; i < 50; i++) {
		try {
			cudaLaunchHostFunc(nullptr, outer, nullptr);
		} catch (const std::exception &error) {
			if (i == 0)
				std::printf("caught: %s\n", error.what());
		}
		cudaSetDevice(3); /* depth 0 */
		cudaLaunchHostFunc(nullptr, catcher, nullptr);
	}
	std::printf("%d destroyed\n", destroyed);
	return 0;
}
