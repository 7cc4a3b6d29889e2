#!/bin/bash
# The page of `cudaspy report --format=html` in a headless Chromium: what it shows of made-up data whose truth is known
# (tests/page/fake.mjs), and of programs on the simulator, whose truth it writes down; what a frame costs. The file itself is
# the subject of test_html.sh.
. "$(dirname "$0")/lib.sh"
need node
chromium=$(command -v chromium-headless-shell || command -v chromium || command -v google-chrome) || skip "no headless Chromium here"
look=$here/../page
sim=$here/../sim/with-sim
page=$build/page/page.html

# looked NAME COMMAND...: with at most so much output; fails with it.
looked() {
	local name=$1
	shift
	timeout -k 5 200 "$@" >"$name.looked" 2>&1 || fail "$name: $(head -n 20 "$name.looked")"
	echo "$name: $(tail -n 1 "$name.looked")"
}

mkdir made modules
cp "$here"/../../analyzer/page/*.js modules
echo '{"type": "module"}' >modules/package.json
looked "colours" node "$look/look_colours.mjs" modules "$here/../../analyzer/page/page.css"
looked "columns" node "$look/look_series.mjs" modules
looked "made-up data" node "$look/look_page.mjs" "$chromium" "$page" "$tmp/made"

# ---- arrows, on the simulator: those of its truth ------------------------------------------------------
for scene in chain3_gpu chain2_ioctl chain_free_malloc; do
	for ((try = 1; ; try++)); do # (On a busy machine threads may not meet.)
		rm -rf truth "$out"
		mkdir truth
		"$sim" "$bin/scene" --script $scene >script || fail "$scene: no script"
		CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/script SPYSIM_TRUTH=$tmp/truth \
			"$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" "$bin/scene" $scene >play.out 2>play.err || fail "$scene: status $?: $(tail -n 3 play.err)"
		"$tool" report --format=json "$(the_trace)" | jq -e '[.worst_calls[] | select(.holder > 0)] | length > 1' >/dev/null && break
		again $try 3 || break
	done
	"$tool" report --format=html "$(the_trace)" >$scene.html || fail "$scene: no page"
	looked $scene node "$look/look_trace.mjs" "$chromium" "$tmp/$scene.html" "$tmp/truth"
done

# ---- GPU work on streams; ranks; a name that is no name ------------------------------------------------------
# recorded APP OPTION...: a test application's page, in app.html; the truth in $tmp/truth.
recorded() {
	local app=$1
	shift
	rm -rf truth "$out"
	mkdir truth
	CUDASPY_OUT=$out CUDASPY_QUIET=1 SPYSIM_TRUTH=$tmp/truth TMPDIR=$tmp "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" timeout -k 5 100 \
		"$app" "$@" >app.out 2>app.err || fail "$app $*: status $?: $(tail -n 3 app.err)"
	"$tool" report --format=html "$out" >app.html || fail "$app: no page"
}

if [ -n "$first" ] || [ ! -x "$build/testapps/ranks" ]; then
	without "test applications"
else
	if [ -e "$build/libcudaspy_gpu.so" ]; then
		CUDASPY_GPU=1 recorded "$build/testapps/starved" --quick --csv --variant sleep
		looked "GPU work" node "$look/look_gpu.mjs" "$chromium" "$tmp/app.html" "$tmp/truth"
	else
		without CUPTI
	fi
	SPYSIM_GPUS=8 SPYSIM_NCCL_SEED=5 SPYSIM_NCCL_WAIT_S=60 recorded "$build/testapps/ranks" --quick --csv --ranks=8 --gpus=8 --steps=12 --work-us=4000 --straggler=3:load:1:100
	looked ranks node "$look/look_ranks.mjs" "$chromium" "$tmp/app.html" 3
	# A program's file may be called so.
	cp "$build/testapps/clean" './<img src=x onerror=alert(1)>'
	recorded './<img src=x onerror=alert(1)>' --quick --csv
	looked "hostile program" node "$look/look_quiet.mjs" "$chromium" "$tmp/app.html" '<img src=x onerror=alert(1)>'
fi

# ---- how far it can be trusted: what the text begins with -----------------------------------------------
# said KEY: what the report's summary has there.
said() {
	"$tool" report --format=json "$out" 2>/dev/null | jq -r ".summary.$1 // error(\"no $1\")"
}

rm -rf "$out"
FAKE_MODE=quiet CUDASPY_OUT=$out spied "$bin/life" calls 3 2>err
"$tool" report --format=html "$out" >fine.html || fail "no page of a program that is well"
looked "nothing to say" node "$look/look_quiet.mjs" "$chromium" "$tmp/fine.html" -Recorded: -Failed: -Ended: -Note: -Files:
for life in "calls 3" "busy kill 100"; do
	# shellcheck disable=SC2086 # several words
	FAKE_MODE=quiet FAKE_RESULT=2 CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run --quiet --no-report -o "$out" "$bin/life" $life >/dev/null 2>&1
done
"$tool" report --format=html "$out" >ill.html 2>err || fail "no page of several runs"
looked "failed, killed, several runs" node "$look/look_quiet.mjs" "$chromium" "$tmp/ill.html" -Recorded: "Failed: $(said failures)" "Ended: $(said ended)" "Note: $(said several_runs)" "Found $(said found)."
rm -rf "$out"
CUDASPY_CAPTURE_RANGE=command FAKE_MODE=quiet CUDASPY_OUT=$out spied "$bin/life" calls 3 2>err
"$tool" report --format=html "$out" >none.html || fail "no page of a program that was not recorded"
looked "nothing recorded" node "$look/look_quiet.mjs" "$chromium" "$tmp/none.html" "Recorded: $(said recorded)" "$(said recorded | grep -o '^nothing: no window was opened')"

# ---- a job of 1,000 ranks, from digests -------------------------------------------------------------
"$build/tests/scale/gendigest" x 25 1000 --hosts=125 --steps=60 --job-file=job.digest >planted.json || fail "no job"
"$tool" report --redact --format=html -o job.html job.digest 2>err || fail "no page of a job: $(cat err)"
looked job node "$look/look_job.mjs" "$chromium" "$tmp/job.html" planted.json 1000

# ---- what a frame costs: printed, and held against bounds that any machine keeps --------------------------
node "$look/fake.mjs" "$page" big big.html || fail "no page of a million calls"
node "$look/fake.mjs" "$page" ranks ranks.html || fail "no page of 64 ranks"
timeout -k 5 300 node "$look/frames.mjs" --steps=20 "$chromium" "$tmp/big.html" "$tmp/ranks.html" >frames 2>&1 || fail "frames: $(cat frames)"
cat frames
