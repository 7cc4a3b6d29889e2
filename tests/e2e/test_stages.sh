#!/bin/bash
# A stage's struct that gets a field which its join says nothing of, a join that is said to add up a field and does not, and a
# stage without a join are found by tests/stages, which `make check` runs; the tree as it is has none of them.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need python3
root=$here/../..
"$root/tests/stages" "$root" || fail "the tree"
mkdir tree
cp -r "$root/analyzer" tree

# found WHAT FILE SED: after that edit it is.
found() {
	cp "tree/$2" kept
	sed -i "$3" "tree/$2"
	cmp -s "tree/$2" kept && fail "$1: nothing to edit in $2"
	"$root/tests/stages" tree 2>said && fail "$1: not found"
	grep -q "$1" said || fail "$1: $(cat said)"
	cp kept "tree/$2"
}
found "what becomes of forgotten of struct idle" analyzer/idle/idle.h 's/^struct idle {/&\n\tuint64_t forgotten;/'
found "what becomes of forgotten of struct range_seen" analyzer/account/ranges.h 's/^struct range_seen {/&\n\tbool forgotten[4];/'
found "gaps_recorded of struct accounting is said to be joined" analyzer/account/account_join.c "/gaps_recorded\\[/d"
found "struct cost_study has no cells" analyzer/cost/cost.h 's/\bcells;/squares;/'
found "no file says 'struct news, joined" analyzer/findings/stages.def 's/^STAGE(idle, /STAGE(news, struct news, ALWAYS,)\n\n&/'
