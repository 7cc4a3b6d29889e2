// tests/e2e/programs/launches.cu: kernels of an unnamed namespace and of a template, which functions of the program launch into a
// stream of their own, from lines of theirs; on the simulator, for test_places.sh. Its arguments: whether
// the kernel of one place is launched ("one"), or with a lock that another thread wants ("locked"), or others, too; and how
// many rounds.
#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace
{
__global__ void shift(int)
{
}

template <typename T> __global__ void scale(T)
{
}
} // namespace

static cudaStream_t stream;
static volatile int launched; // so that no launch is the end of a function, which compilers make a jump

__attribute__((noinline)) static void shift_once()
{
	shift<<<1, 1, 0, stream>>>(1); // mark: shift
	launched = launched + 1;
}

template <typename T> __attribute__((noinline)) static void scale_once(T by)
{
	scale<<<1, 1, 0, stream>>>(by); // mark: scale
	launched = launched + 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool done;

__attribute__((noinline)) static void stand_in_line()
{
	pthread_mutex_lock(&lock); // mark: lock
	launched = launched + 1;
	pthread_mutex_unlock(&lock);
}

static void *want(void *)
{
	cudaStream_t own;

	cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
	while (!done) {
		stand_in_line();
		cudaStreamQuery(own);
		cudaStreamSynchronize(own);
	}
	return NULL;
}

static int locked(int rounds)
{
	pthread_t other;

	pthread_create(&other, NULL, want, NULL);
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		for (int j = 0; j < 50; j++)
			shift_once();
		pthread_mutex_unlock(&lock);
		cudaStreamSynchronize(stream);
	}
	done = true;
	pthread_join(other, NULL);
	return 0;
}

int main(int, char **argv)
{
	cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	if (!strcmp(argv[1], "locked"))
		return locked(atoi(argv[2]));
	for (int i = 0; i < atoi(argv[2]); i++) {
		shift_once();
		if (!strcmp(argv[1], "one"))
			continue;
		scale_once(2.5f);
		scale_once(2);
	}
	cudaDeviceSynchronize();
	return 0;
}
