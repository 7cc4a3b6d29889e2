#!/bin/bash
# The scripts that measure (testapps/tour, tests/gpu, tests/bench/run) say which option is wrong, and why, before
# they do anything.
. "$(dirname "$0")/lib.sh"
top=$here/../..

# refuses SCRIPT OPTION VALUE...
refuses() {
	timeout 60 "$top/$1" "${@:2}" >said 2>&1
	expect "status of $*" $? 2
	grep -q -e "^${1##*/}: $2" said || fail "$*: $(cat said)"
}

while read -r script option; do
	for value in abc 1x -3 0 09 1.5 '' 99999999999999999999; do
		refuses "$script" "$option" "$value"
	done
	refuses "$script" "$option"
done <<-END
	testapps/tour --seconds
	tests/gpu/run --seconds
	tests/gpu/waits --seconds
	tests/gpu/waits --threads
	tests/gpu/neutral --rounds
	tests/gpu/neutral --threads
	tests/bench/run --repeats
END
for script in testapps/tour tests/gpu/run tests/gpu/waits tests/gpu/waits-read tests/gpu/neutral tests/bench/run; do
	refuses "$script" --build
	refuses "$script" --build --out
done

# What is to be read has to be there, and a visit.
date >text
mkdir empty
refuses testapps/tour --read --out
refuses testapps/tour --read nosuch
for script in testapps/tour tests/gpu/waits; do
	for from in text empty; do
		timeout 60 "$top/$script" --read "$tmp/$from" --build "$build" --out "$tmp/out" >said 2>&1
		expect "status of $script --read $from" $? 2
		expect "lines of $script --read $from" "$(wc -l <said)" 1
		grep -q "^[a-z-]*: --read: .*$tmp/$from" said || fail "$script --read $from: $(cat said)"
	done
done

# An excerpt of a report ends where a row does.
. "$top/tests/bench/options.sh"
. "$top/tests/gpu/visit.sh"
{
	echo "FINDINGS, the costliest first"
	for row in 1 2 3 4 5; do
		printf '  %d  1.000 ms  what\n' $row
		for line in 1 2 3 4 5 6 7; do echo "    12 calls, of row $row"; done
	done
} >report.txt
report_beginning report >excerpt
expect "the excerpt's last row" "$(grep -c 'of row 3' excerpt) $(grep -c 'of row 4' excerpt)" "7 0"
expect "the excerpt's last line" "$(tail -n 1 excerpt)" "      … more in reports/report.txt"
