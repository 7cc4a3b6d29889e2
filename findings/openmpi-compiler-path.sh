#!/bin/bash
# Open MPI 4.1.4 (Debian 12, openmpi-bin 4.1.4-3+b1) and MPICH 4.0.2 (4.0.2-3+b1): OMPI_CC and MPICH_CC name the compiler that mpicc calls.
#
# Expected: a name with a slash is a path, from the current folder, as for a shell or execvp.
# Seen: MPICH's wrapper takes it so. Open MPI's looks for "tools/cc" and "./tools/cc" in the folders of PATH, finds none, and says that the
# compiler cannot be found; an absolute path works. So a build with CC=tools/wrapper compiles everything but what mpicc compiles.
#
# Exit status 0: still so; 1: not so any more; 77: the packages cannot be had here.
set -u
work=$(mktemp -d) || exit 77
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 77
command -v apt-get >/dev/null && command -v dpkg >/dev/null && command -v gcc >/dev/null || { echo "no Debian with gcc"; exit 77; }
apt-get download openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi-dev=4.1.4-3+b1 libopenmpi3=4.1.4-3+b1 libhwloc15 \
	libevent-core-2.1-7 libevent-pthreads-2.1-7 mpich=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 libmpich12=4.0.2-3+b1 >got 2>&1 ||
	{ echo "apt-get: $(tail -n 1 got)"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
triplet=$(gcc -dumpmachine)
export OPAL_PREFIX=$work/root/usr LD_LIBRARY_PATH=$work/root/usr/lib/$triplet:$work/root/usr/lib/$triplet/openmpi/lib
mkdir tools
printf '#!/bin/sh\necho called\n' >tools/cc
chmod +x tools/cc
for name in tools/cc ./tools/cc "$work/tools/cc"; do
	echo "Open MPI $([ "$name" = "$work/tools/cc" ] && echo absolute || echo "$name"): $(OMPI_CC=$name root/usr/bin/mpicc.openmpi -c x.c 2>&1 | grep -o 'called\|unable to find the specified compiler')"
	echo "MPICH $([ "$name" = "$work/tools/cc" ] && echo absolute || echo "$name"): $(MPICH_CC=$name bash root/usr/bin/mpicc.mpich -c x.c 2>&1 | grep -o 'called\|not found')"
done | tee seen
diff seen - <<END
Open MPI tools/cc: unable to find the specified compiler
MPICH tools/cc: called
Open MPI ./tools/cc: unable to find the specified compiler
MPICH ./tools/cc: called
Open MPI absolute: called
MPICH absolute: called
END
