#!/bin/bash
# The shim built with AddressSanitizer and UndefinedBehaviorSanitizer passes other tests of this folder.
. "$(dirname "$0")/lib.sh"
. "$here/sanitizer.sh"

variant asan address,undefined libasan.so
# Leaks: the tables of the shim live as long as the process. Exits are what the tests compare.
export ASAN_OPTIONS=detect_leaks=0,exitcode=86,use_sigaltstack=0,handle_segv=0
for test in abi ways_runtime ways_driver ways_plugins ways_dlsym ways_interposer unwind life_processes \
	life_threads life_end disk options keep ways_static probes waits stacks python nvtx nccl; do
	"$here/test_$test.sh" >"$test.log" 2>&1 || [ "$test$?" = nvtx77 ] ||
		fail "$test under ASan and UBSan: $(cat "$test.log")"
done
