#!/bin/bash
# snapshot --ras: what NCCL's RAS says stands beside what cudaspy sees, with a server that answers as documented; and one
# line where nobody answers, or something else does, within a bounded time.
. "$(dirname "$0")/lib.sh"
need jq python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
app=$build/testapps/hang
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=300 CUDASPY_QUIET=1
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" "$app" --seconds 200 --variant rank >hang.out 2>hang.err &
running=$!
server=
trap 'kill -KILL $running $server 2>/dev/null; wait 2>/dev/null; clean_up' EXIT
for i in $(seq 300); do
	"$tool" snapshot --json --after=400ms "$out" >snapshot.json 2>/dev/null
	[ -s snapshot.json ] && jq -e '.verdicts[0] | .kind == "collective" and (.text | test("#4.*read_batch"))' snapshot.json >/dev/null 2>&1 && break
	sleep 0.1
done
late=$(jq '.processes[] | select(.rank == "1") | .pid' snapshot.json)
[ "$late" ] || fail "no rank 1: $(cat snapshot.json hang.err)"

# serve MODE: leaves the server's port.
serve() {
	rm -f port
	mkfifo port
	"$here/fake_ras.py" "$1" "$late" >port 2>ras.err &
	server=$!
	read -r port <port || fail "no server: $(cat ras.err)"
}

# asked MODE: the rows of the table.
asked() {
	serve "$1"
	timeout 40 "$tool" snapshot --json --after=400ms --ras="127.0.0.1:$port" "$out" >snapshot.json 2>err
	status=$?
	expect "$1: status ($(cat err) $(jq -c .verdicts snapshot.json))" $status 1
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	server=
}

asked mismatch
jq -e '.ras | length == 5 and (.[0].said | test("^#0-0 .* MISMATCH$")) and
	(.[3] | (.said | test("Rank 1 has launched up to operation 4")) and (.here | test("^cudaspy: thread .* of rank 1 .*read_batch, hang_rank.c")))' \
	snapshot.json >/dev/null || fail "a mismatch: $(jq -c .ras snapshot.json)"
jq -e '.verdicts[0].text | test("^rank 1 has not entered ncclAllReduce")' snapshot.json >/dev/null || fail "our own verdict is gone"
serve mismatch
"$tool" snapshot --after=400ms --ras="127.0.0.1:$port" "$out" >snapshot
grep -q 'RAS' snapshot && ! grep -q $'\e\\[31m' snapshot || fail "as text: $(cat snapshot)"
wait $server
asked fine
jq -e '.ras | length == 1 and (.[0].said | test("^no rank disagrees"))' snapshot.json >/dev/null || fail "no mismatch: $(jq -c .ras snapshot.json)"
for mode in other closes silent; do
	before=$SECONDS
	asked $mode
	jq -e '.ras | length == 1 and (.[0].said | test("no answer: "))' snapshot.json >/dev/null || fail "$mode: $(jq -c .ras snapshot.json)"
	[ $((SECONDS - before)) -lt 35 ] || fail "$mode: took $((SECONDS - before)) s"
done
for address in "127.0.0.1:$port" "[127.0.0.1]:$port" 127.0.0.1:nonsense; do # nobody listens there any more
	timeout 40 "$tool" snapshot --json --ras="$address" "$out" >snapshot.json
	jq -e '.ras | length == 1 and (.[0].said | test("no answer: "))' snapshot.json >/dev/null || fail "$address: $(jq -c .ras snapshot.json)"
done
"$tool" snapshot --json "$out" | jq -e 'has("ras") | not' >/dev/null || fail "RAS is asked without --ras"
exit 0
