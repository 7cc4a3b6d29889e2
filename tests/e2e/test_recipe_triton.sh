#!/bin/bash
# docs/recipes/triton.md, on the simulator, with stand-ins for both programs: a program that ends, and a server that is recorded
# for a while and ended by a signal.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
recipe triton
end_server() { kill $(pgrep -f "$tmp/triton/bin/triton") 2>/dev/null; }
at_end end_server
mkdir bin
cp "$rank" bin/rank
printf '#!/bin/sh\nexec %s 50\n' "$PWD/bin/rank" >bin/trtexec
cp "$rank" bin/triton
printf '#!/bin/sh\nexec %s 1000000\n' "$PWD/bin/triton" >bin/tritonserver
chmod +x bin/*
PATH=$PWD/bin:$PATH
without "TensorRT and Triton (stand-ins)"

follows trtexec
says '^CUDASPY REPORT' trtexec.out
expect "traces of trtexec" "$(ls -d trtexec-traces/*.cudaspy | wc -l)" 1
follows triton
says '^CUDASPY REPORT' triton.out
says 'recorded .* window|window' triton.out
expect "traces of the server" "$(ls -d traces/*.cudaspy | wc -l)" 1
pgrep -f "$PWD/bin/triton" >left && fail "the server is left: $(cat left)"
exit 0
