#!/bin/bash
# docs/recipes/kubernetes.md: the manifests' fields, and their containers, run one after the other as a node would: the recorder
# comes from an init container, the root is read-only, the user has no rights, and the trace is in the claim.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need unshare setpriv dpkg-deb
/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml here"
containers_begin

recipe kubernetes
cp "$shim" libcudaspy.so
follows image
image registry.example/app:1.0
# The program's image with the command in it.
mkdir with && package with
printf 'FROM registry.example/app:1.0\nCOPY cudaspy_*.deb /tmp/\nRUN dpkg -i /tmp/cudaspy_*.deb\n' >with/Dockerfile
docker build -t registry.example/app-with-cudaspy:1.0 with >built 2>&1 || fail "the image with the command: $(cat built)"

follows apply
says '^CUDASPY REPORT' apply.out
says 'rank\.c:[0-9]' apply.out
says '^rank 0 of 1: 1$' "$STANDIN_DIR/pods/train/log"
claim=$STANDIN_DIR/claims/traces
expect "traces in the claim" "$(ls -d "$claim"/*.cudaspy | wc -l)" 1
expect "their user and rights" "$(stat -c %u:%a "$claim"/*.cudaspy | sed 's/:2700/:700/')" 1000:700

# A field that the API does not have, and a container that runs as root although it may not, are refused.
sed 's/restartPolicy/restartPolice/; s/name: train/name: wrong/' train.yaml >wrong.yaml
kubectl apply -f wrong.yaml 2>said && fail "an unknown field was taken"
says 'restartPolice: unknown field' said
sed 's/runAsUser: 1000/runAsUser: 0/; s/name: train/name: root/' train.yaml >root.yaml
kubectl apply -f root.yaml >said 2>&1
says 'runs as root' said "$STANDIN_DIR/pods/root/log"
exit 0
