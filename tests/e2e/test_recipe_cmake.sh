#!/bin/bash
# docs/recipes/cmake.md, as it stands there: configured, built and tested by CMake and nvcc. The program with the fault fails its
# test, and the finding names the line; pinned, it passes.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need cmake ctest
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=$(command -v nvcc || ls "$nvcc" /usr/local/cuda/bin/nvcc 2>/dev/null | head -n 1)
[ -n "$nvcc" ] || skip "no nvcc here"
PATH=$PATH:$(dirname "$nvcc")
# Machine code for the one GPU that the simulator shows: CMake's own choice depends on its version.
export CUDAARCHS=90

recipe cmake
limit=300 follows
says '^done$' run.out
line=$(grep -n 'cudaMemcpyAsync(device, host' app.cu | cut -d: -f1)
cat run.out run.err >both
says 'pageable-copy: ' both
says "app\.cu:$line" both
follow test
[ $? != 0 ] || fail "ctest found nothing wrong: $(cat test.out)"
says 'app-recorded .*Passed' test.out
says 'app-waits .*Failed' test.out
says 'pageable-copy' test.out
limit=300 follows fixed
says '100% tests passed' fixed.out
exit 0
