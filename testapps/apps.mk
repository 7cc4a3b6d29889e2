# testapps/apps.mk: the test applications and the kernels. Included by the top Makefile, which sets
# BUILD, CUDA_HOME, NVCC, CC, OPT, WARN, Q and say. Each application exists twice: linked to the
# shared CUDA runtime, and NAME-static with the runtime inside it, as nvcc does unless told.

APPS          := clean contention copies hang lazyload matmul nbody queue ranks starved syncs
APP_COMMON    := common list mps workers
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
APP_OBJECTS   := $(patsubst %.c,$(BUILD)/%.c.o,$(wildcard testapps/*.c))
KERNEL_OBJECTS := $(foreach kernel,$(KERNELS),$(BUILD)/kernels/$(kernel).cu.o)
# An archive: a program has the kernels that it launches and no others, which the driver might have to load.
KERNEL_LIBRARY := $(BUILD)/kernels/libkernels.a

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
	$(Q)$(CCACHE) $(NVCC) $(NVCC_FLAGS) -c -o $@ $<

$(KERNEL_LIBRARY): $(KERNEL_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/testapps/%.c.o: testapps/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(APP_CFLAGS) -c -o $@ $<

# An application is NAME.c with all NAME_part.c, and what NAME_EXTRA lists.
app_parts = $(patsubst %.c,$(BUILD)/%.c.o,testapps/$(1).c $(wildcard testapps/$(1)_*.c)) $($(1)_EXTRA)
define app_rules
$(BUILD)/testapps/$(1): $(call app_parts,$(1)) $(APP_COMMON:%=$(BUILD)/testapps/%.c.o) $(KERNEL_LIBRARY)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -o $$@ $$^ $$(APP_LDFLAGS) -lcudart -lstdc++ -lm

$(BUILD)/testapps/$(1)-static: $(call app_parts,$(1)) $(APP_COMMON:%=$(BUILD)/testapps/%.c.o) $(KERNEL_LIBRARY)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -o $$@ $$^ $$(APP_LDFLAGS) -lcudart_static -lstdc++ -lm -ldl -lrt
endef
hang_EXTRA := $(BUILD)/testapps/ranks_nccl.c.o
contention_EXTRA := $(BUILD)/testapps/small_library.o
$(foreach app,$(APPS),$(eval $(call app_rules,$(app))))

# Code to be loaded by hand: $< as a fatbin, in an array of this name.
define embed_code
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) -fatbin -o $(@:.o=.fatbin) $<
	$(Q)printf '%s\n' '.section .rodata' '.balign 16' '.globl $(1)' '$(1):' \
		'.incbin "$(@:.o=.fatbin)"' '.section .note.GNU-stack,"",@progbits' | \
		$(CC) -x assembler -c -o $@ -
endef

# A small library to load and unload.
$(BUILD)/testapps/small_library.o: kernels/add.cu kernels/kernels.h
	$(call embed_code,small_library)

-include $(APP_OBJECTS:.o=.d)
