#!/bin/bash
# `cudaspy report --format=html`: the page has the report and a timeline in which all calls are, alone or merged; of a
# trace of any length it stays below 10 MB; what its programs are called cannot become part of the page. Test of the file;
# tests/e2e/test_page.sh looks at it in a browser.
. "$(dirname "$0")/lib.sh"
need python3 jq
bench=$CUDASPY_BUILD/bench
check=$here/checks/check_html.py

# page TRACE: its HTML and JSON; sets the figures that check_html.py prints.
page() {
	timeout 120 "$tool" report --format=html "$1" >page.html || fail "$1: no page"
	"$tool" report --format=json "$1" >report.json || fail "$1: no report"
	python3 "$check" page.html report.json >figures || fail "$1: $(cat figures)"
	read -r calls items waits merged bytes <figures
}

# ---- shapes of traces ------------------------------------------------------------------------------
for shape in "loop 20000 4" "waiters 6000 4" "threads 4000 100" "gpu 20000 10" "processes 2000 5" "kernels 6000 40" "stacks 6000 40"; do
	read -r name records n <<<"$shape"
	rm -rf gen
	"$bench/gentrace" gen "$records" "$n" "$name" || fail "gentrace $shape"
	page gen
	[ "$calls" -gt 0 ] || fail "$name: no calls"
	expect "$name: merged" "$merged" 0
	[ "$name" != waiters ] || [ "$waits" -gt 100 ] || fail "waiters: $waits waits"
done

# ---- too many: merged, and whole around what was found --------------------------------------------------
rm -rf gen
"$bench/gentrace" gen 2500000 4 loop || fail "gentrace"
page gen
[ "$merged" -gt 0 ] || fail "$calls calls are not merged"
[ "$items" -lt 1000000 ] || fail "$items items"
[ "$bytes" -lt 10000000 ] || fail "$bytes bytes"
python3 - <<'END' || fail "the windows around moments"
import base64, json, re, zlib
page = open("page.html").read()
text = re.search(r'id="timeline">\s*([^<\s]*)', page).group(1)
t = json.loads(zlib.decompress(base64.b64decode(text)))
assert t["moments"] and t["whole"], t["left_out"]
first = t["moments"][0]
assert any(w["begin_ns"] <= first["begin_ns"] < w["end_ns"] for w in t["whole"]), (first, t["whole"])
END

# ---- many of anything: small all the same ----------------------------------------------------------------
for shape in "threads 1200000 1000" "gpu 900000 10" "sites 300000 60000" "kernels 300000 100000"; do
	read -r name records n <<<"$shape"
	rm -rf gen
	"$bench/gentrace" gen "$records" "$n" "$name" || fail "gentrace $shape"
	"$tool" report --format=html gen >page.html || fail "$name: no page"
	bytes=$(wc -c <page.html)
	[ "$bytes" -lt 10000000 ] || fail "$name: $bytes bytes"
	python3 "$check" page.html >figures || fail "$name: $(cat figures)"
	echo "$shape: $bytes bytes"
done

# ---- nothing of a program's names is part of the page ----------------------------------------------------
rm -rf gen
"$bench/gentrace" gen 2000 4 loop || fail "gentrace"
name='</script><script>alert(1)</script><img src=x onerror=alert(2)>'
mv gen 'a<b>'
cp -r 'a<b>' "$tmp/plain"
find . -name metadata -exec sed -i "s|program = \"[^\"]*\"|program = \"/x/${name//\//_}\"|" {} +
page 'a<b>'
grep -c '<script' page.html >scripts
"$tool" report --format=html "$tmp/plain" | grep -c '<script' | cmp -s - scripts || fail "a name made a script"
grep -q 'alert(' page.html && fail "a name is part of the page"

# ---- no traces, no page ------------------------------------------------------------------------------
mkdir none
"$tool" report --format=html none >page.html 2>err && fail "a page of nothing"
[ ! -s page.html ] || fail "a page of nothing: $(wc -c <page.html) bytes"
