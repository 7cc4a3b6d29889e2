#!/bin/bash
# The damaged traces that fuzzing kept, read again under ASan and UBSan: no crash, no endless loop.
set -eu
cd "$(dirname "$0")/../.."
[ -n "$(ls tests/fuzz/seeds)" ] || { echo "no seeds in tests/fuzz/seeds"; exit 1; }
exec tests/fuzz/run 0
