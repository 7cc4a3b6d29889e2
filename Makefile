# cudaspy. `make help` lists targets and knobs. Sections: knobs, lists, rules, tests, install, help.

# ---- knobs ------------------------------------------------------------------------------------
PREFIX    ?= /usr/local
DESTDIR   ?=
BUILD     ?= build
$(if $(word 2,$(BUILD)),$(error BUILD=$(BUILD): it cannot hold blanks))
DEBUG     ?= 0
SAN       ?=
V         ?= 0
# -Werror for who changes the code (.ci/run, make check); another compiler may warn of more than ours do.
WERROR    ?=
ifeq ($(origin CC),default)
CC        := gcc
endif
CLANG     ?= clang
CLANG_FORMAT ?= clang-format
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null))
NVCC      := $(wildcard $(CUDA_HOME)/bin/nvcc)
# A compiler cache that runs nvcc: tests/compiler-cache.
CCACHE    ?=
VERSION   := 0.1.0

Q         := $(if $(filter 1,$(V)),,@)
say        = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

WARN      := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(WERROR)
OPT       := $(if $(filter 1,$(DEBUG)),-O0 -g3,-O2 -g)
comma     := ,
SANFLAGS  := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
# By both names of an object: tests give make an absolute BUILD, and what it made must not look newer than its headers later.
DEPS       = -MMD -MP -MT $(@:$(CURDIR)/%=%) -MT $(abspath $@)
CFLAGS_    = -std=gnu11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -pthread $(DEPS) -DCUDASPY_VERSION='"$(VERSION)"' $(SANFLAGS) $(CPPFLAGS) $(CFLAGS)

# ---- lists ------------------------------------------------------------------------------------
ARCH         := x86_64
SHIM_SRC     := $(filter-out shim/entry/offsets.c shim/cupti/%,$(wildcard shim/*/*.c shim/*/$(ARCH)/*.[cS]))
ANALYZER_SRC := $(wildcard analyzer/*.c analyzer/*/*.c)
UNIT_SRC     := $(wildcard tests/unit/test_*.c)

SHIM_OBJ     := $(patsubst %,$(BUILD)/%.o,$(SHIM_SRC))
ANALYZER_OBJ := $(patsubst %,$(BUILD)/%.o,$(ANALYZER_SRC))
# The same, several files compiled as one, which takes a third of the time without optimization. For tests that look at something else.
BUNDLED  ?=
ifneq ($(BUNDLED),)
# main() and what is made of other files by their own rules.
UNBUNDLED    := $(addprefix analyzer/,cmd/main.c page/page.c expect/priors.c)
BUNDLES      := $(shell tests/bundle $(BUILD)/bundles $(filter-out $(UNBUNDLED),$(ANALYZER_SRC)))
ANALYZER_OBJ := $(patsubst %,$(BUILD)/%.o,$(UNBUNDLED) $(BUNDLES:$(BUILD)/%=%))
endif

SHIM  := $(BUILD)/libcudaspy.so
# For GPU times; where the toolkit has CUPTI's header.
CUPTI_H := $(firstword $(if $(NVCC),$(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h)))
GPU_LIB := $(if $(CUPTI_H),$(BUILD)/libcudaspy_gpu.so)
TOOL  := $(BUILD)/cudaspy

# The verbs; `help` is in main.c.
VERBS := $(shell sed -n "s/^VERB(\\(.*\\))/\\1/p" analyzer/cmd/verbs.def) help
MAN   := $(BUILD)/man/cudaspy.1 $(VERBS:%=$(BUILD)/man/cudaspy-%.1) docs/man/cudaspy-suppressions.5
COMPLETIONS := $(BUILD)/completion/cudaspy $(BUILD)/completion/_cudaspy

.PHONY: all installable sim
all: installable sim
installable: $(SHIM) $(GPU_LIB) $(TOOL) $(MAN) $(COMPLETIONS)
ifeq ($(NVCC),)
all: no-cuda
.PHONY: no-cuda
no-cuda:
	@echo 'cudaspy: no CUDA toolkit (no nvcc in CUDA_HOME or on the PATH): the test applications are not built'
endif

# ---- rules ------------------------------------------------------------------------------------
CET          := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null)),-fcf-protection)
# uthash would end the application when there is no memory. Aligned: a change of one function must not make another
# slower by where its loops come to lie (docs/PERFORMANCE.md).
# Neither a stack protector nor _FORTIFY_SOURCE, whoever asks for them: both end the program.
SHIM_CFLAGS  := -fno-stack-protector -U_FORTIFY_SOURCE -DHASH_NONFATAL_OOM=1 $(CET) -falign-functions=32 -fvisibility=hidden -ftls-model=initial-exec -iquote shim -Iinclude
SHIM_LDFLAGS := -Wl,--version-script=shim/exports.map -Wl,-soname,libcudaspy.so -Wl,-z,now -Wl,-z,relro -pthread -ldl
TOOL_LIBS    := -ldw -lelf -ljansson -lsqlite3 -lz -lm -lncursesw -ltinfo
CUDA_INCLUDE := $(if $(NVCC),-isystem $(CUDA_HOME)/include)
# $(call nvcc_program,FLAGS,LINKED WITH): of the rule's .cu files. Compiled and linked in two steps: a compiler cache has the first.
nvcc_program = $(Q)for file in $(filter %.cu,$^); do \
	$(CCACHE) $(NVCC) $(1) -c -o "$@.$${file\#\#*/}.o" "$$file" || exit; \
	done && $(NVCC) $(1) -o $@ $(foreach file,$(filter %.cu,$^),$@.$(notdir $(file)).o) $(2)

