#!/bin/bash
# --redact: a user's name, paths, a command line, variables and a job's name, planted wherever a trace and a command can
# hold them, are in no form of output and in no warning; without it, each of them is in one. Findings, filters,
# suppressions and the gate mean the same.
. "$(dirname "$0")/lib.sh"
need jq python3
forms="text json html junit sarif"

export COLUMNS=200 # a path is in one line, wherever the test's files lie

# secrets: what must not be seen. hush*: of command lines and variables; the others of paths and names.
secrets='janedoe|JaneDoe|secretproject|old days|hush[0-9]|otherhome|relativefolder'

# read_html FILE: with what the page has packed.
read_html() {
	python3 - "$1" <<'END'
import base64, re, sys, zlib
page = open(sys.argv[1], encoding="utf-8").read()
for name, packed in re.findall(r'<script type="text/plain" id="(\w+)">\s*([A-Za-z0-9+/=]*)\s*</script>', page):
    if name != "items":
        sys.stdout.write(zlib.decompress(base64.b64decode(packed)).decode() + "\n")
END
}

# told NAME STATUS ARGUMENT...: what `cudaspy ARGUMENT...` says, whole in NAME.whole, and redacted in NAME.redacted; both
# end with that status.
told() {
	local name=$1 wanted=$2
	shift 2
	timeout 60 "$tool" "$@" >"$name.whole" 2>&1
	expect "$*: status" "$?" "$wanted"
	timeout 60 "$tool" "$1" --redact "${@:2}" >"$name.redacted" 2>&1
	expect "$1 --redact ${*:2}: status" "$?" "$wanted"
	case $name in
	*html)
		read_html "$name.whole" >"$name.unpacked" && mv "$name.unpacked" "$name.whole"
		read_html "$name.redacted" >"$name.unpacked" && mv "$name.unpacked" "$name.redacted"
		;;
	esac
	[ -s "$name.redacted" ] || fail "$name: says nothing"
	grep -aEi "$secrets" "$name.redacted" && fail "$1 --redact ${*:2}"
	true
}

# exported FORMAT DIR: the same of an export.
exported() {
	timeout 60 "$tool" export --format="$1" -o whole "$2" >whole.err 2>&1 || fail "export --format=$1: $(cat whole.err)"
	timeout 60 "$tool" export --redact --format="$1" -o redacted "$2" >redacted.err 2>&1 || fail "export --format=$1 --redact: $(cat redacted.err)"
	[ -s redacted ] || fail "export --format=$1 --redact: nothing"
	grep -aoEir ".{0,40}($secrets).{0,40}" redacted redacted.err && fail "export --format=$1 --redact"
	true
}

# seen SECRET FILE...: without --redact it is there.
seen() {
	local secret=$1
	shift
	cat "$@" | grep -qaE "$secret" || fail "$secret is nowhere in $*, with nothing left out"
}

