# tests/bench/options.sh: the values of options, for the scripts that measure: tests/bench/run, tests/gpu,
# testapps/tour. Sourced by them before they look at their options.
# shellcheck shell=bash

script=${0##*/}

# option_value OPTION VALUE...: the value that has to follow, which is no option itself.
option_value() {
	[ $# -ge 2 ] || { echo "$script: $1 needs a value" >&2; exit 2; }
	case $2 in --*) echo "$script: $1 needs a value, and $2 is an option" >&2; exit 2 ;; esac
	echo "$2"
}

# option_number OPTION VALUE...: the same of a whole number from 1 on.
option_number() {
	local value
	value=$(option_value "$@") || exit
	case $value in ''|0*|*[!0-9]*|??????????*)
		echo "$script: $1: '$value' is no whole number from 1 to 999999999" >&2
		exit 2 ;;
	esac
	echo "$value"
}
