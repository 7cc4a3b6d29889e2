# tests/e2e/python_stacks.sh: what a dump says of lines of Python. Sourced by tests/e2e/test_python.sh and
# tests/gpu/lines.
# shellcheck shell=bash

# python_stacks [FUNCTION] <DUMP: a line for each stack in Python, of calls of that function or of all calls, as
# tests/e2e/python_note.py has it.
python_stacks() {
	# [python_code] … code=N first_line=L file="F" function="N"; [python_stack] … of=FN more=M lines=N:L,…
	sed -n 's/.* \[python_code\] .* code=\([0-9]*\) .* file="\(.*\)" function="\(.*\)"$/c \1 \3:\2/p
		s/.* \[python_stack\] .* of='"${1:-[^- ][^ ]*}"' more=\([0-2]\) lines=\(.*\)$/s \1 \2/p' |
		awk '$1 == "c" { n = $2; sub(/^c [0-9]+ /, ""); name[n] = $0 }
			$1 == "s" { more[++count] = $2; lines[count] = $3 }
			END { for (i = 1; i <= count; i++) {
				text = "more=" more[i] " "
				n = split(lines[i], frame, ",")
				for (j = 1; j <= n; j++) {
					split(frame[j], part, ":")
					text = text (j > 1 ? "," : "") part[2] ":" name[part[1]]
				}
				print text
			} }'
}
