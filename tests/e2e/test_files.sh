#!/bin/bash
# The files of a trace on a machine with other users: they are for their owner alone, whatever the umask is,
# are made exclusively and overwrite nothing; taken names do not stop a recording; an option lets a group
# read, another leaves out what may be secret.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# modes DIR: of the folder and its files, each kind once.
modes() {
	find "$1" -printf '%y %m\n' | sort -u | tr '\n' ';'
}

for mask in 0 22 77; do
	CUDASPY_KEEP='' same "umask$mask" "$bin/steps" umask:$mask calls:9000 thread:10
	expect "umask $mask: modes" "$(modes "$(the_trace)")" "d 700;f 600;"
done
CUDASPY_KEEP=1 same bounded "$bin/steps" umask:0 calls:100000 thread:10
expect "bounded: modes" "$(modes "$(the_trace)")" "d 700;f 600;"
rm -rf deep
CUDASPY_OUT=$tmp/deep/er same parents "$bin/steps" umask:0 calls:10
expect "directories above: modes" "$(modes deep)" "d 700;f 600;"

# A group may read.
CUDASPY_GROUP=$(id -g) same group "$bin/steps" umask:77 calls:9000
expect "group: modes" "$(modes "$(the_trace)")" "d 750;f 640;"
expect "group: whose" "$(find "$out" -printf '%G\n' | sort -u)" "$(id -g)"
CUDASPY_GROUP=people same nobody "$bin/steps" umask:0 calls:10
grep -q 'CUDASPY_GROUP=people is no group' nobody.err || fail "not a word of a group that is none"
expect "no group: modes" "$(modes "$(the_trace)")" "d 700;f 600;"

# All names that one can guess are taken, by whatever.
cat >taken.sh <<END
mkdir -p $out
for i in '' -2 -3 -4; do mkdir $out/steps-\$\$\$i.cudaspy; done
for i in \$(seq 5 400); do ln -s $tmp/victim $out/steps-\$\$-\$i.cudaspy; done
for i in \$(seq 401 1100); do mkfifo $out/steps-\$\$-\$i.cudaspy; done
LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" CUDASPY_OUT=$out exec "$bin/steps" calls:10
END
rm -rf "$out"
echo secret >victim
bash taken.sh 2>taken.err || fail "names taken: exit status $?"
trace=$(find "$out" -name metadata -printf '%h\n')
[ -n "$trace" ] || fail "names taken: no trace; $(cat taken.err)"
expect_records "$trace" cudaSetDevice=10
expect "the victim" "$(cat victim)" secret

# Names of files to come are taken, by links to something else. Nothing is written there.
meet() {
	for _ in $(seq 400); do
		[ -e "$1" ] && return
		sleep 0.02
	done
	fail "the program does not get to $1"
}
rm -rf "$out"
spied "$bin/steps" umask:0 calls:10 touch:ready await:go calls:9000 thread:10 thread:10 >links.out 2>links.err </dev/null &
meet ready
trace=$(the_trace) || exit 1
for name in stream_0001 stream_0002_tail .metadata.new; do
	ln -s "$tmp/victim" "$trace/$name"
done
mkfifo "$trace/stream_0001_000001"
touch go
wait $! || fail "links: exit status $?"
expect "the victim" "$(cat victim)" secret
[ "$(readlink "$trace/stream_0001")" = "$tmp/victim" ] || fail "the link is gone"
read -r calls _ lost < <(closing links.err)
expect "links: calls and lost calls" $((calls + lost)) 9030
[ "$lost" -gt 0 ] || fail "links: nothing lost?"
grep -q 'nothing can be stored: File exists' links.err || fail "links: not a word of it: $(cat links.err)"

# Another user's folder in the place of the parent: nobody can put anything into what we make there.
[ "$(id -u)" = 0 ] && chown 65534 "$out" && chmod 777 "$out"
same other "$bin/steps" umask:0 calls:10
expect "another's parent: modes" "$(modes "$(the_trace)")" "d 700;f 600;"

# What may be secret.
export NCCL_SECRET=hush
CUDA_SECRET=hush same told "$bin/steps" calls:1 chdir:/ 'touch:/dev/null'
grep -q hush "$(the_trace)/metadata" || fail "the variables are not in the trace"
CUDASPY_REDACT=1 CUDA_SECRET=hush CUDASPY_RUN=r1 same left-out "$bin/steps" calls:1 chdir:/ 'touch:/dev/null'
trace=$(the_trace) || exit 1
! grep -rqa 'hush\|touch:' "$trace" || fail "redacted, and there all the same"
grep -q 'redacted = 1' "$trace/metadata" || fail "the trace does not say that something was left out"
readable "$trace"
"$tool" info "$trace" >info.out 2>&1 || fail "cudaspy info of a redacted trace"
grep -q 'left out' info.out || fail "cudaspy info does not say that something was left out: $(cat info.out)"
CUDASPY_REDACT=1 CUDASPY_KEEP=1 same both "$bin/steps" calls:200000
"$tool" info "$(the_trace)" 2>&1 | grep -q 'missing in the middle' && fail "redacted: the bound was forgotten"
exit 0
