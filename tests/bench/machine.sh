# tests/bench/machine.sh: what the scripts in tests/bench and tests/gpu ask of the machine they run
# on. Sourced by them; sets nothing, prints what it finds.
# shellcheck shell=bash

# The folder of a library, or nothing: find_library libcudart.so.13
find_library() {
	local name=$1 folder site
	site=$(python3 -c 'import site; print(" ".join(site.getsitepackages()))' 2>/dev/null)
	for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64" "$CUDA_HOME/extras/CUPTI/lib64"} \
		/usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 \
		/usr/local/cuda-13*/lib64 /usr/local/cuda-13*/extras/CUPTI/lib64 \
		/usr/lib/x86_64-linux-gnu \
		$(for s in $site; do echo "$s"/nvidia/cu13/lib "$s"/nvidia/*/lib; done); do
		if [ -e "$folder/$name" ]; then
			echo "$folder"
			return 0
		fi
	done
	return 1
}

have_gpu() {
	[ -e /dev/nvidia0 ] || nvidia-smi -L >/dev/null 2>&1
}

describe_machine() {
	echo "cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; kernel $(uname -r)"
	if have_gpu; then
		nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null |
			sed 's/^/gpu: /'
	else
		echo "gpu: none"
	fi
}
