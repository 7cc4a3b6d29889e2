#!/bin/bash
# The simulator: processes that share a GPU take turns; as clients of MPS they do not, unless they
# belong to different users. Kernels there take no processor time, so times hold on a busy machine.
. "$(dirname "$0")/lib.sh"
need awk mkfifo
unset "${!CUDA_@}"
sim=$here/../sim/with-sim
control=$CUDASPY_BUILD/sim/nvidia-cuda-mps-control
export SPYSIM_TRUTH=$tmp/truth
mkdir truth

# Nothing of ours may stay behind.
stop_all() {
	local status=$? folder
	for folder in "$tmp"/mps*; do
		[ -e "$folder/control" ] && echo quit -t 0 | CUDA_MPS_PIPE_DIRECTORY=$folder "$control"
	done
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	(exit $status)
	clean_up
}
trap stop_all EXIT

# until_true CMD...: waits for it, at most 55 s, after which what is waited for has been ended.
until_true() {
	local i
	for i in $(seq 1100); do
		"$@" && return
		sleep 0.05
	done
	fail "in vain: $*"
}
says() {
	grep -q "$2" "$1" 2>/dev/null
}
gone() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}

# start NAME ARGUMENT...: starts a process in the background; its output is in NAME, its pid in $pid. It
# waits for the end of the FIFO NAME.go, which its user opens (5 to 8) and closes.
start() {
	local name=$1
	shift
	rm -f "$name" "$name.go"
	mkfifo "$name.go"
	timeout 60 "$sim" "$CUDASPY_BUILD/tests/e2e/sharing" "$@" <"$name.go" >"$name" 2>&1 \
		5>&- 6>&- 7>&- 8>&- &
	pid=$!
}

# together COUNT ARGUMENT...: so many processes that begin at the same time. Sets $ms, their mean.
together() {
	local count=$1 i pids=()
	shift
	rm -f p.* go
	mkfifo go
	for i in $(seq "$count"); do
		timeout 60 "$sim" "$CUDASPY_BUILD/tests/e2e/sharing" "$@" <go >"p.$i" 2>&1 &
		pids+=($!)
	done
	exec 9>go
	for i in $(seq "$count"); do
		until_true says "p.$i" ready
	done
	exec 9>&-
	for i in "${pids[@]}"; do
		wait "$i" || fail "$*: $(cat p.*)"
	done
	ms=$(awk '/ms$/ { sum += $1; n++ } END { print sum / n }' p.*)
}

# between WHAT VALUE LOW HIGH
between() {
	awk -v v="$2" -v low="$3" -v high="$4" 'BEGIN { exit !(v >= low && v <= high) }' ||
		fail "$1: $2, expected $3 to $4"
	echo "$1: $2 ms"
}

# ---- which GPU a device is ----
devices() {
	CUDA_VISIBLE_DEVICES=$1 SPYSIM_GPUS=3 "$sim" "$CUDASPY_BUILD/tests/e2e/sharing" devices
}
"$sim" env SPYSIM_GPUS=3 "$CUDASPY_BUILD/tests/e2e/sharing" devices >devices.all || fail "devices"
expect "GPUs" "$(awk '{ print $2 }' devices.all | sort -u | wc -l)" 3
expect "UUIDs that are not the same from all functions" "$(awk '$2 != $3 || $2 != $4' devices.all)" ""
expect "devices not found by their bus id" "$(awk '$1 != $6' devices.all)" ""
gpu() { # the UUID and bus id of one of the machine's
	awk -v n="$1" '$1 == n { print $2, $5 }' devices.all
}
expect "1,0" "$(devices 1,0 | awk '{ print $2, $5 }')" "$(gpu 1; gpu 0)"
expect "2" "$(devices 2 | awk '{ print $1, $2, $5, $6 }')" "0 $(gpu 2) 0"
uuid=$(gpu 2)
expect "a UUID" "$(devices "${uuid% *}" | awk '{ print $2, $5 }')" "$(gpu 2)"
expect "UUIDs' beginnings" "$(devices "${uuid:0:8},0" | awk '{ print $2, $5 }')" "$(gpu 2; gpu 0)"
expect "after one that is not there" "$(devices 1,7,0 | awk '{ print $2, $5 }')" "$(gpu 1)"
devices GPU- >devices.none 2>&1 && fail "a beginning that all have chose $(cat devices.none)"

# ---- turns ----
# The times are the GPU's, from the first kernel to the end of the last; the bounds leave room for what
# passes between the beginnings of the processes.
export CUDA_MPS_PIPE_DIRECTORY=$tmp/no_mps
together 2 run 400 1000
between "two processes, each with GPUs of its own" "$ms" 400 560
export SPYSIM_SHARE=$tmp/share
mkdir share
together 1 run 400 1000
between "alone on a shared GPU" "$ms" 400 560
together 2 run 400 1000
between "two processes on it" "$ms" 600 1200
together 3 streams 150 1000
between "three, two streams each" "$ms" 320 700
together 2 run 1 300000
between "two with a kernel longer than a slice" "$ms" 450 900
export SPYSIM_SWITCH_US=2000
together 2 steps 100 1000
between "launch and synchronise, switches of 2 ms" "$ms" 250 900
unset SPYSIM_SWITCH_US

# endless NAME: starts one that has the GPU busy until it is killed.
endless() {
	local name=$1
	start "$name" run 100000 1000
	exec 8>"$name.go"
	until_true says "$name" ready
	exec 8>&-
	endless=$(children "$pid")
	[ -n "$endless" ] || fail "$name: $(cat "$name")"
}

