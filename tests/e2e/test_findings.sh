#!/bin/bash
# What `cudaspy report` finds in programs with known faults (faults.c), alone, in pairs and one after the
# other in a thread, and that it finds nothing in their clean twins: recall, precision, and the cost
# against the simulator's truth, for each detector. Simulated: no measurement.
#
#   FINDINGS_SEEDS   how many seeds (1); each plays all habits, all twins, each habit once more in a pair, and some
#                    before a phase in which far more is handed over than in their rounds
#   FINDINGS_FIRST   the first seed (1)
#   FINDINGS_ONLY    habits or detectors to play, and no pairs
#   FINDINGS_KEEP    a directory that keeps truth, trace and report of every run
#
# A finding speaks if it is not a minor one. It is right if it is the detector's whose fault it is, at a
# call that the faulty function makes (or at none); else it is false. Costs are compared where the truth
# knows them (the third column of `faults --list`), with the time in the calls where the report does not; time
# that the thread had no processor, by the kernel's account, by the habit's own clock or because work ended late (late.PID.tsv), may be part of them or
# not. On a machine with other work a thread may lose it anywhere: a run that does not come out right is played again, twice, or oftener while the
# machine has such work (lib.sh), and the table says how often that was.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
[ -e "$build/sim/libsimkernel.so" ] || skip "no simulated kernel module in this build"
root=$here/../..
"$bin/faults" --list >habits 2>/dev/null || "$sim" "$bin/faults" --list >habits || fail "no list of habits"
sed -n 's/^\t\.id = "\(.*\)",$/\1/p' "$root"/analyzer/detectors/*.c | sort -u >detectors
[ -s detectors ] || fail "no detectors"

# judged NAME CLEAN: lines "right DETECTOR NAME found-or-missed cost least most" for each habit of the run,
# and "false DETECTOR NAME caller cost", from labels, truth/ and report.json. Of code loaded behind work the report tells
# no cost; what it took then is what the accounts say, in which locks are apart.
judged() {
	jq -r '(.accounts[] | ["#", .thread, .function, .not_running_ns] | @tsv), (.accounts as $accounts | .findings[] | . as $f |
		[.id, .caller // "-", .function // "-",
		.own_ns // (if .id == "hidden-sync" then [$accounts[] | select(.function == $f.function).gpu_hidden_ns] | add
			else .total_ns end) // 0,
		.severity] | @tsv)' \
		report.json >rows || fail "$1: accounts or findings that cannot be read"
	awk -F'\t' -v name="$1" -v clean="$2" '
	FILENAME == ARGV[1] { known[$1] = 1; next }
	FILENAME == ARGV[2] { split($0, row, " ")
		detector[row[1]] = row[2]; kind[row[1]] = row[3]; calls[row[1]] = "|" row[4] "|"; also[row[1]] = row[6]; next }
	FILENAME == ARGV[3] { split($0, l, " ")
		n++; habit[n] = l[1]; tid[n] = l[2]; begin[n] = l[3]; end[n] = l[4]; here[l[1]] = 1
		truth[l[1]] += l[5]; delayed[l[1]] += l[6]; next }
	FILENAME == ARGV[4] && $1 == "#" { idle[$2, $3] = $4; next }
	FILENAME == ARGV[4] { m++; id[m] = $1; at[m] = $2; fn[m] = $3; own[m] = $4; speaks[m] = $5 != "minor"; next }
	/^#/ { next }
	FILENAME ~ /\/late/ { late += $1; next }
	FILENAME ~ /\/mps/ { wait_for_mps += $5; next }
	$3 != "0" { next }
	{ locked += $13
	take_turn()
	for (i = 1; i <= n; i++)
		if ($1 == tid[i] && $6 >= begin[i] && $7 <= end[i] && index(calls[habit[i]], "|" $4 "|"))
			add_truth(habit[i]) }
	# The recorder has its part of each call: a microsecond, on a slow machine.
	function add_truth(h) {
		own_part[h] += 1000
		if (kind[h] == "turns") {
			turn[$1] = h
			waited[$1] = $12
			ended[$1] = $7
		} else if (kind[h] != "own") {
			truth[h] += kind[h] == "gpu" ? $12 : kind[h] == "lock" ? $13 : $7 - $6 - $13 - (kind[h] == "work" ? $12 : 0)
		}
	}
	function take_turn() {
		if ($1 in turn)
			truth[turn[$1]] += waited[$1] < $6 - ended[$1] ? waited[$1] : $6 - ended[$1]
		delete turn[$1]
	}
	# What a thread did between its calls may be known: then no call is named, but the function that it was in.
	function is_work(f) {
		return id[f] == "starved-by-host" && fn[f] == "-"
	}
	function is_at(h, f,   place) {
		place = h
		gsub(/-/, "_", place)
		return at[f] == place || at[f] == "-" || is_work(f)
	}
	# A stall is right wherever threads did wait for locks that long: habits of a pair may collide. Then two findings
	# tell what all threads of both waited, and their sum is held against that. And nobody knows what else this
	# machine has to do, nor how long its kernel takes for the pages that main fills before a habit begins.
	function is_so(f) {
		return (id[f] == "starved-by-host" && at[f] == "main") || (id[f] ~ /-stall$|^lock-starvation$/ && own[f] <= 1.05 * locked) || id[f] == "oversubscribed-host"
	}
	function judge(f,   h, expected) {
		for (h in here) {
			if (detector[h] == id[f] && is_at(h, f)) {
				expected = 1
				found[h] += speaks[f]
				if (index(calls[h], "|" fn[f] "|") || is_work(f))
					cost[h] += own[f]
				else if (id[f] ~ /-stall$/) # told with those of the other habit, which cost more
					collide = 1
			}
			if (also[h] == id[f] && is_at(h, f))
				expected = 1
		}
		stalls += id[f] ~ /-stall$/ ? own[f] : 0
		collide += speaks[f] && !expected && id[f] ~ /-stall$/
		if (speaks[f] && (clean || !expected) && !is_so(f))
			print "false", id[f], name, at[f] "/" fn[f], own[f]
	}
	END { for (h in here)
			truth[h] += kind[h] == "mps" ? wait_for_mps : 0
		for (f = 1; f <= m; f++)
			judge(f)
		for (h in here)
			if (!clean)
				print "right", detector[h], name, !known[detector[h]] ? "unknown" : found[h] ? "found" : "missed",
					(kind[h] == "lock" && collide ? stalls : cost[h]) + 0, compared(h), h }
	function compared(h) {
		if (kind[h] == "-")
			return "- -"
		return kind[h] == "lock" && collide ? locked + 0 " " locked + 0 : truth[h] - (late > lost(h) ? late : lost(h)) " " truth[h] + own_part[h] + delayed[h]
	}
	function lost(h,   i, j, k, names, ns) {
		k = split(substr(calls[h], 2, length(calls[h]) - 2), names, "|")
		for (i = 1; i <= n; i++)
			for (j = 1; j <= k && habit[i] == h; j++)
				ns += idle[tid[i], names[j]]
		return ns + 0
	}
	' detectors habits labels rows truth/truth.*.tsv truth/late.*.tsv truth/mps.*.tsv
}

# recorded ARGUMENT...: faults, in the simulator, under cudaspy.
recorded() {
	SPYSIM_SCRIPT=$tmp/script SPYSIM_TRUTH=$tmp/truth SPYSIM_TRUTH_ALL=0 simulated "$bin/faults" "$@"
}

# in_turns CLEAN HABITS ARGUMENT...: beside a second process on the same GPU; in the twin it has a GPU of its own.
in_turns() {
	local clean=$1 other gpu=7 before=${2%%time-slicing*}
	shift 2
	[ -n "$clean" ] || gpu=$((2 * $(wc -w <<<"$before")))
	[ "${1:-}" != --one ] || [ -n "$clean" ] || gpu=0
	rm -rf share
	mkdir share
	[ -n "$clean" ] || export SPYSIM_SHARE=$tmp/share
	CUDA_VISIBLE_DEVICES=$gpu recorded $clean --seed 7 time-slicing >/dev/null &
	other=$!
	recorded $clean "$@" || { wait; return 1; }
	unset SPYSIM_SHARE
	wait $other
}

# as_users CLEAN ARGUMENT...: behind another client of MPS, of another user; in the twin of the same.
as_users() {
	local clean=$1 second=60002 other status i
	shift
	[ -z "$clean" ] || second=60001
	mkdir -m 777 "$out"
	chmod 777 truth
	recorded --user 60001 --seed 7 time-slicing >/dev/null &
	other=$!
	for ((i = 0; i < 500; i++)); do
		[ -z "$(echo get_server_list | "$build/sim/nvidia-cuda-mps-control")" ] || break
		sleep 0.01
	done
	recorded $clean --user $second "$@"
	status=$?
	wait $other && return $status
}

# with_mps COMMAND...: while a daemon of MPS is there.
with_mps() {
	local status
	rm -rf share # in_turns's is for one user
	mps_start >&2
	"$@"
	status=$?
	mps_stop >&2
	rm -rf mps
	unset SPYSIM_SHARE
	export CUDA_MPS_PIPE_DIRECTORY=$tmp/no_mps
	return $status
}

# run CLEAN HABITS ARGUMENT...: with what a habit takes beside its program.
run() {
	local clean=$1 habits=$2 percentage=25 blocking=1
	shift 2
	[ -z "$clean" ] || percentage=100 blocking=0
	case " $habits " in
	*" time-slicing "*) in_turns "$clean" "$habits" "$@" ;;
	*" mps-users "*) with_mps as_users "$clean" "$@" ;;
	*" mps-share "*) CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$percentage with_mps recorded $clean "$@" ;;
	*" launch-blocking "*) CUDA_LAUNCH_BLOCKING=$blocking recorded $clean "$@" ;;
	*) recorded $clean "$@" ;;
	esac
}

# once SEED CLEAN OPTION HABIT...: plays it and leaves the judgement in `judgement`.
once() {
	local seed=$1 clean=$2 option=$3 name line right=0
	shift 3
	name=$*
	name=${name// /+}$option$clean
	rm -rf "$out" truth/*
	"$sim" "$bin/faults" $clean --script "$@" >script || fail "$name: no script"
	run "$clean" "$*" $option --seed "$seed" "$@" >labels 2>play.err || fail "$name, seed $seed: exit status $?: $(tail -n 3 play.err)"
	"$tool" report --format=json "$out" >report.json 2>report.err
	[ -s report.json ] || fail "$name: no report: $(tail -n 3 report.err)"
	if [ -n "${FINDINGS_KEEP:-}" ]; then
		rm -rf "$FINDINGS_KEEP/$name.$seed"
		mkdir -p "$FINDINGS_KEEP/$name.$seed"
		cp -r script labels truth report.json "$out"/*.cudaspy "$FINDINGS_KEEP/$name.$seed/"
	fi
	judged "$name" "$clean" >judgement || fail "$name: no judgement"
	mapfile -t judgement <judgement
	for line in "${judgement[@]}"; do
		[[ $line != right\ * ]] || right=$((right + 1))
	done
	[ -n "$clean" ] || expect "$name: habits that are judged" $right $#
}

# Costs within 5 % of the truth, all habits found, none that are not there.
is_right() {
	awk '$1 == "false" || $4 == "missed" { bad = 1 }
		$4 == "found" && $6 != "-" && ($5 > 1.05 * $7 || $5 < 0.95 * $6) { bad = 1 }
		END { exit bad }' judgement
}

runs=0 replayed=0
play() {
	local try
	runs=$((runs + 1))
	for ((try = 1; ; try++)); do
		once "$@"
		is_right && break
		again $try 3 || break
		replayed=$((replayed + 1))
	done
	[ ${#judgement[@]} = 0 ] || printf "%s seed $1\n" "${judgement[@]}" >>judgements
}

# phases SEED NAME...: four of the habits that are to be made all through the work, others for each seed, with a phase
# behind them in which far more is handed over.
phases() {
	local seed=$1 i name
	shift
	for ((i = 0; i < 4 && i < $#; i++)); do
		name=${@:((4 * seed + i) % $# + 1):1}
		play $seed "" --then-more "$name"
		play $seed --clean --then-more "$name"
	done
}

touch judgements
mkdir truth
seeds=${FINDINGS_SEEDS:-1}
begin=${FINDINGS_FIRST:-1}
names=$(awk '{ print $1 }' habits)
[ -z "${FINDINGS_ONLY:-}" ] ||
	names=$(awk -v only=" $FINDINGS_ONLY " 'index(only, " " $1 " ") || index(only, " " $2 " ") { print $1 }' habits)
if [ "$(id -u)" = 0 ]; then
	for_other_users tests/e2e/faults
	bin=$CUDASPY_BUILD/tests/e2e
else
	without "MPS with two users (not root)"
	names=$(grep -v mps-users <<<"$names") # only root can become another user
fi
sed -n 's/^\t\.id = "\(.*\)",$/\1/p' $(grep -l site_spread "$root"/analyzer/detectors/*.c) >spread
[ -s spread ] || fail "no detectors of what is made all through the work"
mapfile -t through < <(awk 'FILENAME == ARGV[1] { of[$1] = 1; next } $2 in of { print $1 }' spread habits | grep -xF "$names")
for ((seed = begin; seed < begin + seeds; seed++)); do
	for name in $names; do
		play $seed "" "" "$name"
		play $seed --clean "" "$name"
	done
	phases $seed "${through[@]}"
	[ -z "${FINDINGS_ONLY:-}" ] || continue
	# Pairs: together, and (every second one that can be) one after the other in one thread; but what takes
	# the processors away, or a part of the GPU, or makes all launches wait, changes whatever is beside it; and
	# launches that are most of what a thread does have it for themselves.
	mapfile -t all < <(grep -Ev 'oversubscribed|launch-blocking|launch-bound|mps-share' <<<"$names" | shuf --random-source=<(yes $seed))
	for ((i = 0; i + 1 < ${#all[@]}; i += 2)); do
		pair=("${all[i]}" "${all[i + 1]}")
		# Who waits for a lock to record an event has little left to wait for at it.
		[[ "${pair[*]}" == *stall* && "${pair[*]}" == *early-sync-event* ]] && continue
		# What the host sees of managed memory nobody knows: then a wait may always be for results.
		[[ "${pair[*]}" == *managed* && "${pair[*]}" == *sync* ]] && continue
		# Both are about who else has the GPU.
		[[ "${pair[*]}" == *time-slicing* && "${pair[*]}" == *mps-users* ]] && continue
		option=
		awk -v a="${pair[0]}" -v b="${pair[1]}" '($1 == a || $1 == b) && $5 > 1 { n++ } END { exit n > 0 }' \
			habits && [ $((i / 2 % 2)) = 1 ] && option=--one
		play $seed "" "$option" "${pair[@]}"
		[ $((i % 8)) = 0 ] && play $seed --clean "$option" "${pair[@]}"
	done
done

echo "$runs runs, seeds $begin to $((begin + seeds - 1)), $replayed times one was played again"
awk '
	$1 == "false" { wrong[$2]++; all_false++; seen[$2] = 1; next }
	$4 == "unknown" { unknown[$2] = 1; next }
	{ seen[$2] = 1; with[$2]++; found[$2] += $4 == "found" }
	$4 == "found" && $6 != "-" {
		cost[$2] += $5
		is = $5 > $7 ? $7 : $5 < $6 ? $6 : $5
		truth[$2] += is
		off = is ? $5 / is - 1 : 1
		off = off < 0 ? -off : off
		if (off > worst[$2])
			worst[$2] = off
	}
	END {
		printf "%-20s %6s %6s %8s %6s %10s %10s %10s %8s %8s\n", "detector", "runs", "found", "recall", "false",
			"precision", "cost ms", "truth ms", "off", "worst"
		for (d in seen) {
			printf "%-20s %6d %6d %7.1f%% %6d %9.1f%% ", d, with[d], found[d], with[d] ? 100 * found[d] / with[d] : 100,
				wrong[d], found[d] + wrong[d] ? 100 * found[d] / (found[d] + wrong[d]) : 100
			if (truth[d] > 0)
				printf "%10.2f %10.2f %+7.2f%% %7.2f%%\n", cost[d] / 1e6, truth[d] / 1e6, 100 * (cost[d] / truth[d] - 1),
					100 * worst[d]
			else
				printf "%10s %10s %8s %8s\n", "-", "-", "-", "-"
		}
		for (d in unknown)
			printf "%-20s no such detector\n", d
	}' judgements | { read -r head; echo "$head"; sort; }
awk '$1 == "false" { print "  false:", $0 }
	$4 == "missed" { print "  missed:", $0 }
	$4 == "found" && $6 != "-" && ($5 > 1.05 * $7 || $5 < 0.95 * $6) { print "  cost:", $0 }' judgements >wrong
if [ -s wrong ]; then
	cat wrong
	fail "$(wc -l <wrong) are wrong; FINDINGS_KEEP=dir keeps what a run left"
fi
