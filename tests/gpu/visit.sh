# tests/gpu/visit.sh: one visit to a machine, with GPUs or with the simulator: programs are run bare and
# under cudaspy, each with a limit of its own, and what they did is filed and packed into an archive
# that is small enough to carry. Sourced by the scripts that pay such visits (testapps/tour,
# tests/gpu/waits), in the top folder, after tests/bench/machine.sh and options.sh.
# shellcheck shell=bash

# visit_build BUILD: sets build.
visit_build() {
	build=$(cd "$1" 2>/dev/null && pwd) || { echo "$script: no build folder $1: run make all gpu-build" >&2; exit 1; }
}

# visit_begin NAME BUILD OUT SIMULATED: sets build, out, work, visit (what is filed, NAME in work), shim,
# simulated, runner, kernel, gpus, with_runtime.
visit_begin() {
	visit_build "$2"
	export CUDASPY_BUILD=$build # for with-sim
	out=${3:-$build/gpu/$1}
	mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
	work=$(mktemp -d "${TMPDIR:-/tmp}/cudaspy-$1.XXXXXX") || exit 1
	trap 'visit_end' EXIT
	visit=$work/$1
	mkdir -p "$visit"
	chmod 755 "$work"
	SECONDS=0
	shim=$build/libcudaspy.so
	runner=
	kernel=
	with_runtime=()
	simulated=$4
	have_gpu || simulated=1
	if [ -n "$simulated" ]; then
		runner=tests/sim/with-sim
		[ -e "$build/sim/libsimkernel.so" ] && kernel=$build/sim/libsimkernel.so
		# Not more than there are CPUs: a thread for each GPU would wait for a CPU, too.
		gpus=$(nproc)
		gpus=${SPYSIM_GPUS:-$((gpus < 2 ? 2 : gpus > 4 ? 4 : gpus))}
		export SPYSIM_GPUS=$gpus
	else
		gpus=$(nvidia-smi -L | wc -l)
		# The toolkit's CUDA runtime, for our programs; PyTorch brings its own.
		runtime=$(find_library libcudart.so.13) &&
			with_runtime=("LD_LIBRARY_PATH=$runtime${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
	fi
}

visit_end() {
	mps_stop
	rm -rf "$work"
}

# visit_describe: the first lines of every visit.
visit_describe() {
	describe_machine
	[ -z "$simulated" ] || echo "SIMULATED: on the CUDA simulator; no measurement"
	date -u +'%Y-%m-%d %H:%M UTC'
}

# step FOLDER MODE LIMIT COMMAND...: runs one program in one mode (bare, shim…, noprobes…), files what it
# did under FOLDER/MODE. Skips it after $seconds_max seconds.
step() {
	local folder=$visit/$1/$2 mode=$2 limit=$3 settings=()
	shift 3
	if [ $SECONDS -ge "$seconds_max" ]; then
		echo "$script: ${folder#"$visit"/}: skipped, out of time" >&2
		return
	fi
	mkdir -p "$folder"
	[ "$1" = python3 ] || settings=("${with_runtime[@]}")
	case $mode in
	shim*|noprobes*)
		mkdir -p "$folder/trace"
		chmod 1777 "$folder/trace" # some programs become other users
		settings+=("LD_PRELOAD=$shim $kernel" "CUDASPY_OUT=$folder/trace") ;;
	esac
	case $mode in noprobes*) settings+=("CUDASPY_NOPROBES=1") ;; esac
	echo "$*" | sed "s|$build/||" >"$folder/command"
	$runner timeout -k 5 "$limit" env "${settings[@]}" "$@" \
		>"$folder/stdout" 2>"$folder/stderr" </dev/null
	echo $? >"$folder/status"
	[ "$(cat "$folder/status")" = 0 ] ||
		echo "$script: ${folder#"$visit"/}: status $(cat "$folder/status"): $(tail -n 1 "$folder/stderr")" >&2
}

# mps_start: a daemon of our own, of whom only our programs know. 1 if there is none to be had; then there is
# nobody else's for them either, until mps_stop.
mps_start() {
	local control=nvidia-cuda-mps-control
	[ -z "$simulated" ] || control=$build/sim/nvidia-cuda-mps-control
	export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps-log
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	chmod 755 "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	command -v "$control" >/dev/null && "$control" -d </dev/null && mps_control=$control
}

