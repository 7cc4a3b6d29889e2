#!/bin/bash
# Manual pages: each verb has one, each option and each variable is in its page, and the tools that read
# pages have nothing to complain about.
. "$(dirname "$0")/lib.sh"
top=$here/../..

# words PAGE: its text as one line of words, without fonts and escapes of roff.
words() {
	sed 's/\\f[BIR]//g; s/\\-/-/g; s/\\(aq/'"'"'/g; s/\\&//g; s/\\e/\\/g' "$1" | tr -s ' \n' '  '
}

verbs=$("$tool" help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 9 ] || fail "verbs: $verbs"
"$tool" help --format=man >cudaspy.1 || fail "no page of cudaspy"
for verb in $verbs; do
	"$tool" help --format=man "$verb" >"cudaspy-$verb.1" || fail "no page of $verb"
	grep -q "cudaspy-$verb(1)" <(words cudaspy.1) || fail "cudaspy(1) does not name $verb"
	words "cudaspy-$verb.1" >words
	COLUMNS=160 "$tool" help "$verb" >help
	options=$(sed -n '/^Options:/,$s/^  [-h ][^-]*\(--[a-z-]*\).*/\1/p' help)
	grep -q -- --help <<<"$options" || fail "options of $verb: $options"
	for option in $options; do
		grep -qE -- "\.TP (-[a-zA-Z], )?$option(=| )" words || fail "cudaspy-$verb(1) does not explain $option"
	done
	letters=$(sed -n '/^Options:/,$s/^  \(-[a-zA-Z]\), --.*/\1/p' help)
	for letter in $letters; do
		grep -q -- "\.TP $letter, --" words || fail "cudaspy-$verb(1) does not explain $letter"
	done
done
"$tool" help --format=nonsense >said 2>err
expect "status of a format that does not exist" $? 2
grep -q "no format 'nonsense'" err || fail "the format is not named: $(cat err)"

# ---- variables ----------------------------------------------------------------------------------
words cudaspy.1 >words
variables=$(sed -n 's/^OPTION([^"]*"\([A-Z_]*\)".*/\1/p' "$top/include/cudaspy/options.def"
	grep -rhoE 'getenv\("[A-Z_]+"\)' "$top/analyzer" | cut -d'"' -f2)
[ "$(wc -w <<<"$variables")" -ge 15 ] || fail "variables: $variables"
for variable in $variables; do
	grep -q -- "\.TP $variable[= ]" words || fail "cudaspy(1) does not explain $variable"
done

# ---- readers ------------------------------------------------------------------------------------
cp "$top"/docs/man/*.5 .
for page in *.[15]; do
	if command -v groff >/dev/null; then
		groff -ww -man -z "$page" >said 2>&1 || fail "groff $page: $(cat said)"
		[ -s said ] && fail "groff $page: $(head -n 5 said)"
	else
		without groff
	fi
	if command -v man >/dev/null; then
		man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>said >/dev/null || fail "man $page: $(cat said)"
		[ -s said ] && fail "man $page: $(head -n 5 said)"
	else
		without man
	fi
	# Pages have no date: they would differ from build to build.
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -W warning "$page" | grep -v 'missing date' && fail "mandoc $page"
	else
		without mandoc
	fi
done
# What the page says of suppressions is what cudaspy reads: its example.
sed -n '/^\.nf/,/^\.fi/p' cudaspy-suppressions.5 | sed '/^\./d; s/\\(aq/'"'"'/g; s/\\-/-/g' >accepted.txt
FAKE_MODE=quiet spied "$bin/life" calls 3 2>err || fail "no trace to report: $(cat err)"
"$tool" report --fail-on=problem --suppress=accepted.txt "$out" >said 2>err || fail "the example is refused: $(cat err)"
expect "entries of the example" "$(grep -c '^[a-z]' accepted.txt)" 3
exit 0
