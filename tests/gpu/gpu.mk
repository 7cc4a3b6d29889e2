# tests/gpu/gpu.mk: what tests/gpu/run and tests/gpu/waits take to a machine with GPUs. Included by the
# top Makefile after testapps/apps.mk and tests/bench/bench.mk. `make gpu-build`
# builds here; the machine there needs no compiler.

GPU_TESTS := $(BUILD)/gpu/mixed $(BUILD)/gpu/mixed-static $(BUILD)/gpu/libcupti_truth.so \
		$(BUILD)/gpu/contention $(addprefix $(BUILD)/testapps/,copies lazyload queue clean)

.PHONY: gpu-build
ifeq ($(NVCC),)
gpu-build:
	@echo 'tests/gpu: skipped, needs the CUDA toolkit: no nvcc found'
else
gpu-build: $(GPU_TESTS)
endif

$(BUILD)/gpu/mixed $(BUILD)/gpu/mixed-static: tests/gpu/mixed.cu tests/gpu/mixed_copies.cu \
		tests/gpu/mixed.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) -Xcompiler -pthread,-rdynamic -Xlinker -export-dynamic \
		$(if $(filter %-static,$@),-cudart static,-cudart shared -Xlinker \
		--enable-new-dtags$(comma)-rpath=$(CUDA_HOME)/lib64) -o $@ $(filter %.cu,$^)

# With the shared runtime, so that it runs on the simulator, too.
$(BUILD)/gpu/contention: $(BUILD)/gpu/%: tests/gpu/%.cu $(KERNEL_LIBRARY) \
		kernels/kernels.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) -Xcompiler -pthread,-rdynamic -Xlinker -export-dynamic -cudart shared \
		-Xlinker --enable-new-dtags$(comma)-rpath=$(CUDA_HOME)/lib64 -o $@ $(filter %.cu %.o %.a,$^)
$(BUILD)/gpu/contention: $(BUILD)/gpu/small_library.o

# A small library to load and unload: kernels/empty.cu as a fatbin, in an array.
$(BUILD)/gpu/small_library.o: kernels/empty.cu kernels/kernels.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) -fatbin -o $(@:.o=.fatbin) $<
	$(Q)printf '%s\n' '.section .rodata' '.balign 16' '.globl small_library' 'small_library:' \
		'.incbin "$(@:.o=.fatbin)"' '.section .note.GNU-stack,"",@progbits' | \
		$(CC) -x assembler -c -o $@ -

$(BUILD)/gpu/libcupti_truth.so: tests/gpu/cupti_truth.c tests/bench/cupti_load.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -iquote tests/bench -fPIC -shared -o $@ $< -ldl
