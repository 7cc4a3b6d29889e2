#!/bin/bash
# Completion in bash offers verbs, the options of each verb, and the values that options take.
. "$(dirname "$0")/lib.sh"
"$tool" help --format=bash >bash.sh || fail "no completion for bash"
"$tool" help --format=zsh >_cudaspy || fail "no completion for zsh"
# shellcheck disable=SC1091
. ./bash.sh || fail "bash does not read it"

# offers WORDS LINE...: the words are among those offered for the last word of the line.
offers() {
	local wanted=$1 word
	shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_cudaspy 2>err || fail "$*: status $?"
	[ -s err ] && fail "$*: $(cat err)"
	for word in $wanted; do
		printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$word" -e "$word=" ||
			fail "$*: $word is not offered: ${COMPREPLY[*]}"
	done
}

verbs=$("$tool" help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\)  .*/\1/p')
offers "$verbs --help --version" cudaspy ''
offers report cudaspy rep
expect "verbs that begin with rep" "${#COMPREPLY[@]}" 1
for verb in $verbs; do
	options=$(COLUMNS=160 "$tool" help "$verb" | sed -n '/^Options:/,$s/^  [-h ][^-]*\(--[a-z-]*\).*/\1/p')
	offers "$options" cudaspy "$verb" -
done
offers "text json junit sarif" cudaspy report --format = ''
offers sarif cudaspy report -f s
offers "any problem pageable-copy" cudaspy report --fail-on ''
offers problem,hidden-sync cudaspy report --fail-on = problem,hid
offers "time details" cudaspy dump --fields = ''
offers monotonic cudaspy run --clock = ''
offers pageable-copy cudaspy explain ''
offers report cudaspy help ''
mkdir 'a folder' other
offers other cudaspy run --out = o
offers other cudaspy report o
offers other cudaspy run --out = other ./program o
[ "$(LC_ALL=C; offers '' cudaspy report 'a'; printf '%s' "${COMPREPLY[0]}")" = 'a folder' ] || fail "a name with a blank"

if command -v zsh >/dev/null; then
	zsh -n _cudaspy || fail "zsh does not read it"
else
	without zsh
fi
