#!/bin/bash
# What the probes stand before does what it does without them: every lock, wait and system call of
# probes (probes.c) returns the same, with the same errno, outside a CUDA call and inside one.
. "$(dirname "$0")/lib.sh"

export FAKE_MODE=quiet
for what in mutex rwlock spin condition semaphore wait syscall cancel old fork signal; do
	same "$what" "$bin/probes" both "$what"
	[ "$(wc -l <"$what.out")" -gt 10 ] || fail "$what: checks nothing: $(cat "$what.out")"
	# and inside is as outside
	awk '/^==/ { n++; next } { print >("section" n) }' "$what.out"
	cmp -s section2 section3 || fail "$what: inside a call differs: $(diff section3 section2 | head -n 5)"
	for trace in $(traces); do
		readable "$trace"
	done
done
