#!/bin/bash
# docs/recipes/jax.md, on the simulator, with a stand-in for the program: calls of the driver alone, from Python.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
recipe jax
python3 -m py_compile train_jax.py || fail "the page's program is no Python"
cp "$here/../recipes/standins/python/train_jax.py" .
export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192
without "JAX (a stand-in makes its calls)"
follows
expect "traces" "$(ls -d traces/*.cudaspy | wc -l)" 1
says '^done True' run.out
says 'read-back|pageable-copy' run.out
says 'train_jax\.py:[0-9]+' run.out
[ -s report.html ] || fail "no page"
exit 0