# ---- a made-up trace that has them everywhere ------------------------------------------------------
home=$tmp/home/janedoe/secretproject
mkdir -p "$home/old days (of secretproject)"
cat >secrets.log <<'END'
trace app.100 pid=100 program="/home/janedoe/secretproject/app" executable="/home/janedoe/secretproject/app" command_line="./app --token=hush1" cwd="/home/janedoe/secretproject" hostname="box" job="hush3" rank=0 world_size=2 env_CUDA_VISIBLE_DEVICES="hush2" env_NCCL_TOPO_FILE="/home/janedoe/topo.xml" start_realtime_ns=5000000000
slot 0 tid=101
1us note note=version text="runtime /home/janedoe/secretproject/libcudart.so.13.0"
1us note note=blind text="/home/janedoe/secretproject/libdeep.so was opened with RTLD_DEEPBIND"
2us module base=0x400000 begin=0x401000 end=0x409000 build_id="0011223344" path="/home/janedoe/secretproject/app"
2us module base=0x7f0000000000 begin=0x7f0000001000 end=0x7f0000009000 path="/mnt/old days/libplugin.so"
2us module base=0x7f0000010000 begin=0x7f0000011000 end=0x7f0000019000 path="relativefolder/libx"
3us note note=other text="CUDASPY_OUT=relativefolder/x: not found by janedoe"
3us gpu device=0 cc_major=9 cc_minor=0 bytes=150000000000 name="GPU of janedoe" uuid="GPU-aaaa" pci="0000:01:00.0"
3us mps daemon=1 server=2 uid=0 pipe_directory="/home/janedoe/mps"
4us kernel kernel=1 name="janedoe_kernel"
4us nvtx_name what=thread object=101 name="loader of /home/janedoe/data set/x y"
4us nccl_comm number=1 hash=0xab rank=0 ranks=2 tid=101 name="/home/janedoe/comm"
5us range_name number=1 domain="/home/janedoe/d" name="read /home/janedoe/secretproject/part 1 for JaneDoe"
slot 1 tid=101
10us thread tid=101 name="janedoe"
11us range what=push name=1
70us launch cudaLaunchKernel duration=2us kernel=1 stream=0x55 caller=0x401050
2ms stack fn=cudaMemcpyAsync why=3 frames=0x401060,0x401900,0x7f0000001300,0x7f0000011300
2ms python_code code=7 first_line=30 file="/otherhome/users/janedoe/secretproject/train.py" function="Model.step"
2ms python_stack fn=cudaMemcpyAsync more=1 lines=7:42,9:3
2ms copy cudaMemcpyAsync duration=1900us direction=d2h src=device dst=pageable bytes=65536 stream=0x55 caller=0x401060
4ms copy cudaMemcpyAsync duration=1900us direction=d2h src=device dst=pageable bytes=65536 stream=0x55 caller=0x7f0000001234
5ms copy cudaMemcpyAsync duration=900us direction=d2h src=device dst=pageable bytes=65536 stream=0x55 caller=0x7f0000011234
6ms op cudaStreamSynchronize duration=600us result=719 stream=0x55 caller=0x401100
7ms wait kind=mutex object=0x7f0000011008 duration=500us fn=cudaFree outer_fn=cudaFree holder=102 holder_fn=cudaFree
7ms memory cudaFree duration=700us op=free caller=0x401120
8ms range what=pop name=1
slot 2 tid=102
15us thread tid=102 name="other"
8ms memory cudaFree duration=1500us op=free caller=0x401220
END
mkdir made && "$bin/log_traces" secrets.log made || fail "no traces"
traces="$home/old days (of secretproject)/my run"
mkdir "$traces" && mv made/* "$traces/app of janedoe.cudaspy" || fail "no traces"

for form in $forms; do
	told "$form" 0 report --verbose --format="$form" "$traces"
done
for verb in info dump "why 101" "why cudaMemcpyAsync" "why rank0"; do
	told "${verb// /_}" 0 ${verb} "$traces"
done
for form in chrome perfetto folded sqlite csv; do
	mkdir "$form" && (cd "$form" && exported "$form" "$traces")
	seen 'janedoe' $(find "$form/whole" -type f)
	[ $form = folded ] || seen 'secretproject' $(find "$form/whole" -type f)
done
grep -aq '\[user\]_kernel' perfetto/redacted || fail "the kernel in a trace for Perfetto"
grep -aq 'train.py:42' sqlite/redacted || fail "the line of Python in a database"
told info_json 0 info --format=json "$traces"
for secret in janedoe JaneDoe secretproject 'old days' hush1 hush2 hush3 relativefolder otherhome; do
	seen "$secret" *.whole
done
for form in $forms; do
	seen 'janedoe' "$form.whole"
	seen 'secretproject' "$form.whole"
done

# What is left: the names themselves.
grep -q '"python_file": "train.py"' json.redacted || fail "the line of Python: $(grep python_file json.redacted)"
grep -q '"file": "app"' json.redacted || fail "files that cannot be read: $(jq .files json.redacted)"
grep -q 'train.py:42' text.redacted || fail "no train.py:42 in text"
grep -q '\[user\]_kernel' html.redacted || fail "the kernel in the page"
grep -q 'box' info.redacted || fail "the host is left out"
grep -q 'left out, and so are variables (--redact)' info.redacted || fail "info does not say that the command line is left out"
expect "variables" "$(jq -c .environment info_json.redacted)" '[]'
grep -q '"originalUriBaseIds"' sarif.redacted || fail "SARIF"
numbers='del(.summary.command) | walk(if type == "string" then "" else . end)'
expect "numbers" "$(jq -cS "$numbers" json.redacted)" "$(jq -cS "$numbers" json.whole)"

# ---- suppressions, filters, a baseline, a profile, and their warnings -------------------------------
accepted="$home/accepted by janedoe.txt"
echo 'pageable-copy /otherhome/users/janedoe/secretproject/train.py:42 -- janedoe knows /home/janedoe/why.txt' >"$accepted"
echo 'pageable-copy /mnt/old*days/libplugin.so -- known' >>"$accepted"
echo 'pageable-copy /home/janedoe/nowhere.py -- not used' >>"$accepted"
told gate 1 report --fail-on=any --suppress="$accepted" "$traces"
seen 'not used: pageable-copy /home/janedoe/nowhere.py' gate.whole
told gate_json 0 report --format=json --suppress="$accepted" "$traces"
sed -i '/^cudaspy: /d' gate_json.whole gate_json.redacted
expect "suppressed" "$(jq '[.findings[] | select(.suppressed != null)] | length' gate_json.redacted)" \
	"$(jq '[.findings[] | select(.suppressed != null)] | length' gate_json.whole)"
[ "$(jq '[.findings[] | select(.suppressed != null)] | length' gate_json.redacted)" -gt 0 ] || fail "nothing is suppressed: $(jq -c .findings gate_json.whole)"
told filter 0 report --process=app --thread='janedoe' --range='read /home/janedoe*' "$traces"
told filter_json 0 report --format=json --thread='janedoe' "$traces"
expect "filtered" "$(jq .summary.calls filter_json.redacted)" "$(jq .summary.calls filter_json.whole)"
[ "$(jq .summary.calls filter_json.redacted)" -lt "$(jq .summary.calls json.redacted)" ] || fail "the filter fits all"
cp json.whole "$home/yesterday.json"
told baseline 0 report --baseline="$home/yesterday.json" "$traces"
seen 'secretproject/yesterday.json' baseline.whole
told nothing 2 report "$home/no such folder of janedoe"
seen 'janedoe' nothing.whole
told no_profile 2 report --profile="$home/janedoe's profile.json" "$traces"
echo nonsense >"$home/janedoe's profile.json"
told bad_profile 2 report --profile="$home/janedoe's profile.json" "$traces"
told diff 0 diff "$traces" "$home/yesterday.json"
echo nonsense >"$traces/app of janedoe.cudaspy/metadata"
told torn 0 report "$traces"
seen 'janedoe' torn.whole

# ---- a program that runs: its file, its sources, the file's name -----------------------------------
cp "$bin/steps" "$home/steps of janedoe"
CUDA_SECRET=hush2 CUDASPY_OUT="$home/out" spied timeout 60 "$home/steps of janedoe" calls:200 >steps.out 2>&1 || fail "steps: $(tail -n 3 steps.out)"
for form in $forms; do
	told "ran_$form" 0 report --verbose --format="$form" "$home/out"
done
told ran_info 0 info "$home/out"
told ran_dump 0 dump "$home/out"
seen 'secretproject' ran_text.whole ran_info.whole ran_dump.whole
seen 'hush2' ran_info.whole
