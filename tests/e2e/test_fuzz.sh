#!/bin/bash
# Traces made of bytes by chance, read under ASan and UBSan: no crash, no endless loop, and each report adds up
# and is well-formed in every format (tests/fuzz). First the inputs that fuzzing kept, then new ones for some
# seconds: FUZZ_SECONDS, and FUZZ_SEED, which is said, repeats them. Some reports are held against their schemas.
set -eu
cd "$(dirname "$0")/../.."
[ -n "$(ls tests/fuzz/seeds)" ] || { echo "no seeds in tests/fuzz/seeds"; exit 1; }
tests/fuzz/run 0
tests/fuzz/run --random "${FUZZ_SECONDS:-8}"
tests/fuzz/run --digest "${FUZZ_SECONDS:-3}"
tests/fuzz/run --schemas 12