# Each half sees its own folder and include/ only: the two never meet.
$(BUILD)/shim/%.c.o: shim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_) $(SHIM_CFLAGS) -c -o $@ $<

# Run before a sanitizer's runtime does, which calls what they wrap.
EARLY := lib/elf_object process/elf_scan probe/probe probe/probe_outside record/truncation process/signal_mask record/identity
$(EARLY:%=$(BUILD)/shim/%.c.o): SANFLAGS :=

$(BUILD)/shim/entry/offsets.h: shim/entry/offsets.c
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(CC) $(filter-out -fsanitize=% -flto%,$(CFLAGS_) $(SHIM_CFLAGS)) -g0 -MF $@.d -MT $@ -S -o $@.s $<
	$(Q)sed -n 's/.*@define \(.*\)".*/#define \1/p' $@.s >$@

$(BUILD)/shim/%.S.o: shim/%.S $(BUILD)/shim/entry/offsets.h
	@mkdir -p $(@D)
	$(call say,AS,$<)
	$(Q)$(CC) $(CET) $(DEPS) -fPIC -Iinclude -iquote shim -iquote $(BUILD)/shim/entry -c -o $@ $<

$(SHIM): $(SHIM_OBJ) shim/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -o $@ $(SHIM_OBJ) $(SHIM_LDFLAGS)

