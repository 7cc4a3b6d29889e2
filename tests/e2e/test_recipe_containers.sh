#!/bin/bash
# docs/recipes/containers.md, as it stands there, with a stand-in for Docker: an image as it is, a read-only root, another user, no
# /tmp, no home, system calls refused; and the Dockerfile with cudaspy in it.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need unshare setpriv
containers_begin
image app

recipe containers
chmod 755 .
follows unchanged
says '^CUDASPY REPORT' unchanged.out
says '^rank 0 of 1: 1$' unchanged.out
expect "traces of the image as it is" "$(ls -d traces/*.cudaspy | wc -l)" 1
# Built and recorded elsewhere: the report says so by offsets, and has the calls.
"$tool" report --format=json traces >report.json 2>report.err || fail "no report"
says 'cudaStreamSynchronize' report.json

follows readonly
expect "traces of the read-only one" "$(ls -d traces-readonly/*.cudaspy | wc -l)" 1
expect "its user" "$(stat -c %u:%g:%a traces-readonly/*.cudaspy)" 1000:1000:700
expect "what is said where nothing can be written" "$(grep -c '^cudaspy: ' said)" 1
expect "output of both runs" "$(grep -c '^rank 0 of 1: 1$' readonly.out)" 2

if command -v dpkg-deb apt-get >/dev/null; then
	package .
	cp "$rank" app
	follows image
	says '^CUDASPY REPORT' image.out
	says 'rank\.c:[0-9]' image.out
	expect "traces of the image with cudaspy" "$(ls -d traces-image/*.cudaspy | wc -l)" 1
else
	without "the Dockerfile (no apt-get here)"
fi
exit 0
