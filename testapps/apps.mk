# testapps/apps.mk: the test applications and the kernels. Included by the top Makefile, which sets
# BUILD, CUDA_HOME, NVCC, CC, OPT, WARN, Q and say. Each application exists twice: linked to the
# shared CUDA runtime, and NAME-static with the runtime inside it, as nvcc does unless told.

APPS          := copies matmul syncs
APP_COMMON    := common mps workers
# Of an application that is more than one file: testapps/NAME_*.c.
app_parts      = $(patsubst %,$(BUILD)/%.o,$(wildcard testapps/$(1)_*.c))
KERNELS       := $(patsubst kernels/%.cu,%,$(wildcard kernels/*.cu))

# Machine code for Hopper, and PTX from which the driver makes code for anything since Turing.
NVCC_ARCH     ?= -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75
NVCC_FLAGS    := -O2 $(NVCC_ARCH) -Xcompiler -Wall,-Wextra -Werror all-warnings
# A sanitizer checks the shim and the analyzer; their victims stay as anyone would build them.
APP_CFLAGS    := -std=gnu11 $(OPT) $(WARN) -pthread -MMD -MP -isystem $(CUDA_HOME)/include
# -rdynamic lets the simulator find the kernels' host twins. The run path only counts where LD_LIBRARY_PATH, which
# the simulator sets, has no CUDA runtime.
APP_LDFLAGS   := -pthread -rdynamic -Wl,--enable-new-dtags,-rpath,$(CUDA_HOME)/lib64 \
                 -L$(CUDA_HOME)/lib64

APP_BINARIES  := $(foreach app,$(APPS),$(BUILD)/testapps/$(app) $(BUILD)/testapps/$(app)-static)
APP_OBJECTS   := $(foreach name,$(APPS) $(APP_COMMON),$(BUILD)/testapps/$(name).c.o) \
		 $(foreach app,$(APPS),$(call app_parts,$(app)))
KERNEL_OBJECTS := $(foreach kernel,$(KERNELS),$(BUILD)/kernels/$(kernel).cu.o)

.PHONY: apps
ifeq ($(NVCC),)
apps:
	@echo 'testapps: skipped, they need the CUDA toolkit: no nvcc in CUDA_HOME or on the PATH'
else
apps: $(APP_BINARIES)
endif

$(BUILD)/kernels/%.cu.o: kernels/%.cu kernels/kernels.h
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCC_FLAGS) -c -o $@ $<

$(BUILD)/testapps/%.c.o: testapps/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(APP_CFLAGS) -c -o $@ $<

$(foreach app,$(APPS),$(eval $(BUILD)/testapps/$(app) $(BUILD)/testapps/$(app)-static: $(call app_parts,$(app))))

$(APPS:%=$(BUILD)/testapps/%): $(BUILD)/testapps/%: $(BUILD)/testapps/%.c.o \
		$(APP_COMMON:%=$(BUILD)/testapps/%.c.o) $(KERNEL_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(APP_LDFLAGS) -lcudart -lstdc++

$(APPS:%=$(BUILD)/testapps/%-static): $(BUILD)/testapps/%-static: $(BUILD)/testapps/%.c.o \
		$(APP_COMMON:%=$(BUILD)/testapps/%.c.o) $(KERNEL_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(APP_LDFLAGS) -lcudart_static -lstdc++ -ldl -lrt

-include $(APP_OBJECTS:.o=.d)
