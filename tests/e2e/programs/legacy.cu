// tests/e2e/programs/legacy.cu: a kernel that is launched into streams at two places, and at a third into the default one, for
// which they wait; on the simulator, for test_findings_run.sh. Its argument: how many
// rounds.
#include <cstdlib>

__global__ void step(int)
{
}

static cudaStream_t first, second;

__attribute__((noinline)) static void good_first()
{
	step<<<1, 1, 0, first>>>(1);
}

__attribute__((noinline)) static void good_second()
{
	step<<<1, 1, 0, second>>>(2);
}

__attribute__((noinline)) static void bad()
{
	step<<<1, 1>>>(3); // mark: bad
}

int main(int, char **argv)
{
	cudaStreamCreate(&first);
	cudaStreamCreate(&second);
	for (int i = 0; i < atoi(argv[1]); i++) {
		good_first();
		good_second();
		bad();
		if (i % 10 == 9)
			cudaDeviceSynchronize();
	}
	return 0;
}