$(BUILD)/libcudaspy_gpu.so: $(wildcard shim/cupti/*.c include/cudaspy/*)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -fvisibility=hidden -Iinclude -isystem $(dir $(CUPTI_H)) -isystem $(CUDA_HOME)/include -shared \
		-Wl,-soname,libcudaspy_gpu.so -Wl,-z,now -Wl,-z,relro -o $@ $(filter %.c,$^) -ldl

# What is counted for each record is counted in pairs: as vectors they would only be waited for. TOOL_OPT: of a test that does
# not look at how fast it is.
TOOL_CFLAGS := -fno-tree-slp-vectorize $(TOOL_OPT)

$(BUILD)/analyzer/%.c.o: analyzer/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_) $(TOOL_CFLAGS) -iquote analyzer -Iinclude -c -o $@ $<

# Where the files of a bundle do not go together after all, or one of them is wrong, each is compiled by itself. What shadows another
# file's name is no fault.
bundled    = $(CC) $(CFLAGS_) -Wno-shadow $(TOOL_CFLAGS) -iquote . -iquote analyzer -Iinclude -c -o
define one_by_one
sed -n 's/^#line 1 "\(.*\)"/\1/p' $< | while read -r file; do \
	mkdir -p "$@.d/$${file%/*}" && $(bundled) "$@.d/$$file.o" "$$file" || exit; \
done && $(LD) -r -o $@ $$(find $@.d -name '*.o') && cat $$(find $@.d -name '*.d' -type f) >$(@:.o=.d)
endef
$(BUILD)/bundles/%.c.o: $(BUILD)/bundles/%.c
	$(call say,CC,$<)
	$(Q)$(bundled) $@ $< 2>/dev/null || { $(one_by_one); }

# It contains them.
$(BUILD)/analyzer/expect/priors.c.o: $(wildcard analyzer/expect/priors/*.json)

# So does this one the page of HTML reports, which is put together from plain modules and a style sheet.
PAGE := $(BUILD)/page/page.html
$(PAGE): analyzer/page/put_together analyzer/page/index.html analyzer/page/page.css $(wildcard analyzer/page/*.js)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)analyzer/page/put_together $@
$(BUILD)/analyzer/page/page.c.o: $(PAGE)
$(BUILD)/analyzer/page/page.c.o: TOOL_CFLAGS += -DCUDASPY_PAGE='"$(PAGE)"'

$(TOOL): $(ANALYZER_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(TOOL_LIBS)

# For each MPI there is: cudaspy-mpi for mpicc, which is somebody's choice, and the tests' for each of Debian's by its name.
MPICC     ?= $(shell command -v mpicc 2>/dev/null)
MPI_TOOL  := $(if $(MPICC),$(BUILD)/cudaspy-mpi)
MPI_TESTS := $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi) 2>/dev/null),$(BUILD)/tests/mpi/cudaspy-mpi.$(mpi)))
mpi_build  = $(Q)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(1) $(filter-out $(DEPS),$(CFLAGS_)) -iquote analyzer -iquote mpi -Iinclude $(LDFLAGS) -o $@ $(wildcard mpi/*.c) $(filter-out $(BUILD)/analyzer/cmd/main.c.o,$(ANALYZER_OBJ)) $(TOOL_LIBS)
$(BUILD)/cudaspy-mpi: $(wildcard mpi/*.[ch]) $(ANALYZER_OBJ)
	$(call say,MPICC,$@)
	$(call mpi_build,$(MPICC))
MPI_MAN := $(if $(MPICC),$(BUILD)/man/cudaspy-mpi.1)
installable: $(MPI_TOOL) $(MPI_MAN)
$(BUILD)/man/cudaspy-mpi.1: $(BUILD)/cudaspy-mpi
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)ASAN_OPTIONS=detect_leaks=0 $< --manual >$@.new && mv $@.new $@
$(BUILD)/tests/mpi/cudaspy-mpi.%: $(wildcard mpi/*.[ch]) $(ANALYZER_OBJ)
	@mkdir -p $(@D)
	$(call say,MPICC,$@)
	$(call mpi_build,mpicc.$*)

# Manual pages and completions, from the tables that --help prints.
$(BUILD)/man/cudaspy.1: $(TOOL)
	$(call written_by,help --format=man)
$(BUILD)/man/cudaspy-%.1: $(TOOL)
	$(call written_by,help --format=man $*)
$(BUILD)/completion/cudaspy: $(TOOL)
	$(call written_by,help --format=bash)
$(BUILD)/completion/_cudaspy: $(TOOL)
	$(call written_by,help --format=zsh)

# Leaks do not matter here; LeakSanitizer does not work everywhere.
define written_by
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)ASAN_OPTIONS=detect_leaks=0 $(TOOL) $(1) >$@.new && mv $@.new $@
endef

# The same trampoline with empty hooks, for `make bench`: what an interposer costs that does nothing. Only what names the
# hooks differs.
HOOKS     := $(shell grep -l CUDASPY_EMPTY_HOOKS $(SHIM_SRC))
EMPTY_OBJ := $(HOOKS:%=$(BUILD)/empty/%.o)
$(BUILD)/empty/shim/%.c.o: shim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -DCUDASPY_EMPTY_HOOKS $(SHIM_CFLAGS) -c -o $@ $<
$(BUILD)/bench/libcudaspy_empty.so: $(EMPTY_OBJ) $(filter-out $(HOOKS:%=$(BUILD)/%.o),$(SHIM_OBJ)) shim/exports.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) $(SHIM_LDFLAGS)

include tests/sim/sim.mk
include testapps/apps.mk
include tests/bench/bench.mk
include tests/gpu/gpu.mk
bench-build: $(BUILD)/bench/libcudaspy_empty.so $(SHIM) $(TOOL) sim

# ---- tests ------------------------------------------------------------------------------------
# Not optimized: they are compiled more often than they run. A unit test says in a comment which objects of the shim it needs: /* links: shim/inspect/memory.c */.
# Those of the analyzer get all of it but main, as one library: to link it into each of them takes longer than to compile them.
UNIT       := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SRC))
ANALYZER_LIB := $(filter-out $(BUILD)/analyzer/cmd/main.c.o,$(ANALYZER_OBJ))
links       = $(shell sed -n 's|^/\* links: \(.*\) \*/$$|\1|p' tests/unit/$(1).c)

