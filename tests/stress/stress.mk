# tests/stress/stress.mk: random programs, run bare and recorded; see tests/stress/run. Included by the top Makefile.
#
#   make stress [SEEDS=n] [FIRST=seed] [ACTIONS=list] [STRESS_ARGS=...]

STRESS      := $(BUILD)/stress
STRESS_SRC  := $(addprefix tests/stress/,stress.c calls.c threads.c signals.c loader.c processes.c)
STRESS_C    := -std=gnu11 -D_GNU_SOURCE -O1 -g $(WARN) -pthread -fexceptions -ftls-model=initial-exec
STRESS_LIB  := $(STRESS)/lib/libcudart.so.13
STRESS_HEAD := $(wildcard tests/stress/*.h)

$(STRESS_LIB): tests/stress/runtime.c tests/stress/runtime.map $(STRESS_HEAD)
	@mkdir -p $(@D)
	$(call say,FAKE,$@)
	$(Q)$(CC) $(STRESS_C) -fPIC -shared -o $@ $< -Wl,-soname,libcudart.so.13 \
		-Wl,--version-script=tests/stress/runtime.map -Wl,-Bsymbolic

$(STRESS)/stress: $(STRESS_SRC) $(STRESS_HEAD) $(STRESS_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(STRESS_C) -rdynamic -o $@ $(STRESS_SRC) $(STRESS_LIB) -Wl,-z,now -ldl -lrt

$(STRESS)/libstress_plugin%.so: tests/stress/plugin.c $(STRESS_HEAD) $(STRESS_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(STRESS_C) -fPIC -shared -o $@ $< $(STRESS_LIB)

.PHONY: stress stress-build
stress-build: $(STRESS)/stress $(patsubst %,$(STRESS)/libstress_plugin%.so,0 1 2 3) $(E2E)/board all
SEEDS ?= 100
stress: stress-build
	$(Q)$(if $(filter-out undefined,$(origin ACTIONS)),ACTIONS='$(ACTIONS)') tests/stress/run --build $(BUILD) $(if $(FIRST),--first $(FIRST)) $(STRESS_ARGS) $(SEEDS)