# mps_stop: a client that is left, or hangs, does not keep the daemon alive after its folder is gone.
mps_stop() {
	[ "${CUDA_MPS_PIPE_DIRECTORY:-}" = "${work:-}/mps" ] || return 0
	if [ -n "${mps_control:-}" ]; then
		echo quit -t 5 | timeout 20 "$mps_control" >/dev/null 2>&1
		cp "$work"/mps-log/*.log "$visit/" 2>/dev/null
	fi
	mps_control=
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# visit_pack: the archive, in $out, in pieces if it is large.
visit_pack() {
	local name=${visit##*/}
	rm -f "$out/$name".tar.gz*
	tar -czf "$work/$name.tar.gz" -C "$work" "$name"
	if [ "$(stat -c %s "$work/$name.tar.gz")" -gt 15000000 ]; then
		split -b 15000000 -d "$work/$name.tar.gz" "$out/$name.tar.gz."
	else
		cp "$work/$name.tar.gz" "$out/"
	fi
	echo "archive: $(du -ch "$out/$name".tar.gz* | tail -n 1 | cut -f 1), $(echo "$out/$name".tar.gz*)"
}

# visit_failed: did any step fail?
visit_failed() {
	find "$visit" -name status -exec grep -Lx 0 {} + | grep -q .
}

# visit_open NAME FROM: where a visit's files are: FROM is what the archive holds, the archive, or the
# folder where it lies. Unpacks into $work.
visit_open() {
	local archive= from=$2
	if [ -f "$from" ]; then
		archive=$from
	elif ls "$from/$1".tar.gz* >/dev/null 2>&1; then
		archive=$from/$1.tar.gz
	fi
	if [ -n "$archive" ]; then
		cat "${archive%.[0-9][0-9]}"* | tar -xz -C "$work" 2>/dev/null ||
			{ echo "$script: --read: $archive is damaged, or no archive (.tar.gz)" >&2; exit 2; }
		from=$work/$1
	fi
	[ -e "$from/machine.txt" ] || { echo "$script: --read: no visit of $1 in '$2'" >&2; exit 2; }
	visit_from=$from
}

# visit_report FOLDER: makes the reports of FOLDER/trace in $reports and says where: a name without .json
# and .txt; nothing if there is no trace, or no analyzer that runs here ($tool is empty then).
visit_report() {
	local name
	name=$reports/$(echo "${1#"$visit_from"/}" | tr / .)
	[ -n "$tool" ] && [ -n "$(ls "$1/trace" 2>/dev/null)" ] || return
	if ! grep -qsx "$name" "$work/made"; then # never one of an earlier visit
		echo "$name" >>"$work/made"
		rm -f "$name".*
		if ! "$tool" report --format=json "$1/trace" >"$name.json" 2>"$name.err" ||
			! (cd "$1/trace" && "$tool" report .) >"$name.txt" 2>>"$name.err"; then
			echo "$script: ${1#"$visit_from"/}: the report failed: $(tail -n 1 "$name.err")" >&2
			echo "$1" >>"$work/failed"
			rm -f "$name.json"
			return
		fi
	fi
	echo "$name"
}

# visit_tool: sets tool to the analyzer if it runs here, and jq does.
visit_tool() {
	tool=$(realpath -m "$build/cudaspy")
	if ! command -v jq >/dev/null; then
		echo "no jq here: no reports; read the archive elsewhere"
		tool=
	elif ! "$tool" --help >/dev/null 2>&1; then
		echo "$tool does not run here (no libdw?): no reports; read the archive elsewhere"
		tool=
	fi
}

# The first sections of a report, for reading: of each the first two dozen lines, and what these begin.
report_beginning() {
	awk -v rest="reports/${1##*/}.txt" '
		/^(FINDINGS|WAITS|WORST CALLS|SHARED GPUS|WAITED FOR)/ { on = 1; lines = 0 }
		/^$/ { on = 0 }
		on && lines >= 24 && /^  [^ ]|^ +[0-9]/ && !/^    / { on = 0; print "      … more in " rest }
		on { lines++; print "    " $0 }' "$1.txt"
}
