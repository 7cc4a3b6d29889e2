# tests/sim/sim.mk: builds the simulated CUDA into $(BUILD)/sim; included by the top Makefile, whose
# BUILD, CC, CFLAGS_, SANFLAGS, Q and say it uses. `make sim` builds all of it.
SIM      := tests/sim
SIM_OUT  := $(BUILD)/sim
SIM_LIB  := $(SIM_OUT)/lib
SIM_GENS := 11 12 13

SIM_DRIVER_SRC  := $(addprefix $(SIM)/,engine.c sharing.c mps.c locks.c truth.c waits.c jobs.c meetings.c script.c \
		   mangle.c memory_blocks.c) \
		   $(wildcard $(SIM)/driver_*.c)
SIM_RUNTIME_SRC := $(wildcard $(SIM)/runtime_*.c)
SIM_DRIVER_OBJ  := $(patsubst $(SIM)/%.c,$(SIM_OUT)/driver/%.o,$(SIM_DRIVER_SRC))

SIM_CFLAGS  = $(CFLAGS_) -D_GNU_SOURCE -Wno-unused-parameter -fvisibility=hidden -Iinclude -iquote $(SIM) \
	      -ftls-model=initial-exec
SIM_LD     := $(CC) $(SANFLAGS) -shared -pthread -Wl,-Bsymbolic-functions -Wl,-z,nodelete -Wl,--no-undefined
# A sanitizer's own symbols are undefined in a library on purpose.
ifneq ($(SAN),)
SIM_LD     := $(CC) $(SANFLAGS) -shared -pthread -Wl,-Bsymbolic-functions -Wl,-z,nodelete
endif

sim_node = libcudart.so.$(if $(filter 11,$(1)),11.0,$(1))

$(SIM_OUT)/driver/%.o: $(SIM)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(SIM_CFLAGS) -c -o $@ $<

$(SIM_OUT)/nodevice/script.o: $(SIM)/script.c
	@mkdir -p $(@D)
	$(call say,CC,$< (no device))
	$(Q)$(CC) $(SIM_CFLAGS) -DSIM_NODEVICE -c -o $@ $<

# The driver's look-up searches since.def by bisection, so it does not link while that is out of order.
$(SIM_OUT)/driver.map: $(SIM)/driver.map.in $(SIM)/since.def include/cudaspy/entrypoints.def
	@mkdir -p $(@D)
	$(Q)sed -n 's/^SINCE(\([^,]*\),.*/\1/p' $(SIM)/since.def | LC_ALL=C sort -c -u || \
		{ echo '$(SIM)/since.def: the names must be in strcmp order, each once: see the one above' >&2; false; }
	$(Q)$(CC) -E -P -x c -Iinclude -iquote $(SIM) -o $@ $<

$(SIM_LIB)/libcuda.so.1: $(SIM_DRIVER_OBJ) $(SIM_OUT)/driver.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(SIM_LD) -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(SIM_OUT)/driver.map -o $@ $(SIM_DRIVER_OBJ) -ldl
	$(Q)ln -sf libcuda.so.1 $(SIM_LIB)/libcuda.so

$(SIM_OUT)/nodevice/libcuda.so.1: $(SIM_DRIVER_OBJ) $(SIM_OUT)/nodevice/script.o $(SIM_OUT)/driver.map
	$(call say,LD,$@)
	$(Q)$(SIM_LD) -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(SIM_OUT)/driver.map -o $@ \
		$(filter-out %/script.o,$(SIM_DRIVER_OBJ)) $(SIM_OUT)/nodevice/script.o -ldl

# One runtime for each generation, from the same sources.
define sim_runtime
$(SIM_OUT)/runtime$(1)/%.o: $(SIM)/%.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$< ($(1)))
	$$(Q)$$(CC) $$(SIM_CFLAGS) -DRT_GEN=$(1) -c -o $$@ $$<

$(SIM_OUT)/runtime$(1).map: $(SIM)/runtime.map.in $(SIM)/runtime_entries.h include/cudaspy/entrypoints.def
	@mkdir -p $$(@D)
	$$(Q)$$(CC) -E -P -x c -Iinclude -iquote $(SIM) -DRT_GEN=$(1) -DRT_NODE=$(call sim_node,$(1)) -o $$@ $$<

