/*
 * testapps/twins.c: host twins of the kernels. The CUDA simulator runs no GPU code; where it finds
 * a function called spysim_kernel_<name of the kernel> among the program's exported symbols, it
 * calls that instead, so that the results of a test application are checked there too. On a GPU
 * nothing calls these. The arguments are those of cudaLaunchKernel, copied by the sizes in
 * spysim_sizes_<name> (0 ends them); the twin does the whole grid's work.
 */
extern const unsigned spysim_sizes_add[];
void spysim_kernel_add(void **args, const unsigned grid[3], const unsigned block[3]);

const unsigned spysim_sizes_add[] = {sizeof(int *), sizeof(unsigned), sizeof(int), 0};
void spysim_kernel_add(void **args, const unsigned grid[3], const unsigned block[3])
{
	int *values = *(int **)args[0];
	unsigned i, count = *(unsigned *)args[1];
	int term = *(int *)args[2];

	for (i = 0; i < count && i < grid[0] * block[0]; i++)
		values[i] += term;
}
