#!/bin/bash
# docs/recipes/ci.md: the files for GitHub and GitLab, their lines run as the runners run them: a program with a problem fails
# the job, one without passes it, and in both cases there are the reports that the services read.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need jq xmllint
/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml here"
schemas=$here/../schemas
habit=$build/tests/e2e/habits
[ -x "$habit" ] || skip "no $habit"

# job SERVICE FILE HABIT STATUS: in a new checkout, whose test does that. The steps' results are in `steps`.
job() {
	recipe ci "$1-$3"
	printf '#!/bin/sh\nexec %s %s\n' "$habit" "$3" >app-test
	chmod +x app-test
	sed -n '/^lazy-loading  /,/^```/p' "$top/docs/recipes/ci.md" | grep -v '```' >accepted.txt
	expect "lines of accepted.txt" "$(wc -l <accepted.txt)" 2
	GITHUB_STEP_SUMMARY=$PWD/summary.md timeout -k 5 120 "$here/../sim/with-sim" "$here/../recipes/steps" "$1" "$2" >steps 2>steps.err
	expect "$1 with $3" $? "$4"
	valid "$schemas/sarif-2.1.0.json" waits.sarif
	grep -q '<!DOCTYPE html>\|<!doctype html>' waits.html || fail "$1: no page"
}

github=.github/workflows/cuda.yml
job github $github copy-pieces 1
says '^failed Gate' steps
says '^not run github/codeql-action/upload-sarif' steps
says 'small-copies' summary.md
jq -e 'any(.runs[0].results[]; .ruleId == "small-copies" and (.locations[0].physicalLocation.artifactLocation.uri | endswith("habits.c")))' \
	waits.sarif >/dev/null || fail "no place in SARIF: $(jq -c '.runs[0].results' waits.sarif)"
job github $github copy-whole 0
says '^ok Gate' steps

job gitlab .gitlab-ci.yml copy-pieces 1
xmllint --noout --schema "$schemas/junit.xsd" cudaspy.xml 2>wrong || fail "junit: $(head -n 5 wrong)"
says '<failure' cudaspy.xml
job gitlab .gitlab-ci.yml copy-whole 0
xmllint --noout --schema "$schemas/junit.xsd" cudaspy.xml 2>wrong || fail "junit: $(head -n 5 wrong)"
grep -q '<failure' cudaspy.xml && fail "a failure without a problem"

# The two commands by themselves, and the baseline: the same is not worse.
cd "$tmp/github-copy-pieces" || exit 1
rm -rf traces
follow plain
expect "status of the plain gate" $? 1
follows baseline
follows baseline
# A test that fails itself fails the job, and is not hidden by cudaspy.
recipe ci failing
printf '#!/bin/sh\n%s copy-pieces\nexit 3\n' "$habit" >app-test
chmod +x app-test
follow plain
expect "status of a test that fails" $? 3
exit 0
