/*
 * tests/sim/samples/graph_fork.cu: two streams captured into one graph whose branches run side by side;
 * launched three times, the launches follow each other. Times come from events.
 */
#include "check.h"

/* On the simulator a kernel called delay lasts its first argument, in microseconds. */
__global__ void delay(int us)
{
	long long end = clock64() + us * 1000LL;

	while (clock64() < end)
		;
}

int main()
{
	cudaStream_t main_stream, side;
	cudaEvent_t fork, join, begin, end;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t nodes = 0;
	float ms;

	CHECK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&fork));
	CHECK(cudaEventCreate(&join));
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	CHECK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(fork, main_stream));
	CHECK(cudaStreamWaitEvent(side, fork));
	delay<<<1, 1, 0, main_stream>>>(10000);
	delay<<<1, 1, 0, side>>>(10000);
	CHECK(cudaEventRecord(join, side));
	CHECK(cudaStreamWaitEvent(main_stream, join));
	CHECK(cudaStreamEndCapture(main_stream, &graph));
	CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
	EXPECT(nodes == 2);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaEventRecord(begin, main_stream));
	for (int i = 0; i < 3; i++)
		CHECK(cudaGraphLaunch(exec, main_stream));
	CHECK(cudaEventRecord(end, main_stream));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&ms, begin, end));
	EXPECT(ms > 29 && ms < 45);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	puts("graph_fork: ok");
}
