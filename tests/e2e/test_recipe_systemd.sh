#!/bin/bash
# docs/recipes/systemd.md: systemd finds unit and drop-in in order; and a systemd of the test's own starts the service, locked up as
# the unit says, and its trace is where the drop-in puts it.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need systemd-analyze
[ -x /lib/systemd/systemd ] || skip "no systemd here"
containers_begin

# group_of_ours: a control group (version 2) for the new systemd, whose name is printed.
group_of_ours() {
	local where
	where=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$where" ] && mkdir "$where/cudaspy-test-$$" 2>/dev/null && echo "$where/cudaspy-test-$$"
}

recipe systemd
layer=$tmp/layer
install_into "$layer/usr/local"
install -D -m 755 "$rank" "$layer/opt/server/server"
install -D -m 644 server.service "$layer/etc/systemd/system/server.service"
mkdir -p "$layer/opt/gpu"
cp -L "$build"/sim/lib/*.so* "$layer/opt/gpu/"
cp -r "$PWD" "$layer/opt/recipe"
chmod 755 "$layer" "$layer"/{usr,opt,etc} "$layer"/etc/systemd{,/system} "$layer"/opt/*

# The page's commands, in that root.
"$here/../recipes/in-root" --tmpfs /tmp --tmpfs /run --workdir /opt/recipe "$layer" -- bash run.sh >run.out 2>run.err ||
	fail "run.sh: status $?: $(tail -n 5 run.out run.err)"
grep 'server' run.err run.out | grep -vi 'man page\|multi-user' && fail "systemd-analyze complains: $(cat run.out run.err)"

# What the machine with a GPU would have: where its library is. And the end of this systemd, with the service.
mkdir -p "$layer/etc/systemd/system/server.service.d"
cat >"$layer/etc/systemd/system/server.service.d/test.conf" <<END
[Unit]
SuccessAction=exit
FailureAction=exit
DefaultDependencies=no
[Service]
Type=oneshot
Restart=no
Environment=LD_LIBRARY_PATH=/opt/gpu
StandardOutput=file:/said/out
StandardError=file:/said/err
END
printf '[Unit]\nWants=server.service\n' >"$layer/etc/systemd/system/recipe.target"
mkdir -p "$tmp/said"
group=$(group_of_ours)
if [ -n "$group" ]; then
	remove_group() { find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; }
	at_end remove_group
	(
		echo "$BASHPID" >"$group/cgroup.procs" || exit 77
		exec timeout -k 5 120 "$here/../recipes/in-root" --boot --tmpfs /run --tmpfs /tmp --bind "$tmp/said:/said" --env container=recipe \
			"$layer" -- /lib/systemd/systemd --system --unit=recipe.target --log-target=console --show-status=false
	) >boot.out 2>boot.err
	status=$?
	if [ "$status" = 77 ]; then
		without "a systemd of its own ($(tail -n 1 boot.err))"
	else
		[ -s "$tmp/said/out" ] || fail "the service has said nothing, status $status: $(tail -n 5 boot.out boot.err "$tmp"/said/*)"
		says '^rank 0 of 1: 1$' "$tmp/said/out"
		says '^cudaspy: .*cudaspy-server/.*: [0-9]+ calls .* 0 lost' "$tmp/said/err"
		folder=$layer/var/lib/private/cudaspy-server
		expect "traces" "$(ls -d "$folder"/*.cudaspy | wc -l)" 1
		# A user that systemd has made up, and that is gone.
		expect "rights of the trace" "$(stat -c %a "$folder"/*.cudaspy)" 700
		[ "$(stat -c %u "$folder"/*.cudaspy)" -ge 61184 ] || fail "the trace is not the service's user's"
		"$here/../recipes/in-root" --workdir /opt/recipe "$layer" -- bash look.sh >look.out 2>look.err || fail "look.sh: $(cat look.err)"
		says '^CUDASPY REPORT' look.out
		says 'rank\.c:[0-9]' look.out
	fi
else
	without "a systemd of its own (no control group)"
fi
exit 0
