#!/bin/bash
# What all bundled applications promise: help, one table as text, CSV and JSON, nothing else on standard
# output, status 0 only if the results were right, clear errors. On the simulator; what each shows has a
# test of its own (test_app_*.sh).
. "$(dirname "$0")/lib.sh"
need jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/copies" ] || skip "the applications are not built (no CUDA toolkit?)"
sim=$here/../sim/with-sim
export SPYSIM_GPUS=4

# run STATUS CMD...: on the simulator; into stdout and stderr.
run() {
	local wanted=$1 status
	shift
	timeout -k 5 60 "$sim" "$@" >stdout 2>stderr
	status=$?
	[ $status = "$wanted" ] ||
		fail "${*##*/}: status $status, expected $wanted: $(tail -n 3 stderr)"
}

# says FILE TEXT WHAT
says() {
	[[ $(<"$1") == *"$2"* ]] || fail "$3: $1 lacks '$2': $(head -n 5 "$1")"
}

checked=0
for app in "$build"/testapps/*; do
	name=${app##*/}
	[ -f "$app" ] && [ -x "$app" ] && [[ $name != *-static && $name != *.* ]] || continue

	run 0 "$app" --help
	for option in --csv --json --help --quick; do
		says stdout "$option" "$name --help"
	done
	[ -s stderr ] && fail "$name --help wrote to standard error: $(head -n 3 stderr)"
	help=$(<stdout)
	quick=$(sed -n '/--quick/ { n; p }' stdout | grep -o -- '--[a-z-]*')
	[ -n "$quick" ] || fail "$name --help does not say what --quick is"
	for option in $quick; do # what is given counts, also if it is wrong
		run 2 "$app" --quick $option nonsense
		run 2 "$app" $option nonsense --quick
	done
	"$app" --help >/dev/full 2>stderr
	expect "$name --help: status with a full disk" $? 1
	run 2 "$app" --no-such-option
	says stderr "$name: --no-such-option: no such option; see $name --help" "$name --no-such-option"
	if [[ $help == *--gpus* ]]; then
		run 2 "$app" --gpus many
		says stderr "$name: --gpus many: not a whole number" "$name --gpus many"
		wanted=1
		[ "$name" = syncs ] && wanted=2 # has use for two
		run $wanted "$app" --quick --gpus 9
		says stderr "--gpus 9: " "$name --gpus 9"
	fi
	SPYSIM_INIT=100 run 1 "$app" --quick
	says stderr "no CUDA-capable device" "$name without a GPU"
	[ -s stdout ] && fail "$name without a GPU wrote a table: $(head -n 3 stdout)"

	run 0 "$app" --quick --csv
	mv stdout csv
	# (How far it is, it says where the machine is slow: below.)
	grep -vE "^$name: .*(run|step|round|launch|way) [0-9]+ of [0-9]+|^$name: .*[0-9] (ms|workers|rounds|launches)" stderr &&
		fail "$name --quick wrote to standard error: $(head -n 3 stderr)"
	mapfile -t csv <csv
	[ ${#csv[@]} -ge 2 ] || fail "$name --csv: no rows"
	awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' csv || fail "$name --csv: different numbers of fields"
	rm -rf "$out"
	mkdir "$out"
	CUDASPY_OUT=$out CUDASPY_QUIET=1 run 0 env LD_PRELOAD="$shim" "$app" --quick --json
	jq -r '(.[0] | keys_unsorted | join(",")), length' stdout >json || fail "$name --json: $(head -n 5 stdout)"
	expect "$name: keys and rows of --json, under the shim, and of --csv" "$(<json)" "${csv[0]}"$'\n'$((${#csv[@]} - 1))
	"$sim" "$app" --quick >/dev/full 2>stderr
	expect "$name: status with a full disk" $? 1
	says stderr "$name: cannot write to standard output: No space left on device" "$name with a full disk"
	run 0 "$app" --csv # on the simulator, so it is no less quick
	says stderr "$name: on the simulator: a short run, as with --quick" "$name without --quick"
	expect "$name: rows without --quick" "$(wc -l <stdout)" ${#csv[@]}
	"$tool" report "$out" >report 2>report.err || fail "$name: the report: $(head -n 3 report.err)"
	[ -s report.err ] && fail "$name: the report complains: $(head -n 3 report.err)"
	"$tool" report --format=json "$out" | jq -e '(.losses | length) == 0 and .summary.calls > 0' >/dev/null ||
		fail "$name: losses, or no calls: $(head -n 12 report)"
	echo "$name: $((${#csv[@]} - 1)) rows, $(sed -n 's/^ *calls *//p' report | head -n 1)"
	checked=$((checked + 1))
done
# Long runs say how far they are, also within one variant or mode. All at a time: they only wait.
printf 'kernel nbody 300000\nkernel matmul 50000\n' >slow
long() {
	local name=$1
	shift
	SPYSIM_SCRIPT=$tmp/slow timeout -k 5 60 "$sim" "$build/testapps/$name" "$@" >$name.table 2>$name.progress ||
		fail "$name $*: status $?: $(cat $name.progress)"
}
long clean --variant pipelined --ms 4500 --kernel-us 20000 &
long copies --variant pinned --ms 400 --iterations 11 &
long lazyload --trigger limit --ms 4500 &
long nbody --mode alone --iterations 10 &
long queue --what copy --ms 4500 &
long ranks --steps 4500
long starved --variant sleep --steps 900 &
long syncs --variant own --iterations 80 &
wait
[ -e .failed ] && exit 1
for name in clean copies lazyload nbody queue ranks starved syncs; do
	grep -v 'on the simulator' $name.progress | grep -q "^$name: .*[0-9]" || fail "$name says nothing in a long run: $(cat $name.progress)"
done

[ $checked -ge 1 ] || fail "no application was tried"
