#!/bin/bash
# Where threads are between their calls: the shares of functions of Python, short and long gaps apart; the garbage collector; who
# has the GIL; what NVML says. And what there is without samples, in a forked child, in a bounded trace, where a namespace is left,
# and where NVML fails or hangs. Simulated.
. "$(dirname "$0")/lib.sh"
need jq python3
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libnvidia-ml.so.1" ] || skip "no simulator"

# recorded NAME VARIABLE=VALUE... -- COMMAND...
recorded() {
	local name=$1 set=()
	shift
	for (( ; $#; )); do
		[ "$1" = -- ] && break
		set+=("$1")
		shift
	done
	shift
	mkdir -p "$name"
	env CUDASPY_OUT="$name" LD_LIBRARY_PATH="$sim" LD_PRELOAD="$shim" "${set[@]}" timeout 100 "$@" >"$name.out" 2>"$name.err" ||
		fail "$name: status $?, $(tail -n 3 "$name.err")"
	"$tool" report --format=json "$name" >"$name.json" || fail "$name: no report"
}

# samples NAME: how many; places NAME: "function share", of the time on a CPU, of the thread that feeds the GPU.
samples() { "$tool" dump "$1" | grep -cF ' [sample] ' || true; }
places() {
	jq -r '[.gpus[0].feeder_causes[] | select(.cause == "python" or .cause == "python-gc" or (.cause == "cpu" and .site != null))] |
		(map(.ns) | add) as $all | map({name: (.site | capture("(^| in )(?<f>load|augment|augment_often|log|log_often|log_metrics|collect|save|pieces)\\b").f? // "none"), ns}) |
		group_by(.name)[] | "\(.[0].name) \(100 * (map(.ns) | add) / $all)"' "$1.json"
}

# near NAME: the shares are those of the program, but for what so many samples may be off: four standard deviations and a point. A
# thread that has no CPU for a while has several samples at one place: on a busy machine a quarter of them are independent.
near() {
	places "$1" | awk -v n="$(samples "$1")" -v name="$1" '
		NR == FNR { least[$1] = $2; most[$1] = $3; next }
		{ found[$1] = $2 }
		END {
			for (f in least) {
				p = (found[f] < least[f] ? least[f] : most[f]) / 100
				off = found[f] < least[f] ? least[f] - found[f] : found[f] - most[f]
				if (off > 100 * 4 * sqrt(p * (1 - p) / (n / 4)) + 1)
					printf "%s: %s has %.1f %%, in truth %.1f to %.1f %%, of %d samples\n", name, f, found[f], least[f], most[f], n
			}
		}' "$1.out" - >wrong
	[ -s wrong ] && fail "$(cat wrong)"
}

# sampled NAME VARIABLE=VALUE... -- COMMAND... STEPS: recorded, and near. Where the machine wakes threads up late there are few samples:
# then again, for longer.
sampled() {
	local try steps=${!#}
	for ((try = 1; ; try++)); do
		rm -rf "$1"
		recorded "${@:1:$#-1}" $((steps * (try < 4 ? try : 4)))
		[ "$(samples "$1")" -ge 30 ] && break
		again $try 4 || fail "$1: $(samples "$1") samples"
	done
	near "$1"
}

sampled shares CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" shares 2400
for ((try = 1; ; try++)); do # (A thread that is ready and has no CPU does not keep the GPU waiting by what it runs.)
	sampled rare CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" rare 300
	jq -e '.findings[] | select(.id == "starved-by-host") | .what | test("sampled.py:[0-9]+ (in|and other lines of) (load|save)")' rare.json >found && break
	again $try 4 || fail "rare: the finding names no place: $(jq -r '.findings[].what' rare.json)"
done

# A thread that makes a call each few microseconds has moved on before it is found: it says itself where it was.
sampled quick CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" quick 1200

# Generators come and go while they are looked at. What is lost of a place is its innermost frames, never all of them. (On a busy machine
# much is charged to their caller: the sampler has lost its CPU between two copies.)
sampled generators CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" generators 600
jq -r '[.gpus[0].feeder_causes[] | select(.cause == "python") | {ns, line: (.site // "" | test("^sampled.py:|^between sampled.py:"))}] | (map(.ns) | add) as $all |
	100 * (map(select(.line | not) | .ns) | add // 0) / $all' generators.json |
	awk '$1 > 10 { print "generators: " $1 " % of the time has no line"; exit 1 }' || fail "samples without a line"

# Small pieces of work, one after the other, with some Python for each: what helps is fewer of them. Not for a function of the
# program's own before each call. One that comes between steps is told apart, with its share.
for eager in "eager launch-bound 1500" "eager-load launch-bound,starved-by-host 1200" "eager-slow starved-by-host 600"; do
	read -r kind findings steps <<<"$eager"
	for ((try = 1; ; try++)); do # (On a busy machine a thread is ready and has no CPU; NVML's utilisation is of five looks a second.)
		rm -rf $kind
		recorded $kind -- python3 "$here/sampled.py" $kind $steps
		read -r least most < <(awk '$1 == "load" { print $2, $3 }' $kind.out)
		jq -e --arg findings "$findings" --argjson least "${least:-0}" --argjson most "${most:-100}" '[.findings[] | select(.severity == "problem")] |
			map(select(.id == "launch-bound" or .id == "starved-by-host")) as $host |
			($host | map(.id) | sort | join(",")) == $findings and (.[0].id | inside($findings)) and
			(map(select(.id == "starved-by-host"))[0] | . == null or ($host | length) == 1 or (.what | test("sampled.py:[0-9]+ (in|and other lines of) load")) and
			(100 * .cost_ns / ($host | map(.cost_ns) | add) | . > $least - 10 and . < $most + 10))' $kind.json >found && break
		again $try 3 || fail "$kind: load $least to $most; $(jq -c '[.findings[] | [.id, .severity, .cost_ns, .what]]' $kind.json)"
	done
done

# A library whose stack is deeper than what is recorded of one: the program's line lies at its outer end.
recorded deep CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" deep 100
jq -e '[.gpus[0].feeder_causes[].site // ""] | any(test("^sampled.py:[0-9]+ in deep: copy.deepcopy$")) and all(test("copy[.]py") | not)' deep.json >found ||
	fail "deep: $(jq -c '.gpus[0].feeder_causes[:3]' deep.json)"

# In C, by the kernel's clock: functions that others are inlined in, and one that is in the C library for most of its time.
recorded native CUDASPY_SAMPLE=500 -- "$bin/between" 300 200000
if ! "$tool" info native | tr -s ' \n' ' ' | grep -q 'where threads are that run'; then
	near native
	[ "$(samples native)" -ge 30 ] || fail "native: $(samples native) samples"
	jq -e '.findings[] | select(.id == "starved-by-host") | .where | test("^work in compute, between.c:[0-9]+, inlined in load ")' native.json >found ||
		fail "native: the finding names no place: $(jq -r '.findings[].where' native.json)"
	recorded threads CUDASPY_SAMPLE=500 -- "$bin/between" 15 200000 40
	"$tool" dump threads | grep -q ' \[place\] .* function=' || fail "threads: none of 40 was found running"
	# A filter may kill who asks for it: then it is not asked for.
	recorded filtered CUDASPY_SAMPLE=500 -- python3 "$here/filtered.py" "$bin/between" 30 200000
	"$tool" info filtered | tr -s ' \n' ' ' | grep -q 'that run between their calls is unknown, but for lines of Python: a seccomp filter' ||
		fail "filtered: not said: $("$tool" info filtered)"
else
	without "perf_event_open (kernel.perf_event_paranoid, or a seccomp filter)"
fi

# Lines of Python: in C, in the interpreter, and by turns with one in the interpreter; and where the system refuses it, as without. (It
# is known from Python 3.11 on.)
in_c() { jq -r --arg f "$2" '[.gpus[0].feeder_causes[] | select(.site // "" | test(" in " + $f + "$"))][0] | "\(.in_c) \(.in_c_ppm)"' "$1.json"; }
fix() { jq -r '.findings[] | select(.id == "starved-by-host") | .fix' "$1.json"; }
interpreter=$(python3 -c 'import sys, zlib; print(sys.executable if sys.version_info >= (3, 11) and "/libz.so" in open("/proc/self/maps").read() else "")')
if [ "$interpreter" ] && ! "$tool" info native | tr -s ' \n' ' ' | grep -q 'where threads are that run'; then
	for kind in c c-alternate; do
		function=pack && [ $kind = c ] || function=alternate
		for ((try = 1; ; try++)); do # Where the machine wakes threads up late there are few samples.
			rm -rf $kind
			recorded $kind CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" $kind $((1500 * try))
			in_c $kind $function | grep -Eq '^[a-z0-9_]+ [(]libz[.]so[.0-9]*[)] [5-9][0-9]{5}$' && break
			again $try 4 || fail "$kind: $(in_c $kind $function), of $(samples $kind) samples: $("$tool" dump $kind | grep -F ' [place] ' | grep -c in_c=)"
		done
		"$tool" report $kind | tr -s ' \n' ' ' | grep -Eq "in $function[^:]* [0-9.]+ % of it in [a-z0-9_]+ [(]libz[.]so" || fail "$kind: not said"
		"$tool" report --redact $kind | tr -s ' \n' ' ' | grep -Eq "in $function [0-9.]+ % of the time was in [a-z0-9_]+ [(]libz[.]so" || fail "$kind: not said, redacted"
		fix $kind | grep -q '^That is C code' || fail "$kind: the cure: $(fix $kind)"
	done
	for ((try = 1; ; try++)); do
		rm -rf interpreter
		recorded interpreter CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" interpreter $((40 * try))
		[ "$(in_c interpreter load | cut -d' ' -f1,2)" = "the interpreter" ] && break
		again $try 4 || fail "interpreter: $(in_c interpreter load), of $(samples interpreter) samples"
	done
	"$tool" report interpreter | grep -q ' of it in ' && fail "interpreter: $("$tool" report interpreter | grep ' of it in ')"
	fix interpreter | grep -q 'threads share the interpreter' || fail "interpreter: the cure: $(fix interpreter)"
	recorded refused CUDASPY_SAMPLE=500 -- python3 "$here/filtered.py" "$interpreter" "$here/sampled.py" c 100
	expect "notes where it is refused" "$("$tool" info refused | tr -s ' \n' ' ' | grep -o 'unknown, but for lines of Python: a seccomp filter' | wc -l)" 1
	"$tool" dump refused | grep -F ' [place] ' | grep -q in_c= && fail "refused, and there"
else
	without "what Python calls in C (Python 3.11 or later with a shared libz; perf_event_open)"
fi

# The near twin: without samples it is known between which calls, and no more.
recorded none CUDASPY_SAMPLE=0 -- python3 "$here/sampled.py" shares 100
[ "$(samples none)" = 0 ] || fail "samples were not asked for, and are there"
jq -e '[.gpus[0].feeder_causes[].site // "" | test("in (load|augment|log)$")] | any | not' none.json >found || fail "places without samples"

recorded gc CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" gc 100
jq -e '[.gpus[0].feeder_causes[] | select(.cause == "python-gc" and (.site | test("in collect")))] | length > 0' gc.json >found ||
	case $(python3 -c 'import sys; print(*sys.version_info[:2])') in "3 11" | "3 12" | "3 13") fail "no garbage collector" ;; esac

recorded gil CUDASPY_SAMPLE=500 -- python3 "$here/sampled.py" gil 60
jq -e '[.findings[] | select(.id == "gil-contention") | .what | test("held by .* in augment")] == [true]' gil.json >found ||
	case $(python3 -c 'import sys; print(*sys.version_info[:2])') in "3 11" | "3 12" | "3 13") fail "the GIL's holder: $(jq -r '.findings[].what' gil.json)" ;; esac

# A bounded trace, whose packets all tell what they need; and one whose texts are not to be shown.
sampled keep CUDASPY_SAMPLE=500 CUDASPY_KEEP=1 -- python3 "$here/sampled.py" shares 2400
"$tool" report --redact keep | grep -q "$here" && fail "a path is shown"

# What it opens takes no number that the program would get, and is in no child.
recorded lowest CUDASPY_SAMPLE=1000 CUDASPY_NONVML=1 -- "$bin/lowest" 1500

# In a callback of dl_iterate_phdr no thread can be made while another thread opens a library: the sampler begins behind it.
recorded phdr CUDASPY_NONVML=1 -- timeout -k 1 60 "$bin/phdr" libcupti.so.13
expect "threads before, in and behind a callback of the loader's" "$(cat phdr.out)" "2 2 3"

# Other processes, clocks; NVML that fails is said once, one that hangs holds up nobody.
recorded nvml SIM_NVML_LINKS=18 SIM_NVML_OTHER=4711 SIM_NVML_OTHER_BUSY=37 SIM_NVML_REASONS=0x4 SIM_NVML_POWER=312600 SIM_NVML_TEMPERATURE=64 -- python3 "$here/sampled.py" naps 700
jq -e '.gpus[0].nvml | test("a kernel ran for .* at most; clock 990 of 1980 MHz, slowed by its power limit for 100 % of the time; power 313 of 700 W, 64 degrees C at most; another process is on it .4711., with 3.00 GiB; kernels that are not this program.s ran for 37 % of the time")' \
	nvml.json >found || fail "NVML: $(jq -r '.gpus[0].nvml' nvml.json)"
"$tool" dump nvml >nvml.dump
grep -q 'gpu_look.* links=18 link_mbytes=25000' nvml.dump || fail "no NVLinks: $(grep -m 1 gpu_look nvml.dump)"
# The same in timelines, as counters.
"$tool" export --format=chrome -o nvml.trace nvml && jq '.traceEvents | map(select(.ph? == "C") | [.name, .args.value])' nvml.trace >counters.json 2>/dev/null ||
	fail "no timeline with counters"
jq -e 'any(.[]; . == ["clock of GPU 0 (MHz, NVML)", 990]) and any(.[]; .[0] == "utilisation of GPU 0 (%, NVML)")' counters.json >found ||
	fail "no counters of NVML: $(jq -c 'map(.[0]) | unique' counters.json)"
# And on the page: what the trace has of GPU 0, the same mean in all; and in its head, what the text says.
"$tool" report --format=html -o nvml.html nvml || fail "no page"
"$tool" dump nvml | grep -oP '\[gpu_look\].* gpu=0 busy=\K[0-9]+ clock=[0-9]+' >nvml.looks
python3 - "$(jq -r '.gpus[0].nvml' nvml.json)" <<'END' || fail "what NVML says is another thing on the page"
import base64, json, re, sys, zlib
def part(name):
    return zlib.decompress(base64.b64decode(re.search(r'id="%s">\s*([^<\s]*)' % name, open("nvml.html").read()).group(1)))
def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift = shift + 7 if byte > 127 else 0
        if byte < 128:
            yield value
            value = 0
report, timeline, items = json.loads(part("report")), json.loads(part("timeline")), part("items")
assert report["gpus"][0]["nvml"] == sys.argv[1], report["gpus"][0]["nvml"]
lane = next(one for one in timeline["lanes"] if one["kind"] == "gpu" and one["gpu"] == 0)
offset, size, count = lane["items"]["looks"]
values = list(numbers(items[offset:offset + size]))
looks = [values[i:i + 8] for i in range(0, len(values), 8)]
truth = [tuple(map(int, re.findall("[0-9]+", line))) for line in open("nvml.looks")]
assert [(busy - 1, clock) for _, _, busy, clock, *_ in looks] == [(10 * busy, clock) for busy, clock in truth], (looks, truth)
assert all(most == 1980 and timeline["names"][slowed] == "its power limit" for _, _, _, _, most, slowed, *_ in looks), looks
# No time is there twice, and hardly any is missing.
end = at = covered = 0
for begin, duration, *_ in looks:
    at += begin
    assert at >= end, (at, end)
    end, covered = at + duration, covered + duration
assert 0.5 * end < covered <= end, (covered, end)
END
recorded fails SIM_NVML_FAIL=1 -- python3 "$here/sampled.py" shares 100
[ "$("$tool" info fails | grep -c 'NVML is not asked')" = 1 ] || fail "NVML that fails: $("$tool" info fails | grep NVML)"
recorded hangs SIM_NVML_HANG=1 -- python3 "$here/sampled.py" shares 100
recorded nonvml CUDASPY_NONVML=1 -- python3 "$here/sampled.py" shares 100
[ "$("$tool" dump nonvml | grep -cF ' [gpu_look] ')" = 0 ] || fail "NVML was asked"

# Alone again, a program may leave its namespaces: as without the recorder.
LD_LIBRARY_PATH=$sim "$bin/leaves" >bare.out
[ $? = 77 ] && exit 0
recorded leaves CUDASPY_SAMPLE=500 -- "$bin/leaves"
cmp -s bare.out leaves.out || fail "unshare: $(cat leaves.out), bare: $(cat bare.out)"