$(SIM_LIB)/$(call sim_node,$(1)): $(patsubst $(SIM)/%.c,$(SIM_OUT)/runtime$(1)/%.o,$(SIM_RUNTIME_SRC)) \
		$(SIM_OUT)/runtime$(1).map
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(SIM_LD) -Wl,-soname,$(call sim_node,$(1)) -Wl,--version-script=$(SIM_OUT)/runtime$(1).map -o $$@ \
		$$(filter %.o,$$^) -ldl

SIM_OBJ += $(patsubst $(SIM)/%.c,$(SIM_OUT)/runtime$(1)/%.o,$(SIM_RUNTIME_SRC))
SIM_RUNTIMES += $(SIM_LIB)/$(call sim_node,$(1))
endef
SIM_OBJ := $(SIM_DRIVER_OBJ) $(SIM_OUT)/nodevice/script.o
SIM_RUNTIMES :=
$(foreach gen,$(SIM_GENS),$(eval $(call sim_runtime,$(gen))))

# The static runtime is the one of generation 13, its symbols hidden once linked.
$(SIM_OUT)/libsimcudart_static.a: $(patsubst $(SIM)/%.c,$(SIM_OUT)/runtime_static/%.o,$(SIM_RUNTIME_SRC))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(SIM_OUT)/runtime_static/%.o: $(SIM)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$< (static))
	$(Q)$(CC) $(SIM_CFLAGS) -DRT_GEN=13 -DRT_STATIC -c -o $@ $<
SIM_OBJ += $(patsubst $(SIM)/%.c,$(SIM_OUT)/runtime_static/%.o,$(SIM_RUNTIME_SRC))

$(SIM_LIB)/libcudart.so: $(SIM_LIB)/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@

# Preloaded by with-sim. A sanitizer's runtime has to come before every library of ours.
SIM_KERNEL := $(if $(SAN),,$(SIM_OUT)/libsimkernel.so)
$(SIM_OUT)/libsimkernel.so: $(SIM)/kernel_module.c $(SIM)/kernel_module.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out $(DEPS),$(SIM_CFLAGS)) -shared -Wl,-soname,libsimkernel.so -o $@ $<

# The look-alike of the MPS control daemon, and of its server, which the daemon runs under that name.
SIM_MPS := $(SIM_OUT)/nvidia-cuda-mps-control
$(SIM_MPS): $(SIM)/mps_control.c $(SIM)/mps.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fPIC $(DEPS),$(CFLAGS_)) $(SANFLAGS) -D_GNU_SOURCE -iquote $(SIM) -o $@ $<
	$(Q)ln -f $@ $(@D)/nvidia-cuda-mps-server

# The look-alike of NVML.
$(SIM_LIB)/libnvidia-ml.so.1: $(SIM_OUT)/cupti/nvml.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(SIM_LD) -Wl,-soname,libnvidia-ml.so.1 -o $@ $< -ldl

# The look-alike of CUPTI. Its older names lead to it, too; what it exports is of version 13's node.
SIM_CUPTI_OBJ := $(patsubst %,$(SIM_OUT)/cupti/%.o,cupti cupti_records)
$(SIM_OUT)/cupti/%.o: $(SIM)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(SIM_CFLAGS) -c -o $@ $<

$(SIM_LIB)/libcupti.so.13: $(SIM_CUPTI_OBJ) $(SIM)/cupti.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(SIM_LD) -Wl,-soname,libcupti.so.13 -Wl,--version-script=$(SIM)/cupti.map -o $@ $(SIM_CUPTI_OBJ) -ldl
	$(Q)ln -sf libcupti.so.13 $(SIM_LIB)/libcupti.so.12
	$(Q)ln -sf libcupti.so.13 $(SIM_LIB)/libcupti.so
SIM_OBJ += $(SIM_CUPTI_OBJ)

# The look-alike of NCCL.
SIM_NCCL_OBJ := $(patsubst %,$(SIM_OUT)/nccl/%.o,nccl nccl_clock nccl_math nccl_meet nccl_plugin nccl_proxy)
$(SIM_OUT)/nccl/%.o: $(SIM)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(SIM_CFLAGS) -c -o $@ $<

