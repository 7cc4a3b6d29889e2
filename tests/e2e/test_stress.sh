#!/bin/bash
# Random programs (tests/stress), some 30 s of seeds that nobody has tried: recorded they do what they do bare, and
# their traces have their calls. STRESS_FIRST=seed begins with that one.
set -eu
cd "$(dirname "$0")/../.."
exec tests/stress/run --build "${CUDASPY_BUILD:?}" ${STRESS_FIRST:+--first "$STRESS_FIRST"} --seconds 30
