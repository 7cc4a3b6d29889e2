# tests/e2e: fake CUDA libraries that show what they receive, and the programs the tests run.
# None of it needs the CUDA toolkit but what E2E_CUDA lists.

E2E       := $(BUILD)/tests/e2e
E2E_FAKES := $(E2E)/fakes/libcuda.so.1 $(patsubst %,$(E2E)/fakes/libcudart.so.%,11.0 12 13)
E2E_C     := -std=gnu11 -D_GNU_SOURCE -O1 -g $(WARN) -pthread -Iinclude -iquote tests/e2e/programs

.PHONY: e2e
e2e: $(E2E_FAKES)

# ---- the fakes: name, soname, generation, version node ------------------------------------------
define e2e_fake
$(E2E)/fakes/$(1): tests/e2e/programs/fake.c tests/e2e/programs/fake_x86_64.S $(wildcard tests/e2e/programs/fake*.h) include/cudaspy/entrypoints.def
	@mkdir -p $$(@D)
	$$(call say,FAKE,$$@)
	$$(Q)$$(CC) -E -P -x c -DGENERATION=$(3) -DNODE=$(4) -Iinclude tests/e2e/programs/fake_map.h -o $$@.map
	$$(Q)$$(CC) $$(E2E_C) -fPIC -fexceptions -DGENERATION=$(3) -shared -o $$@ tests/e2e/programs/fake.c \
		tests/e2e/programs/fake_x86_64.S -Wl,-soname,$(2) -Wl,--version-script=$$@.map -Wl,-Bsymbolic -ldl
endef
$(eval $(call e2e_fake,libcuda.so.1,libcuda.so.1,0,))
$(eval $(call e2e_fake,libcudart.so.11.0,libcudart.so.11.0,11,libcudart.so.11.0))
$(eval $(call e2e_fake,libcudart.so.12,libcudart.so.12,12,libcudart.so.12))
$(eval $(call e2e_fake,libcudart.so.13,libcudart.so.13,13,libcudart.so.13))
# The same library without version nodes, to link programs against that ask for no version.
$(eval $(call e2e_fake,unversioned/libcudart.so.13,libcudart.so.13,13,))
# A second libcudart.so.13, at another path.
$(eval $(call e2e_fake,second/libcudart.so.13,libcudart.so.13,13,libcudart.so.13))
e2e: $(E2E)/fakes/unversioned/libcudart.so.13 $(E2E)/fakes/second/libcudart.so.13