$(BUILD)/tests/unit/libanalyzer.so: $(ANALYZER_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ $(TOOL_LIBS)

$(BUILD)/tests/unit/test_analyzer_%: tests/unit/test_analyzer_%.c $(BUILD)/tests/unit/libanalyzer.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -O0 -iquote analyzer -iquote tests/unit -Iinclude -c -o $@.o $<
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $@.o $(BUILD)/tests/unit/libanalyzer.so -Wl,-rpath,'$$ORIGIN' -lcmocka $(TOOL_LIBS)

# For tests/fuzz/run, which chooses compiler and sanitizers.
FUZZ := $(BUILD)/tests/fuzz/fuzz_trace $(BUILD)/tests/fuzz/fuzz_digest
$(FUZZ): $(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(ANALYZER_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -iquote analyzer -Iinclude -o $@ $< $(ANALYZER_LIB) $(TOOL_LIBS)

# Digests of jobs of any size, for tests and measurements.
SCALE := $(BUILD)/tests/scale/gendigest
$(SCALE): $(BUILD)/tests/scale/%: tests/scale/%.c $(ANALYZER_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -iquote analyzer -Iinclude -o $@ $< $(ANALYZER_LIB) $(TOOL_LIBS)

.SECONDEXPANSION:
$(BUILD)/tests/unit/test_%: tests/unit/test_%.c $$(addsuffix .o,$$(addprefix $(BUILD)/,$$(call links,test_$$*)))
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_) -O0 $(CUDA_INCLUDE) -iquote shim -iquote tests/unit -Iinclude -c -o $@.o $<
	$(Q)$(CC) $(SANFLAGS) -pthread -o $@ $@.o $(filter %.o,$^) -lcmocka -ldl -lm

# As many jobs as there are CPUs, unless somebody said how many.
all_cpus   = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: test test-build check house demo mutate
test-build: all apps gpu-build bench-build e2e stress-build sim-tests $(SCALE) $(UNIT)
test-build: $(MPI_TESTS)
include tests/e2e/e2e.mk
include tests/stress/stress.mk

# The fast static checks: the other compiler's warnings (which depend neither on optimization nor on bundles), the layout of the code, and that the two
# halves share nothing but include/, that shim/lib knows nothing of the rest but the processor, that
# the folders of the analyzer include only what lies below them, and that what the shim links to stays in order.
C_FILES := $(wildcard shim/*/*.[ch] shim/*/*/*.[ch] analyzer/*.[ch] analyzer/*/*.[ch] include/cudaspy/*.h tests/unit/*.[ch] tests/sim/*.[ch] testapps/*.[ch] \
		$(filter-out tests/e2e/programs/fake_map.h,$(wildcard tests/e2e/programs/*.[ch])) tests/bench/*.[ch] tests/fuzz/*.[ch] tests/mutate/*.c tests/gpu/*.[ch] tests/stress/*.[ch] tests/scale/*.[ch])
C_FILES += $(wildcard tests/recipes/*.[ch] mpi/*.[ch])
check:
	$(Q)$(MAKE) --no-print-directory -s $(all_cpus) CC=$(CLANG) BUILD=$(BUILD)/clang BUNDLED=1 DEBUG=1 WERROR=-Werror all
	$(Q)$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)
	@! grep -nE '#include "(\.\./)?(shim|analyzer)/' -r shim analyzer
	@! grep -n '#include "' shim/lib/*.[ch] | grep -vE '"(lib|arch)/'
	$(Q)tests/include-order
	$(Q)tests/house --check $(BUILD)/clang
	$(Q)tests/stages
	$(Q)tests/page/check
	@echo 'check: no findings'

# How the house is planned, and how large things are: figures that are to fall.
house: $(SHIM)
	$(Q)tests/house $(BUILD)

# The packages first.
test: deps
	$(Q)$(MAKE) --no-print-directory $(if $(Q),-s) $(all_cpus) test-build
	$(Q)tests/run $(TESTS)

# Faults put in one at a time: which of them does no test notice? For people, not for CI.
mutate: deps
	$(Q)BUILD=$(BUILD) tests/mutate/run $(AREA) $(MUTATE_ARGS)

demo:
	$(Q)tests/deps $(BUILD_DEBS)
	$(Q)$(MAKE) --no-print-directory $(if $(Q),-s) $(all_cpus) all $(if $(NVCC),$(BUILD)/testapps/copies)
	$(Q)BUILD=$(BUILD) tests/demo

# What a fresh Debian machine lacks: to build, which is all the demo needs; and what the tests run and compare with.
BUILD_DEBS := gcc g++ libc6-dev uthash-dev libdw-dev libelf-dev libjansson-dev libsqlite3-dev zlib1g-dev libncurses-dev
# To build the package, which a test does, too.
PACKAGE_DEBS := debhelper dpkg-dev mpi-default-dev
TEST_DEBS  := ccache libcmocka-dev babeltrace2 jq clang clang-format gdb python3-jsonschema libxml2-utils groff-base gnuplot-nox fonts-dejavu-core protobuf-compiler \
	nodejs? chromium-headless-shell? tmux cmake parallel python3-yaml sqlite3 $(PACKAGE_DEBS) openmpi-bin libopenmpi-dev mpich libmpich-dev slurmctld slurmd slurm-client munge
.PHONY: deps
deps:
	$(Q)tests/deps $(BUILD_DEBS) $(TEST_DEBS)

# ---- install ----------------------------------------------------------------------------------
.PHONY: install uninstall clean help
# Mode, file, and where it goes below PREFIX.
man_section   = share/man/man$(subst .,,$(suffix $(1)))
INSTALLED    := 755:$(TOOL):bin/cudaspy 755:$(SHIM):lib/cudaspy/libcudaspy.so \
	$(if $(GPU_LIB),755:$(GPU_LIB):lib/cudaspy/libcudaspy_gpu.so) \
	$(if $(MPI_TOOL),755:$(MPI_TOOL):bin/cudaspy-mpi) \
	$(foreach page,$(MAN) $(MPI_MAN),644:$(page):$(call man_section,$(page))/$(notdir $(page))) \
	644:$(BUILD)/completion/cudaspy:share/bash-completion/completions/cudaspy \
	644:$(BUILD)/completion/_cudaspy:share/zsh/site-functions/_cudaspy
field         = $(word $(1),$(subst :, ,$(2)))
define newline


endef

install: installable
	$(foreach row,$(INSTALLED),install -D -m $(call field,1,$(row)) $(call field,2,$(row)) \
		'$(DESTDIR)$(PREFIX)/$(call field,3,$(row))'$(newline)	)

uninstall:
	$(foreach row,$(INSTALLED),rm -f '$(DESTDIR)$(PREFIX)/$(call field,3,$(row))'$(newline)	)
	-rmdir '$(DESTDIR)$(PREFIX)/lib/cudaspy'

clean:
	rm -rf $(BUILD)

# ---- packages ---------------------------------------------------------------------------------
# Both write below $(BUILD) only. The sources are what git has, or without git what lies here.
.PHONY: dist deb
PACKAGE      := cudaspy-$(VERSION)
DIST         := $(BUILD)/$(PACKAGE).tar.gz
DEB_DIR      := $(BUILD)/deb
source_files  = { git ls-files -z --error-unmatch Makefile >/dev/null 2>&1 && git ls-files -z || \
	find . \( -path ./$(BUILD) -o -path ./build -o -path ./.git -o -name '*.cudaspy' \) -prune -o \( -type f -o -type l \) -print0; }

dist:
	@mkdir -p $(BUILD)
	$(call say,TAR,$(DIST))
	$(Q)$(source_files) | tar --null --no-recursion --files-from=- --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="$$(git log -1 --format=%cI 2>/dev/null || date -Is)" --transform='s,^\(\./\)*,$(PACKAGE)/,S' -czf $(DIST).new
	$(Q)mv $(DIST).new $(DIST)

# From the tarball, in a folder of its own: dpkg-buildpackage writes beside the sources and into them.
deb: dist
	$(Q)tests/deps $(BUILD_DEBS) $(PACKAGE_DEBS)
	$(Q)[ "$$(dpkg-parsechangelog -S Version)" = '$(VERSION)' ] || \
		{ echo 'cudaspy: debian/changelog begins with another version than $(VERSION)' >&2; exit 1; }
	$(Q)rm -rf $(DEB_DIR) && mkdir -p $(DEB_DIR) && tar -xf $(DIST) -C $(DEB_DIR)
	$(call say,DEB,$(DEB_DIR))
	$(Q)cd $(DEB_DIR)/$(PACKAGE) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u DEBUG -u SAN \
		dpkg-buildpackage --build=binary --no-sign >../build.log 2>&1 || { tail -n 15 ../build.log >&2; exit 1; }
	$(Q)rm -rf $(DEB_DIR)/$(PACKAGE)
	$(Q)ls $(DEB_DIR)/cudaspy_*.deb

# ---- help -------------------------------------------------------------------------------------
help:
	@echo 'Targets:'
	@echo '  all         libcudaspy.so, the command cudaspy and the simulator, in $(BUILD)/ (default)'
	@echo '  demo        build, run a bundled application under cudaspy, show the report'
	@echo '  test        build and run all tests; TESTS="name ..." runs some'
	@echo '  check       the static checks: clang, clang-format, who includes whom, who links to whom'
	@echo '  house       how many files need each other in a circle, how large things are'
	@echo '  mutate      put faults into the code of AREA (shim, analyzer, or a path) and list those no test notices'
	@echo '  stress      random programs, recorded and not: SEEDS=n, from FIRST=seed on'
	@echo '  sim         the simulated CUDA, in $(BUILD)/sim'
	@echo '  apps        the bundled test applications (need the CUDA toolkit)'
	@echo '  bench       measure the cost of recording and the speed of the report'
	@echo '  gpu-build   what tests/gpu/run, busy and waits take to a machine with GPUs'
	@echo '  deps        install the Debian packages that are missing, or say which'
	@echo '  install     into $$(DESTDIR)$$(PREFIX), now $(DESTDIR)$(PREFIX); uninstall undoes it'
	@echo '  dist        the sources, as $(BUILD)/cudaspy-$(VERSION).tar.gz'
	@echo '  deb         a Debian package, in $(BUILD)/deb'
	@echo '  clean       remove $(BUILD)/'
	@echo 'Knobs:'
	@echo '  BUNDLED=1   compile the analyzer several files at a time: faster, for tests'
	@echo '  BUILD=dir   DEBUG=1   SAN=address,undefined | thread   V=1   CC=clang   WERROR=-Werror'
	@echo '  BENCH_ARGS= of tests/bench/run, MUTATE_ARGS= of tests/mutate/run (--help lists them)   TESTS=names'
	@echo '  CUDA_HOME=  the CUDA toolkit, now $(or $(CUDA_HOME),(none found))'
	@echo '  MPICC=      the compiler for cudaspy-mpi, now $(or $(MPICC),(none found)); empty: it is not built'

-include $(BUILD)/shim/entry/offsets.h.d $(SHIM_OBJ:.o=.d) $(ANALYZER_OBJ:.o=.d) $(EMPTY_OBJ:.o=.d) $(UNIT:=.d)
