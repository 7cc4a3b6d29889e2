# tests/bench/bench.mk: the benchmarks. Included by the top Makefile after testapps/apps.mk. `make
# bench` builds and runs them; the binaries also run elsewhere, without a compiler: tests/bench/run.

BENCH         := $(BUILD)/bench
BENCH_CFLAGS  := -std=gnu11 -O2 -g $(WARN) -pthread -Iinclude -isystem $(CUDA_HOME)/include
LTTNG_UST     := $(wildcard /usr/include/lttng/tracepoint.h /usr/include/*/lttng/tracepoint.h)

BENCH_PLAIN   := $(BENCH)/spawn $(BENCH)/logsize $(BENCH)/gentrace
NVTX_HEADER   := $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h)
BENCH_CUDA    := $(if $(NVTX_HEADER),$(BENCH)/bench_ranges) $(BENCH)/bench_nccl $(BENCH)/bench_calls $(BENCH)/bench_locks $(BENCH)/bench_map $(BENCH)/bench_waits $(BENCH)/libcupti_callback.so $(BENCH)/libcupti_activity.so \
                 $(if $(LTTNG_UST),$(BENCH)/liblttng_wrap.so)

.PHONY: bench bench-build
ifeq ($(NVCC),)
bench-build: $(BENCH_PLAIN)
	@echo 'bench: calls are not measured, that needs the CUDA toolkit: no nvcc found'
else
bench-build: $(BENCH_PLAIN) $(BENCH_CUDA)
endif

bench: bench-build
	$(Q)tests/bench/run --build $(BUILD) $(BENCH_ARGS)

$(BENCH_PLAIN): $(BENCH)/%: tests/bench/%.c $(wildcard include/cudaspy/*) tests/unit/trace_writer.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -o $@ $<

# Linked to the driver through the toolkit's stub, and bound lazily, so that uftrace finds its calls.
$(BENCH)/bench_calls $(BENCH)/bench_locks $(BENCH)/bench_waits $(BENCH)/bench_ranges: $(BENCH)/%: tests/bench/%.c $(BUILD)/kernels/empty.cu.o
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -rdynamic -o $@ $^ -Wl,-z,lazy \
		-Wl,--enable-new-dtags,-rpath,$(CUDA_HOME)/lib64 \
		-L$(CUDA_HOME)/lib64/stubs -L$(CUDA_HOME)/lib64 -lcuda -lcudart -lstdc++

# The calls of testapps/contention.
BENCH_MAP := $(patsubst %,$(BUILD)/testapps/%.c.o,contention_calls contention_memory common list workers) \
             $(BUILD)/testapps/small_library.o $(KERNEL_LIBRARY)
$(BENCH)/bench_map: tests/bench/bench_map.c $(BENCH_MAP)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -o $@ $^ $(APP_LDFLAGS) -lcudart -lstdc++ -lm -ldl

# The recorder, switched by it: tests/bench/ways.c.
$(BENCH)/ways.c.o: tests/bench/ways.c $(BUILD)/shim/probe/waiters.c.o
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) $(SHIM_CFLAGS) -c -o $@ $<
$(BENCH)/libcudaspy_ways.so: $(SHIM_OBJ) $(BENCH)/ways.c.o shim/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) $(SHIM_LDFLAGS)
bench-build: $(BENCH)/libcudaspy_ways.so

# The program that acts as NCCL in tests/e2e.
$(BENCH)/bench_nccl: tests/e2e/programs/nccl.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -D_GNU_SOURCE -o $@ $< -Wl,--enable-new-dtags,-rpath,$(CUDA_HOME)/lib64 \
		-L$(CUDA_HOME)/lib64 -lcudart -ldl

$(BENCH)/libcupti_%.so: tests/bench/cupti_%.c tests/bench/cupti_load.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BENCH_CFLAGS) -fPIC -shared -o $@ $< -ldl

$(BENCH)/liblttng_wrap.so: tests/bench/lttng_wrap.c tests/bench/lttng_provider.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -fPIC -shared -iquote tests/bench \
		-I tests/bench -isystem $(CUDA_HOME)/include -o $@ $< -llttng-ust -ldl