$(SIM_LIB)/libnccl.so.2: $(SIM_NCCL_OBJ) $(SIM)/nccl.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(SIM_LD) -Wl,-soname,libnccl.so.2 -Wl,--version-script=$(SIM)/nccl.map -o $@ $(SIM_NCCL_OBJ) -ldl
	$(Q)ln -sf libnccl.so.2 $(SIM_LIB)/libnccl.so
SIM_OBJ += $(SIM_NCCL_OBJ)

# Where the toolkit is installed, our structures are held against its headers.
SIM_CUDA_INC := $(wildcard $(if $(CUDA_HOME),$(CUDA_HOME),/usr/local/cuda)/include)
SIM_CHECKS := $(SIM_OUT)/check_layout.o $(SIM_OUT)/cupti_check.o $(SIM_OUT)/nccl_check.o
$(SIM_CHECKS): $(SIM_OUT)/%.o: $(SIM)/%.c
	@mkdir -p $(@D)
	$(call say,CHECK,$<)
	$(Q)$(CC) $(SIM_CFLAGS) $(if $(SIM_CUDA_INC),-isystem $(SIM_CUDA_INC)) -c -o $@ $<
SIM_OBJ += $(SIM_CHECKS)

$(SIM_OUT)/selftest: $(SIM)/selftest.c $(SIM_LIB)/libcudart.so.13 $(SIM_LIB)/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fPIC,$(CFLAGS_)) -D_GNU_SOURCE -rdynamic -o $@ $< $(SIM_LIB)/libcudart.so.13 -ldl -lpthread
SIM_OBJ += $(SIM_OUT)/selftest.o

$(SIM_OUT)/selftest_cupti: $(SIM)/selftest_cupti.c $(SIM_LIB)/libcudart.so.13 $(SIM_LIB)/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fPIC,$(CFLAGS_)) -D_GNU_SOURCE -o $@ $< $(SIM_LIB)/libcudart.so.13 -ldl -lpthread
SIM_OBJ += $(SIM_OUT)/selftest_cupti.o

$(SIM_OUT)/selftest_nccl: $(SIM)/selftest_nccl.c $(SIM_LIB)/libnccl.so.2 $(SIM_LIB)/libcudart.so.13 $(SIM_LIB)/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fPIC,$(CFLAGS_)) -D_GNU_SOURCE -o $@ $< $(SIM_LIB)/libnccl.so.2 $(SIM_LIB)/libcudart.so.13
SIM_OBJ += $(SIM_OUT)/selftest_nccl.o

# A plugin for each version of its profiler interface.
SIM_NCCL_PLUGINS := $(foreach version,1 2 3 4 5 6,$(SIM_OUT)/libnccl-profiler-v$(version).so)
$(SIM_OUT)/libnccl-profiler-v%.so: $(SIM)/selftest_nccl_plugin.c $(SIM)/nccl_events.h
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out $(DEPS),$(SIM_CFLAGS)) -DPLUGIN_VERSION=$* -shared -o $@ $<

.PHONY: sim sim-tests
sim: $(SIM_LIB)/libcuda.so.1 $(SIM_OUT)/nodevice/libcuda.so.1 $(SIM_RUNTIMES) $(SIM_LIB)/libcudart.so \
	$(SIM_OUT)/libsimcudart_static.a $(SIM_CHECKS) $(SIM_KERNEL) \
	$(SIM_MPS) $(SIM_LIB)/libnvidia-ml.so.1 $(SIM_LIB)/libcupti.so.13 $(SIM_LIB)/libnccl.so.2

# Programs as nvcc makes them, run unchanged on the simulator.
SIM_SAMPLES := $(if $(NVCC),$(patsubst $(SIM)/samples/%.cu,$(SIM_OUT)/samples/%,$(wildcard $(SIM)/samples/*.cu)))
$(SIM_OUT)/samples/%: $(SIM)/samples/%.cu $(SIM)/samples/check.h
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(call nvcc_program,-cudart shared -Xcompiler -rdynamic)

# What tests/e2e runs on it.
sim-tests: sim $(SIM_OUT)/selftest $(SIM_OUT)/selftest_cupti $(SIM_OUT)/selftest_nccl $(SIM_NCCL_PLUGINS) $(SIM_SAMPLES)

-include $(SIM_OBJ:.o=.d)
