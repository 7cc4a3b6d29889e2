# tests/gpu/gpu.mk: what tests/gpu/run, busy, waits and testapps/tour take to a machine with GPUs.
# Included by the top Makefile after testapps/apps.mk and tests/bench/bench.mk. `make gpu-build` builds
# here; the machine there needs no compiler.

GPU_TESTS := $(BUILD)/gpu/mixed $(BUILD)/gpu/mixed-static $(BUILD)/gpu/libcupti_truth.so $(BUILD)/gpu/libcupti_busy.so $(BUILD)/gpu/facts $(BUILD)/gpu/cost_loops

# What a program with NCCL costs, and a profiler of the user's; where the toolkit's folder has NCCL's header.
NCCL_STATIC_LIB ?=
ifneq ($(wildcard $(CUDA_HOME)/include/nccl.h),)
GPU_TESTS += $(BUILD)/gpu/nccl_cost $(BUILD)/gpu/libnccl-profiler.so $(if $(NCCL_STATIC_LIB),$(BUILD)/gpu/nccl_cost_static)
endif

.PHONY: gpu-build
ifeq ($(NVCC),)
gpu-build:
	@echo 'tests/gpu: skipped, needs the CUDA toolkit: no nvcc found'
else
gpu-build: $(GPU_TESTS) apps
endif

$(BUILD)/gpu/mixed $(BUILD)/gpu/mixed-static: tests/gpu/mixed.cu tests/gpu/mixed_copies.cu \
		tests/gpu/mixed.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,$(NVCC_FLAGS) -Xcompiler -pthread$(comma)-rdynamic $(if $(filter %-static,$@),-cudart static,-cudart shared),\
		-Xlinker -export-dynamic $(if $(filter %-static,$@),,-Xlinker --enable-new-dtags$(comma)-rpath=$(CUDA_HOME)/lib64))

# What recording costs: tests/gpu/cost.
$(BUILD)/gpu/cost_loops: tests/gpu/cost_loops.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -I$(CUDA_HOME)/include -o $@ $< -L$(CUDA_HOME)/lib64 -lcudart

$(BUILD)/gpu/libcupti_%.so: tests/gpu/cupti_%.c tests/bench/cupti_load.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -iquote tests/bench -fPIC -shared -o $@ $< -ldl

$(BUILD)/gpu/facts_code.o: tests/gpu/facts_code.cu
	$(call embed_code,facts_code)

$(BUILD)/gpu/facts: tests/gpu/facts.c tests/gpu/facts_getters.c tests/gpu/facts_captures.c $(BUILD)/gpu/facts_code.o tests/gpu/facts.h
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -I$(CUDA_HOME)/include -rdynamic -o $@ $(filter %.c %.o,$^) -L$(CUDA_HOME)/lib64/stubs -lcuda

# NCCL's structs are passed to functions that are declared without arguments, hence -w.
NCCL_LINK := -rdynamic -I$(CUDA_HOME)/include -L$(CUDA_HOME)/lib64
$(BUILD)/gpu/nccl_cost: tests/gpu/nccl_cost.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -w $(NCCL_LINK) -o $@ $< -lcudart_static -ldl -lrt -lpthread

$(BUILD)/gpu/nccl_cost_static: tests/gpu/nccl_cost.c $(NCCL_STATIC_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -w -DNCCL_STATIC $(NCCL_LINK) -o $@ $< $(NCCL_STATIC_LIB) -lcudart_static -lstdc++ -lm -ldl -lrt -lpthread

$(BUILD)/gpu/libnccl-profiler.so: tests/gpu/nccl_profiler.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -fPIC -shared -o $@ $<