export CUDA_VISIBLE_DEVICES=1
endless other
unset CUDA_VISIBLE_DEVICES
together 1 run 400 1000
between "beside one on the other GPU" "$ms" 400 560
kill -KILL "$endless"
endless dead
together 1 run 400 1000
between "beside one on the same GPU" "$ms" 600 1200
kill -KILL "$endless" # with work in its queue
together 1 run 400 1000
between "after one that was killed" "$ms" 400 560

# ---- MPS ----
export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps
"$control" -d || fail "the daemon does not start"
[ -S mps/control ] || fail "no control socket"
daemon=$(cat mps/nvidia-cuda-mps-control.pid)
tr '\0' ' ' <"/proc/$daemon/cmdline" | grep -q 'nvidia-cuda-mps-control -d' || fail "the pid file lies"
"$control" -d 2>again.err && fail "a second daemon in the same directory"
expect "servers without clients" "$(echo get_server_list | "$control")" ""
together 3 run 400 1000
between "three clients" "$ms" 400 560
server=$(echo get_server_list | "$control")
tr '\0' ' ' <"/proc/$server/cmdline" | grep -q '^nvidia-cuda-mps-server' || fail "no server: $server"
expect "its parent" "$(awk '$1 == "PPid:" { print $2 }' "/proc/$server/status")" "$daemon"
expect "multiprocessors and MPS" \
	"$("$sim" "$CUDASPY_BUILD/tests/e2e/sharing" devices | awk 'NR == 1 { print $7, $8 }')" "132 1"
export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25
expect "the same, given a quarter" \
	"$("$sim" "$CUDASPY_BUILD/tests/e2e/sharing" devices | awk 'NR == 1 { print $7, $8 }')" "32 1"
together 2 run 100 1000
between "two clients with a quarter each" "$ms" 412 572
unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE

# A client beside a process that is none: the server and that process take turns.
CUDA_MPS_PIPE_DIRECTORY=$tmp/no_mps
endless stranger
CUDA_MPS_PIPE_DIRECTORY=$tmp/mps
together 2 run 200 1000
between "two clients beside one that is none" "$ms" 300 650
kill -KILL "$endless"

# So many contexts on a device, whosever they are.
echo "mps_clients 4" >script
SPYSIM_SCRIPT=$tmp/script start many contexts 9
exec 8>many.go
until_true says many ready
expect "contexts beside the primary one" "$(head -n 1 many)" "3 CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"
SPYSIM_SCRIPT=$tmp/script start more hold
more=$pid
exec 7>more.go
wait "$more" && fail "it has its context"
exec 7>&- 8>&-
grep -q cudaErrorMpsMaxClientsReached more || fail "one context too many: $(cat more)"
until_true says many 'ms$'

# Another user waits for the first one's clients to leave, and whoever comes then waits for him.
SPYSIM_UID=1001 start a1 hold
exec 5>a1.go
until_true says a1 ready
SPYSIM_UID=1002 start b hold
exec 6>b.go
sleep 0.3
SPYSIM_UID=1001 start a2 hold
exec 7>a2.go
sleep 0.3
says b ready && fail "another user's client does not wait"
says a2 ready && fail "a client overtakes one that waits"
first=$(echo get_server_list | "$control")
exec 5>&-
until_true says b ready
says a2 ready && fail "clients of two users at the same time"
second=$(echo get_server_list | "$control")
[ "$first" != "$second" ] || fail "the same server for another user"
until_true gone "$first"
client=$(echo "get_client_list $second" | "$control")
says a2 ready && fail "two users' clients"
kill -KILL "$client" || fail "the client of server $second: $client"
until_true says a2 ready
exec 6>&- 7>&-
until_true says a2 'ms$'
# user, its server's user, whether it had to wait at least 250 ms
awk -F'\t' '!/^#/ && $2 > 1000 { print $1, $2, $4, ($5 > 250000000) }' truth/mps.*.tsv | sort >users
expect "who was whose client and waited" "$(tr '\n' ';' <users)" "1 1001 1001 0;1 1001 1001 1;1 1002 1002 1;"
expect "waits in cuInit for another user's server" \
	"$(awk -F'\t' '$1 == "mps" { print $3 }' truth/waits.*.tsv | sort | uniq -c | tr -s ' ')" " 1 cuInit"
awk -F'\t' '!/^#/ { n[$1]++ } END { exit !(n[0] && n[1]) }' truth/mps.*.tsv || fail "clients and others in the truth"

# Two daemons know nothing of each other.
start here hold
exec 5>here.go
until_true says here ready
export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps2
"$control" -d || fail "a second daemon does not start"
SPYSIM_UID=1003 start there hold
exec 6>there.go
until_true says there ready
expect "clients of the second" \
	"$(echo "get_client_list $(echo get_server_list | "$control")" | "$control" | wc -l)" 1
exec 6>&-
until_true says there 'ms$'
echo quit | "$control"
ls mps2/* 2>/dev/null && fail "quit leaves files"

# quit lets clients end, but takes no new ones; what comes then is no client.
export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps
server=$(echo get_server_list | "$control")
echo quit | "$control"
until_true test ! -e mps/control
expect "MPS after quit" "$("$sim" "$CUDASPY_BUILD/tests/e2e/sharing" devices | awk 'NR == 1 { print $8 }')" 0
gone "$daemon" && fail "the daemon leaves its client"
exec 5>&-
until_true gone "$daemon"
until_true gone "$server"
says here 'ms$' || fail "the last client: $(cat here)"
