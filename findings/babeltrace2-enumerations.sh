#!/bin/bash
# babeltrace2 2.0.4 (Debian 12, 2.0.4-1+b6): how long it takes to open a CTF trace whose metadata names the values of an enumeration.
#
# Expected: linear in the number of names, or nearly so.
# Seen: quadratic: one event and 8,000 names take 0.4 s of a CPU, 16,000 about four times and 32,000 about sixteen times as long, before a
# first line is printed. Each name is compared with each other one. A trace that writes the names of all functions it knows, as tracers of an
# API do, pays for it at each opening; names of what occurs in the trace are enough.
#
# Exit status 0: still so; 1: not so any more; 77: the package cannot be had here.
set -u
work=$(mktemp -d) || exit 77
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 77
command -v apt-get >/dev/null && command -v dpkg >/dev/null && command -v python3 >/dev/null || { echo "no Debian with python3"; exit 77; }
apt-get download babeltrace2=2.0.4-1+b6 libbabeltrace2-0=2.0.4-1+b6 libglib2.0-0 libelf1 libdw1 >got 2>&1 ||
	{ echo "apt-get: $(tail -n 1 got)"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
triplet=$(ls root/usr/lib | grep linux-gnu)
export LD_LIBRARY_PATH=$work/root/usr/lib/$triplet BABELTRACE_PLUGIN_PATH=$work/root/usr/lib/$triplet/babeltrace2/plugins
export LIBBABELTRACE2_PLUGIN_PROVIDER_DIR=$work/root/usr/lib/$triplet/babeltrace2/plugin-providers

# trace NAMES: of one event, in a folder of that name.
trace() {
	mkdir "$1"
	python3 - "$1" <<'END'
import struct, sys
names = ",".join('"function_%d" = %d' % (i, i) for i in range(int(sys.argv[1])))
open(sys.argv[1] + "/metadata", "w").write("""/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
typealias integer { size = 32; align = 8; signed = false; } := u32;
stream { event.header := struct { u32 id; u32 timestamp; }; };
event { id = 0; name = "e"; fields := struct { enum : u32 { %s } f; }; };
""" % names)
open(sys.argv[1] + "/stream", "wb").write(struct.pack("<III", 0, 1, 3))
END
}

# seconds NAMES: of a CPU, the least of three.
seconds() {
	local i
	for i in 1 2 3; do
		{ TIMEFORMAT=%U; time root/usr/bin/babeltrace2 "$1" >out 2>err; } 2>&1
		grep -q function_3 out || { echo "it does not run: $(head -n 1 err)" >&2; return 1; }
	done | sort -n | head -n 1
}
trace 8000
trace 32000
few=$(seconds 8000) && many=$(seconds 32000) && [ -n "$few" ] && [ -n "$many" ] || exit 77
echo "8000 names: $few s; 32000: $many s"
# Linear would be 4 times as long, quadratic 16 times.
awk "BEGIN { exit !($many > 8 * $few) }"
