#!/bin/bash
# docs/recipes: each page is in the index and in no other form than its test can run; no link leads nowhere.
. "$(dirname "$0")/lib.sh"
need python3
recipes=$(realpath "$here/../../docs/recipes")
cd "$recipes" || exit 1
[ "$(ls ./*.md | wc -l)" -ge 11 ] || fail "too few pages in $recipes"
for page in *.md; do
	name=${page%.md}
	[ "$name" = README ] && continue
	"$here/../recipes/blocks" "$page" "$tmp/$name" || fail "$page"
	grep -q "^| \[$name\]($page) |" README.md || fail "README.md does not list $page"
	grep -q "^## How this page was run" "$page" || fail "$page does not say how it was run"
	test=$(sed -n 's|.*`\(tests/e2e/test_recipe_[a-z]*\.sh\)`.*|\1|p' "$page" | head -n 1)
	[ -x "$here/../../$test" ] || fail "$page names no test that there is: $test"
	# Each script of the page is run there by its name.
	for script in "$tmp/$name"/*.sh; do
		script=$(basename "$script" .sh)
		[[ $script == job* ]] || grep -Eq "follows?( |$)|$script" "$here/../../$test" || fail "$test does not run $script"
		[ "$script" = run ] || [[ $script == job* ]] || grep -Eq "(follows?|launched) .*$script|$script\.sh|for .* in .*$script" "$here/../../$test" ||
			fail "$test does not run the blocks run=$script of $page"
	done
done
for page in *.md; do
	grep -o '](\([^)#:]*\))' "$page" | sed 's/^](//; s/)$//' | while read -r link; do
		[ -e "$link" ] || fail "$page: there is no $link"
	done
done
# A block that says nothing is refused.
printf 'text\n```sh\nls\n```\n' >"$tmp/wrong.md"
"$here/../recipes/blocks" "$tmp/wrong.md" "$tmp/wrong" 2>"$tmp/said" && fail "an unmarked block was taken"
grep -q 'wrong.md:2' "$tmp/said" || fail "said: $(cat "$tmp/said")"
exit 0