# ---- programs: output, sources, flags, what it is linked with -------------------------------------
E2E_DEPS := $(wildcard tests/e2e/programs/*.h) include/cudaspy/entrypoints.def
define e2e_program
$(E2E)/$(1): $(2) $(E2E_DEPS) $(filter %.so.1 %.so.11.0 %.so.12 %.so.13,$(4))
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(E2E_C) $(3) -o $$@ $(2) $(4) -ldl
e2e: $(E2E)/$(1)
endef
E2E_RT11 := $(E2E)/fakes/libcudart.so.11.0
E2E_RT12 := $(E2E)/fakes/libcudart.so.12
E2E_RT13 := $(E2E)/fakes/libcudart.so.13
E2E_DRV  := $(E2E)/fakes/libcuda.so.1
E2E_ABI  := tests/e2e/programs/abi.c tests/e2e/programs/abi_call_x86_64.S
$(eval $(call e2e_program,abi_0,$(E2E_ABI),-DGENERATION=0 -pie -fPIE,$(E2E_DRV)))
$(eval $(call e2e_program,abi_11,$(E2E_ABI),-DGENERATION=11 -pie -fPIE,$(E2E_RT11)))
$(eval $(call e2e_program,abi_12,$(E2E_ABI),-DGENERATION=12 -pie -fPIE,$(E2E_RT12)))
$(eval $(call e2e_program,abi_13,$(E2E_ABI),-DGENERATION=13 -pie -fPIE,$(E2E_RT13)))
E2E_USE  := tests/e2e/programs/use_runtime.c
$(eval $(call e2e_program,use_rt11,$(E2E_USE),-DGENERATION=11,$(E2E_RT11)))
$(eval $(call e2e_program,use_rt12,$(E2E_USE),-DGENERATION=12,$(E2E_RT12)))
$(eval $(call e2e_program,use_rt13,$(E2E_USE),-DGENERATION=13,$(E2E_RT13)))
$(eval $(call e2e_program,use_rt_unversioned,$(E2E_USE),-DGENERATION=13,$(E2E)/fakes/unversioned/libcudart.so.13))
$(eval $(call e2e_program,use_driver,tests/e2e/programs/use_driver.c,,$(E2E_DRV)))
$(eval $(call e2e_program,use_weak,tests/e2e/programs/use_weak.c,,))
$(eval $(call e2e_program,ways,tests/e2e/programs/ways.c,,))
# Libraries that find what only they can find: in their DT_RUNPATH, in their DT_RPATH.
E2E_OPEN := -shared -fPIC -Wl$(comma)-soname$(comma)$$(@F)
$(eval $(call e2e_program,libopener_runpath.so,tests/e2e/programs/opener.c,$(E2E_OPEN) -Wl$(comma)--enable-new-dtags$(comma)-rpath$(comma)'$$$$ORIGIN/found',))
$(eval $(call e2e_program,libopener_rpath.so,tests/e2e/programs/opener.c,$(E2E_OPEN) -Wl$(comma)--disable-new-dtags$(comma)-rpath$(comma)'$$$$ORIGIN/found',))
$(eval $(call e2e_program,found/libfound.so,tests/e2e/programs/opener.c,$(E2E_OPEN) -DFOUND=4,))
$(eval $(call e2e_program,libearly.so,tests/e2e/programs/early.c,-shared -fPIC -DLIBRARY -Wl$(comma)-soname$(comma)$$(@F),$(E2E_RT13)))
$(E2E)/early: $(E2E)/libearly.so
$(eval $(call e2e_program,early,tests/e2e/programs/early.c,-Wl$(comma)--no-as-needed $(E2E)/libearly.so -Wl$(comma)-rpath$(comma)'$$$$ORIGIN',$(E2E_RT13)))
$(eval $(call e2e_program,libother.so,tests/e2e/programs/other.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),))
$(eval $(call e2e_program,libuse11.so,$(E2E_USE),-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F) -DPLUGIN=use11 -DGENERATION=11,$(E2E_RT11)))
$(eval $(call e2e_program,libuse12.so,$(E2E_USE),-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F) -DPLUGIN=use12 -DGENERATION=12,$(E2E_RT12)))
$(eval $(call e2e_program,libuse13.so,$(E2E_USE),-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F) -DPLUGIN=use13 -DGENERATION=13,$(E2E_RT13)))
$(eval $(call e2e_program,libuse_driver.so,tests/e2e/programs/use_driver.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F) -DPLUGIN=use_driver,$(E2E_DRV)))
$(eval $(call e2e_program,use_both,tests/e2e/programs/use_both.c,,$(E2E)/libuse12.so $(E2E)/libuse13.so -Wl$(comma)-rpath$(comma)'$$$$ORIGIN' -Wl$(comma)-rpath-link$(comma)$(E2E)/fakes))
$(E2E)/use_both: $(E2E)/libuse12.so $(E2E)/libuse13.so
$(eval $(call e2e_program,log_traces,tests/e2e/programs/log_traces.c,,))
$(E2E)/log_traces: tests/unit/trace_text.h tests/unit/trace_writer.h include/cudaspy/metadata_layout.h
$(eval $(call e2e_program,nest,tests/e2e/programs/nest.c,-fexceptions -rdynamic,$(E2E_RT13)))
$(eval $(call e2e_program,probes,$(wildcard tests/e2e/programs/probes*.c),-fexceptions,$(E2E_RT13)))
# NVTX in the program, in a library of it, and a tool for both.
E2E_NVTX := $(if $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h),-isystem $(CUDA_HOME)/include)
$(eval $(call e2e_program,libnvtx_part.so,tests/e2e/programs/nvtx_part.c,-shared -fPIC $(E2E_NVTX) -Wl$(comma)-soname$(comma)$$(@F),))
$(eval $(call e2e_program,nvtx,tests/e2e/programs/nvtx.c,$(E2E_NVTX) -Wl$(comma)-rpath$(comma)'$$$$ORIGIN',$(E2E)/libnvtx_part.so $(E2E_RT13)))
# NCCL, as its profiler sees it.
$(eval $(call e2e_program,nccl,tests/e2e/programs/nccl.c,-rdynamic,$(E2E_RT13)))
$(eval $(call e2e_program,nccl_own,tests/e2e/programs/nccl_own.c,-rdynamic,))
$(E2E)/nvtx: $(E2E)/libnvtx_part.so
$(eval $(call e2e_program,libnvtx_tool.so,tests/e2e/programs/nvtx_tool.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),))
$(eval $(call e2e_program,leaves,tests/e2e/programs/leaves.c,,$(E2E_RT13)))
$(eval $(call e2e_program,waits,tests/e2e/programs/waits.c,-fexceptions,$(E2E_RT13)))
$(eval $(call e2e_program,allocator,tests/e2e/programs/allocator.c,-fexceptions,$(E2E_RT13)))
$(eval $(call e2e_program,libwraplocks.so,tests/e2e/programs/wrap_locks.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),))
# Who calls what is worth a look: as programs are usually compiled.
$(eval $(call e2e_program,stacks,tests/e2e/programs/stacks.c,-O2 -fomit-frame-pointer -fexceptions,$(E2E_RT13)))
# Libraries that make things for the program, without the names of their own functions.
E2E_BLAS := -shared -fPIC -fexceptions -s
$(eval $(call e2e_program,libcublas.so.13,tests/e2e/programs/fake_blas.c,$(E2E_BLAS) -Wl$(comma)-soname$(comma)$$(@F),$(E2E_RT13)))
$(eval $(call e2e_program,libours.so,tests/e2e/programs/fake_blas.c,$(E2E_BLAS) -Wl$(comma)-soname$(comma)$$(@F),$(E2E_RT13)))
# A library that looks like Python's.
$(eval $(call e2e_program,libfake_python.so,tests/e2e/programs/fake_python.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),))
$(eval $(call e2e_program,python_fake,tests/e2e/programs/python_fake.c,,$(E2E_RT13)))
$(eval $(call e2e_program,edge,tests/e2e/programs/edge.c tests/e2e/programs/edge_x86_64.S,,$(E2E_DRV)))

# Not without a C++ compiler.
CXX ?= g++
ifneq ($(shell command -v $(CXX)),)
$(E2E)/throw: tests/e2e/programs/throw.cc $(E2E_RT13)
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) -O1 -g -Wall -Wextra -Werror -o $@ $^
$(E2E)/stacks_cc: tests/e2e/programs/stacks_cc.cc $(E2E_RT13)
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) -O2 -g -Wall -Wextra -Werror -pthread -o $@ $^ -ldl
e2e: $(E2E)/throw $(E2E)/stacks_cc
endif
$(eval $(call e2e_program,life,tests/e2e/programs/life.c,,$(E2E_RT13)))
$(eval $(call e2e_program,libpack_faults.so,tests/e2e/programs/pack_faults.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),))
$(eval $(call e2e_program,libfarewell.so,tests/e2e/programs/farewell.c,-shared -fPIC -Wl$(comma)-soname$(comma)$$(@F),$(E2E_RT13)))
$(eval $(call e2e_program,forks,tests/e2e/programs/forks.c,,$(E2E_RT13)))
$(eval $(call e2e_program,handlers,tests/e2e/programs/handlers.c,-fexceptions,$(E2E_RT13)))
$(eval $(call e2e_program,board,tests/e2e/programs/board.c,,))
# The system calls by their names, for filters.
$(E2E)/syscalls.def: tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(Q)echo '#include <sys/syscall.h>' | $(CC) -E -dM - | sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/CALL(\1),/p' | sort >$@
$(eval $(call e2e_program,steps,tests/e2e/programs/steps.c,-iquote $(E2E),$(E2E_RT13)))
$(E2E)/steps: $(E2E)/syscalls.def

# ---- programs for the simulator -----------------------------------------------------------------
# They find it without help: what they say of themselves (feeders --script) is asked for without LD_LIBRARY_PATH, on machines on
# which the linker knows no toolkit. LD_LIBRARY_PATH comes before a RUNPATH.
E2E_SIM := $(BUILD)/sim/lib
E2E_SIM_LD := -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../../sim/lib'
$(E2E)/sim_mixed12 $(E2E)/sim_mixed13: $(E2E)/sim_mixed%: tests/e2e/programs/sim_mixed.c tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.% $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $< $(E2E_SIM)/libcudart.so.$* $(E2E_SIM)/libcuda.so.1 $(E2E_SIM_LD)
$(E2E)/sim_mixed_static: tests/e2e/programs/sim_mixed.c tests/e2e/programs/sim_program.h $(BUILD)/sim/libsimcudart_static.a
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $(filter-out %.h,$^) -ldl
$(E2E)/hoard $(E2E)/libhoard.so: tests/e2e/programs/hoard.c tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(if $(filter %.so,$@),-shared -fPIC -DLIBRARY,$(SANFLAGS)) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 -ldl $(E2E_SIM_LD)
e2e: $(addprefix $(E2E)/sim_mixed,12 13 _static) $(E2E)/hoard $(E2E)/libhoard.so
# Threads that wait for each other, and what judges cudaspy's account of it.
$(E2E)/scene: $(E2E)/%: tests/e2e/programs/%.c tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) -Wno-unused-parameter $(SANFLAGS) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 $(E2E_SIM_LD)
$(E2E)/judge: $(wildcard tests/e2e/programs/judge*.[ch])
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $(filter %.c,$^) -ljansson
e2e: $(E2E)/scene $(E2E)/judge
# Habits that are found, and near twins: of calls, of whole runs, of copies between GPUs.
$(E2E)/habits $(E2E)/habits_run $(E2E)/peers $(E2E)/pace $(E2E)/profiled $(E2E)/windows $(E2E)/rounds $(E2E)/between $(E2E)/lowest $(E2E)/phdr $(E2E)/host_functions $(E2E)/event_loop: $(E2E)/%: tests/e2e/programs/%.c tests/e2e/programs/sim_program.h tests/e2e/programs/sim_nvtx.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 $(E2E_SIM_LD)
e2e: $(E2E)/habits $(E2E)/habits_run $(E2E)/peers $(E2E)/pace $(E2E)/profiled $(E2E)/windows $(E2E)/rounds $(E2E)/between $(E2E)/lowest $(E2E)/phdr $(E2E)/host_functions $(E2E)/event_loop
# Threads that keep GPUs waiting.
$(E2E)/feeders: tests/e2e/programs/feeders.c tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 -ldl $(E2E_SIM_LD)
e2e: $(E2E)/feeders
# Processes that share a GPU.
$(E2E)/sharing: tests/e2e/programs/sharing.c $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 $(E2E_SIM_LD)
e2e: $(E2E)/sharing
# A rank of a job, for the recipes.
$(BUILD)/tests/recipes/rank: tests/recipes/rank.c tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) -o $@ $< $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 -ldl $(E2E_SIM_LD)
$(BUILD)/tests/recipes/filtered: tests/recipes/filtered.c $(E2E)/syscalls.def
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) -iquote $(E2E) -o $@ $<
# A program over a closed library, and what that needs of cuBLAS.
$(BUILD)/tests/recipes/llama_loop: tests/recipes/llama_loop.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) -O2 -o $@ $< -ldl -lm
$(BUILD)/tests/recipes/blas/libcublas.so.13: tests/recipes/blas.c $(E2E_SIM)/libcudart.so.13
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)echo 'libcublas.so.13 { global: cublas*; local: *; };' >$@.map
	$(Q)$(CC) $(E2E_C) -Wno-unused-parameter -Wno-missing-prototypes -fPIC -shared -Wl,-soname,$(@F) -Wl,--version-script=$@.map -o $@ $< $(E2E_SIM)/libcudart.so.13
e2e: $(BUILD)/tests/recipes/rank $(BUILD)/tests/recipes/filtered $(BUILD)/tests/recipes/llama_loop $(BUILD)/tests/recipes/blas/libcublas.so.13
# Programs with faults, and without.
$(E2E)/faults: $(wildcard tests/e2e/programs/faults*.[ch]) tests/e2e/programs/sim_program.h $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 tests/e2e/e2e.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(SANFLAGS) -o $@ $(filter %.c,$^) $(E2E_SIM)/libcudart.so.13 $(E2E_SIM)/libcuda.so.1 $(E2E_SIM_LD)
e2e: $(E2E)/faults

# The simulator's samples with the static runtime; those with the shared one are in its own build.
ifneq ($(NVCC),)
E2E_SAMPLES := $(patsubst tests/sim/samples/%.cu,%,$(wildcard tests/sim/samples/*.cu))
$(E2E)/sample_%_static: tests/sim/samples/%.cu $(BUILD)/sim/libsimcudart_static.a
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,-arch=sm_90 -cudart none -Xcompiler -rdynamic,$(BUILD)/sim/libsimcudart_static.a -ldl)
e2e: $(E2E_SAMPLES:%=$(E2E)/sample_%_static)
$(E2E)/legacy $(E2E)/legacy_G: tests/e2e/programs/legacy.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,-arch=sm_90 -g $(if $(filter %_G,$@),-G) -cudart shared)
e2e: $(E2E)/legacy $(E2E)/legacy_G
# Optimised, too: nvcc's functions are then compiled into each other.
$(E2E)/launches $(E2E)/launches_G: tests/e2e/programs/launches.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,-arch=sm_90 -g $(if $(filter %_G,$@),-G,-O2 -lineinfo) -cudart shared)
e2e: $(E2E)/launches $(E2E)/launches_G
endif

# Not without the CUDA toolkit.
ifneq ($(NVCC),)
E2E_CUDA_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/x86_64-linux/lib))
$(E2E)/real_shared: tests/e2e/programs/real_cudart.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(CUDA_INCLUDE) -o $@ $< -L$(E2E_CUDA_LIB) -lcudart -Wl,-rpath,$(E2E_CUDA_LIB)
$(E2E)/real_static: tests/e2e/programs/real_cudart.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(E2E_C) $(CUDA_INCLUDE) -o $@ $< $(E2E_CUDA_LIB)/libcudart_static.a -ldl -lrt -lpthread -lm -lstdc++
$(E2E)/real_launch_shared: tests/e2e/programs/real_launch.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,-arch=sm_90 -cudart shared,-Xlinker -rpath=$(E2E_CUDA_LIB))
$(E2E)/real_launch_static: tests/e2e/programs/real_launch.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(call nvcc_program,-arch=sm_90 -cudart static)
e2e: $(addprefix $(E2E)/real_,shared static launch_shared launch_static)
endif
# The recorder with a delay in it, that an environment variable says: tests/e2e/programs/delay.h.
$(BUILD)/tests/delay/call.c.o: shim/entry/call.c tests/e2e/programs/delay.h $(BUILD)/shim/entry/call.c.o
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -DCUDASPY_TEST_DELAY -iquote tests/e2e/programs $(SHIM_CFLAGS) -c -o $@ $<
$(BUILD)/tests/delay/libcudaspy.so: $(filter-out $(BUILD)/shim/entry/call.c.o,$(SHIM_OBJ)) $(BUILD)/tests/delay/call.c.o shim/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) $(SHIM_LDFLAGS)
e2e: $(BUILD)/tests/delay/libcudaspy.so

# A week by its own clock: tests/bench/week.sh.
$(eval $(call e2e_program,week_cuda/libcudart.so.13,tests/e2e/programs/week_cuda.c,-O2 -shared -fPIC -Wl$(comma)-soname$(comma)libcudart.so.13,))
$(eval $(call e2e_program,week,tests/e2e/programs/week.c,-O2 -rdynamic,$(E2E)/week_cuda/libcudart.so.13))
