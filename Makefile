# Targets: all (default), setup, test, run-tests (without setup), goldens, asan, ubsan, tsan, coverage, debug, compdb, demo,
# docs, tables, install, uninstall, deb, check-layers, check-functions, check-abi, check-recipes, format, format-check,
# lint, clean. Variables: CC, CFLAGS, WERROR=-Werror, V=1 (show the commands), CUDA_HOME, PREFIX, DESTDIR; of run-tests:
# TESTS, the paths of some, and CASES, the names of some of their cases; of deb: DEBFULLNAME, DEBEMAIL.

CC           = gcc
OBJCOPY     ?= objcopy
CLANG_FORMAT ?= clang-format
CLANG_TIDY  ?= clang-tidy
PREFIX      ?= /usr/local
WERROR      ?=
# The jobs of targets that set all up by themselves: one for each processor, unless the user has said how many. A -j
# without a number would start all jobs at once.
PARALLEL      = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(or $(shell nproc 2>/dev/null),1))
# Seconds one test program may take.
TEST_LIMIT  ?= 600

# A recipe's first line is $(call say,WHAT): the short form of the command after it, which starts with $(Q).
Q   := $(if $(V),,@)
say  = @$(if $(V),:,printf '  %-7s %s\n' $(1) $@)

# --- variants: each has its own objects and outputs, and the sanitised ones run the same tests ---
VARIANT ?= release
BUILD   := build
OUT     := $(if $(filter release,$(VARIANT)),$(BUILD),$(BUILD)/$(VARIANT))
OBJ     := $(BUILD)/obj/$(VARIANT)

# Both at once take hardly longer than one.
SANITIZE_asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZE_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_tsan  := -fsanitize=thread
# What libFuzzer's programs are made of; clang's alone. See `make fuzz`.
SANITIZE_fuzz  := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
                  -fno-sanitize-coverage=trace-cmp
SANITIZE       := $(SANITIZE_$(VARIANT))
# The runtime that must come before libkprof.so in LD_PRELOAD, where the variant has one.
RUNTIME_asan   := libasan.so
RUNTIME_tsan   := libtsan.so
RUNTIME_ubsan  := libubsan.so
# See tests/shim/nodeepbind.c.
TEST_ENV_tsan  := KP_SHIM_QUICK_EXIT=1 TSAN_OPTIONS=halt_on_error=1

# Threads count one line at a time; what the optimiser makes of a line has no branches of its own to count.
INSTRUMENT_coverage := --coverage -fprofile-update=atomic -DKP_COVERAGE
INSTRUMENT      = $(SANITIZE) $(INSTRUMENT_$(VARIANT))
CFLAGS_coverage := -O0 -g1
CFLAGS_debug    := -O0 -g3
# -O2 would remove some of the bad accesses before a sanitiser sees them; its reports need lines alone.
CFLAGS ?= $(or $(CFLAGS_$(VARIANT)),$(if $(SANITIZE),-O1 -g1,-O2 -g))

ifeq ($(SANITIZE),)
# Sanitisers intercept by plain names, and bring a newer glibc's symbols themselves.
COMPAT       := -include tools/glibc_compat.h
# See cmd/command.c. dlopen is in libdl before glibc 2.34, and nothing but its name is left of that since.
KPROF_LDFLAGS := -Wl,--wrap=__libc_start_main -Wl,--no-as-needed -l:libdl.so.2 -Wl,--as-needed
else
SANITIZE += -fno-omit-frame-pointer
# See base/arena.c.
CPPFLAGS += -DKP_ARENA_BLOCK=1
endif
# See base/lock.c.
CPPFLAGS += $(if $(filter asan tsan,$(VARIANT)),-DKP_CHECK_LOCKS)

# --- flags ---
# A sanitiser's extra code confuses the warnings that follow values, so none is an error there.
WARNINGS := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wvla $(if $(SANITIZE),,$(WERROR))
# initial-exec: a preloaded object has its thread-local storage from the start, and so needs no call into ld.so for it.
BASE_FLAGS := -std=gnu11 -D_GNU_SOURCE= -I. -fPIC -fvisibility=hidden \
              -ftls-model=initial-exec $(WARNINGS) $(INSTRUMENT)
# The tests' own code is compiled each time that they are, and runs for moments.
COMPILE     = $(CC) $(BASE_FLAGS) $(FOLDER_FLAGS) $(CPPFLAGS) $(CFLAGS) $(if $(INSTRUMENT),,$(if $(filter tests/unit/% tests/support/%,$<),-O0)) -MMD -MP
# Fakes and the programs that load them stand for other people's binaries: no sanitiser, nothing hidden.
PLAIN_COMPILE = $(CC) -std=gnu11 -D_GNU_SOURCE= -I. $(CUDA_CPPFLAGS) -I$(BUILD)/include-c -fPIC $(WARNINGS) $(CFLAGS)

# lazy: some distributions' compilers bind at once by default, which an older glibc cannot do for every name.
SO_LDFLAGS  = -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,lazy -Wl,-z,relro \
              -Wl,-z,noexecstack -Wl,--as-needed

# --- sources ---
FOLDERS     := preload cmd collectors cupti report base
SOURCES     := $(wildcard $(foreach d,$(FOLDERS),$(foreach x,c S,$(d)/*.$(x) $(d)/*/*.$(x))))
# A library of its own: see report/dwarf/symbols.h.
SYMBOLS_SRC := $(wildcard report/dwarf/*.c)
# The command stays out of the library, and so does the HTML report, which only the command writes.
LIBRARY_SRC := $(filter-out $(SYMBOLS_SRC) cmd/% report/html/%,$(SOURCES))

objects      = $(addprefix $(OBJ)/,$(addsuffix .o,$(1)))
LIBRARY_OBJ := $(call objects,$(LIBRARY_SRC))
SQLITE      := $(OBJ)/libsqlite3.a
# Linked statically: they come with the products.
STATIC      := $(SQLITE) $(shell $(CC) -print-file-name=libpcre2-8.a)
# Built once for all variants. The second archive has what the first one takes from it.
UNWIND_DIR  := $(BUILD)/libunwind
UNWIND      := $(UNWIND_DIR)/lib/libunwind-x86_64.a $(UNWIND_DIR)/lib/libunwind.a

# --- CUDA's headers and CUPTI: found or fetched by tools/cuda.sh, which writes the variables below into cuda.mk ---
CUDA_SEARCH ?= $(CUDA_HOME) /usr/local/cuda $(wildcard /usr/local/cuda-13* /opt/cuda*)
CUDA_MK     := $(BUILD)/cuda.mk
# These goals either need no compiler or run make again after they have set up the machine.
SELF_SUFFICIENT := setup setup-test setup-checks setup-fuzz clean uninstall test asan ubsan tsan coverage debug compdb fuzz \
                   fuzz-selftest demo format format-check
ifneq ($(filter-out $(SELF_SUFFICIENT),$(or $(MAKECMDGOALS),all)),)
include $(CUDA_MK)
ifneq ($(strip $(CUDA_SEARCHED)),$(strip $(CUDA_SEARCH)))
$(CUDA_MK): FORCE
endif
endif

.PHONY: check-functions check-recipes compile all setup setup-test setup-checks test run-tests goldens list-goldens test-programs asan ubsan tsan coverage run-coverage debug compdb demo docs tables install uninstall deb \
        check-layers check-abi format format-check lint clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:

all: $(OUT)/libkprof.so $(OUT)/libkprof-symbols.so $(OUT)/kprof

$(CUDA_MK): tools/cuda.sh
	@tools/cuda.sh $@ "$(strip $(CUDA_SEARCH))"

# cupti_profiler_host.h includes C++'s <string> without using it; only the folder of the CUPTI headers sees this one.
$(BUILD)/include-c/string:
	@mkdir -p $(@D)
	@: > $@

# Rewritten only when a compiler or a flag has changed, so that everything is compiled again. Or a source has come or gone,
# so that everything is linked again.
$(OBJ)/flags: NOW = $(CC) $(BASE_FLAGS) $(COMPAT) $(CUDA_CPPFLAGS) $(CPPFLAGS) $(CFLAGS)
$(OBJ)/sources: NOW = $(LDFLAGS) $(SOURCES)
$(OBJ)/flags $(OBJ)/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(NOW)' | cmp -s - $@ || echo '$(NOW)' > $@

# --- compiling: each folder sees the headers it may know, and no others ---
$(OBJ)/preload/%.o $(OBJ)/collectors/%.o $(OBJ)/cmd/%.o: FOLDER_FLAGS = $(CUDA_CPPFLAGS)
$(OBJ)/cupti/%.o $(OBJ)/tests/%.o: FOLDER_FLAGS = $(CUDA_CPPFLAGS) -I$(BUILD)/include-c

$(OBJ)/preload/who/unwind.c.o: FOLDER_FLAGS = $(CUDA_CPPFLAGS) -isystem $(UNWIND_DIR)/include
$(OBJ)/preload/who/unwind.c.o: | $(UNWIND)

# Run before a sanitiser's own initialiser has ended: it looks its functions up through our dlsym.
$(OBJ)/preload/os/elf.c.o $(OBJ)/preload/os/symbols.c.o $(OBJ)/preload/doors/door_lookup.c.o: FOLDER_FLAGS = $(CUDA_CPPFLAGS) $(if $(SANITIZE),-fno-sanitize=all)

$(OBJ)/%.c.o: %.c $(OBJ)/flags | $(BUILD)/include-c/string
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) $(COMPAT) -c $< -o $@

$(OBJ)/%.S.o: %.S $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,AS)
	$(Q)$(COMPILE) -Wa,--noexecstack -c $< -o $@

# What the HTML report is made of, and its hashes for the content security policy. The parts of the script in this order: the
# last one starts it.
HTML_PARTS  := data elements numbers names launches charts overview drawings memory launch source flame timeline compare frame
HTML_SCRIPT := $(OBJ)/report/html/report.js
HTML_STYLE  := report/html/report.css
HTML_ASSETS := $(OBJ)/report/html/assets.S.o
$(HTML_SCRIPT): $(HTML_PARTS:%=report/html/script/%.js)
	@mkdir -p $(@D)
	@cat $^ > $@
$(HTML_ASSETS): $(HTML_SCRIPT) $(HTML_STYLE) tools/content_hash.sh
$(HTML_ASSETS): FOLDER_FLAGS = -DKP_SCRIPT='"$(HTML_SCRIPT)"' -DKP_STYLE='"$(HTML_STYLE)"' \
                               -DKP_SCRIPT_HASH='"$(shell tools/content_hash.sh $(HTML_SCRIPT))"' \
                               -DKP_STYLE_HASH='"$(shell tools/content_hash.sh $(HTML_STYLE))"'

# --- SQLite: the system's static archive, with what sqlite_compat.c defines renamed in it ---
$(SQLITE): $(OBJ)/report/store/sqlite_compat.c.o
	@nm --defined-only $< | sed -n 's/.* T kp_sqlite_\(.*\)/\1 kp_sqlite_\1/p' > $(@D)/sqlite.rename
	$(call say,OBJCOPY)
	$(Q)$(OBJCOPY) --redefine-syms=$(@D)/sqlite.rename $$($(CC) -print-file-name=libsqlite3.a) $@

# --- libunwind: from its source, as distributions' static archives are no code for a shared object ---
$(UNWIND_DIR)/lib/libunwind-x86_64.a: tools/libunwind.sh tools/libunwind_compat.h
	@CC='$(CC)' tools/libunwind.sh $(UNWIND_DIR)
$(UNWIND_DIR)/lib/libunwind.a: $(UNWIND_DIR)/lib/libunwind-x86_64.a ;

# --- the three products ---
$(OUT)/libkprof.so: $(LIBRARY_OBJ) $(STATIC) $(UNWIND) $(OBJ)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(SO_LDFLAGS) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $(LIBRARY_OBJ) $(STATIC) $(UNWIND)

$(OUT)/libkprof-symbols.so: $(call objects,$(SYMBOLS_SRC)) $(OBJ)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(SO_LDFLAGS) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $(call objects,$(SYMBOLS_SRC)) -ldw

# Of collectors/ and cupti/ it takes what it calls: CUPTI's host side, which answers the queries.
KPROF_MAIN := $(OBJ)/cmd/command.c.o
KPROF_LIBS := $(patsubst %,$(OUT)/lib%.a,cmd collectors cupti report base) $(STATIC)
$(OUT)/kprof: $(KPROF_MAIN) $(KPROF_LIBS) $(OBJ)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $(KPROF_MAIN) -Wl,--start-group $(KPROF_LIBS) -Wl,--end-group $(KPROF_LDFLAGS)

# --- man pages and completions: templates, filled with what the command says of itself ---
# Their date, and that of a package and of what is in it.
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y base/version.h)
endif
export SOURCE_DATE_EPOCH
MAN1 := kprof.1 kprof-report.1 kprof-diff.1 kprof-doctor.1
DOCS := $(addprefix $(OUT)/docs/,$(MAN1) libkprof.7 kprof.bash _kprof)
docs: $(DOCS)

# Tables of the documents that are made of the code; tests/e2e/documents.sh fails when one is stale.
tables: $(OUT)/kprof
	@for f in *.md docs/*.md; do CC='$(CC)' tools/gen_tables.sh $(OUT)/kprof $$f > $(OUT)/table.md && \
	    { cmp -s $(OUT)/table.md $$f || cp $(OUT)/table.md $$f; } || exit 1; done; rm -f $(OUT)/table.md
	@tools/gen_manual.sh $(OUT)/kprof docs/manual.md > $(OUT)/table.md && \
	    { cmp -s $(OUT)/table.md docs/manual.md || cp $(OUT)/table.md docs/manual.md; }; rm -f $(OUT)/table.md
	@CC='$(CC)' tools/gen_locks.sh > docs/locks.md
	@CC='$(CC)' tools/gen_waits.sh > docs/waits.md
	@CC='$(CC)' tools/gen_limits.sh > docs/limits.md
	@tests/gpu/performance.py tests/gpu/results.csv > docs/performance.md

$(OUT)/docs/%: packaging/%.in tools/gen_docs.sh tools/gen_docs.awk $(OUT)/kprof
	@mkdir -p $(@D)
	$(call say,DOC)
	$(Q)tools/gen_docs.sh $(OUT)/kprof $< > $@

VERSION := $(shell sed -n 's/.*KP_VERSION "\(.*\)"/\1/p' base/version.h)
$(OUT)/docs/kprof.pc: packaging/kprof.pc.in FORCE
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' $< > $@

# --- installing ---
ZSH_DIR       ?= share/zsh/site-functions
PKGCONFIG_DIR ?= lib/pkgconfig
# The documents, and what they link to and read.
DOCUMENTS := LICENSE README.md CONTRIBUTING.md CHANGELOG.md \
             $(wildcard docs/*.* docs/*/*.* examples/*.* examples/*/*.*)
# MODE=FILE=PLACE below PREFIX: what install puts there and uninstall takes away.
INSTALLED := 755=$(OUT)/kprof=bin/kprof \
             644=$(OUT)/libkprof.so=lib/libkprof.so \
             644=$(OUT)/libkprof-symbols.so=lib/libkprof-symbols.so \
             644=$(OUT)/docs/kprof.pc=$(PKGCONFIG_DIR)/kprof.pc \
             $(foreach p,$(MAN1),644=$(OUT)/docs/$(p)=share/man/man1/$(p)) \
             644=$(OUT)/docs/libkprof.7=share/man/man7/libkprof.7 \
             644=$(OUT)/docs/kprof.bash=share/bash-completion/completions/kprof \
             644=$(OUT)/docs/_kprof=$(ZSH_DIR)/_kprof \
             $(foreach f,$(DOCUMENTS),644=$(f)=share/doc/kprof/$(f))
# A word of such a row.
part = $(word $(1),$(subst =, ,$(2)))

install: all $(DOCS) $(OUT)/docs/kprof.pc
	@$(foreach i,$(INSTALLED),install -D -m $(call part,1,$(i)) '$(call part,2,$(i))' \
	    '$(DESTDIR)$(PREFIX)/$(call part,3,$(i))' &&) echo '  INSTALL $(DESTDIR)$(PREFIX)'

# With NCU_LINK=yes the command is there under the name ncu, too, in a folder of its own that a PATH may begin with.
NCU_FOLDER := libexec/kprof/bin
install: $(if $(filter yes,$(NCU_LINK)),install-link)
install-link:
	@mkdir -p '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)'
	@test ! -e '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)/ncu' -o -L '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)/ncu'
	@ln -sfn ../../../bin/kprof '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)/ncu'
.PHONY: install-link

# Our own folder goes as well, unless somebody else has put files there.
uninstall:
	@rm -f $(foreach i,$(INSTALLED),'$(DESTDIR)$(PREFIX)/$(call part,3,$(i))')
	@test ! -L '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)/ncu' || { rm '$(DESTDIR)$(PREFIX)/$(NCU_FOLDER)/ncu' && \
	    cd '$(DESTDIR)$(PREFIX)' && rmdir -p --ignore-fail-on-non-empty $(NCU_FOLDER); }
	@cd '$(DESTDIR)$(PREFIX)/share/doc' && rmdir -p --ignore-fail-on-non-empty kprof/docs/internals kprof/examples/*

# Debian has its own places for what is for another package, or not for one architecture only.
deb: all $(DOCS)
	@rm -rf $(OUT)/deb
	@$(MAKE) --no-print-directory install DESTDIR=$(OUT)/deb PREFIX=/usr ZSH_DIR=share/zsh/vendor-completions \
	    PKGCONFIG_DIR=share/pkgconfig >/dev/null
	@tools/make_deb.sh $(OUT)/deb $(VERSION) $(OUT)

# --- set-up: apt packages, quick when nothing is missing ---
setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

setup-checks:
	@tools/setup.sh checks

# --- tests ---
# Archives, so that a test takes the objects it calls and no door that it does not.
ARCHIVES     := $(patsubst %,$(OUT)/lib%.a,$(FOLDERS))
TEST_SRC     := $(wildcard tests/unit/*/test_*.c)
TEST_SUPPORT := $(call objects,$(wildcard tests/support/*.c))
TEST_BIN     := $(patsubst %.c,$(OUT)/tests/%,$(notdir $(TEST_SRC)))
TEST_SCRIPTS := $(wildcard tests/e2e/*.sh)
# Tests that write files of tests/golden/ anew where KP_TEST_UPDATE is set: those that name one.
GOLDEN_BIN    = $(patsubst %.c,$(OUT)/tests/%,$(notdir $(shell grep -l 'tests/golden/' $(TEST_SRC))))

# main() is a test's own.
$(foreach f,$(FOLDERS),$(eval $(OUT)/lib$(f).a: \
    $(call objects,$(filter-out $(SYMBOLS_SRC) cmd/command.c,$(filter $(f)/%,$(SOURCES))))))
$(ARCHIVES): $(OBJ)/sources
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $(filter %.o,$^)

# libc comes before the archives: a test's own _exit or dlsym is libc's, not a door.
$(foreach s,$(TEST_SRC),$(eval $(OUT)/tests/$(basename $(notdir $(s))): $(OBJ)/$(s).o))
$(TEST_BIN): $(TEST_SUPPORT) $(ARCHIVES) $(STATIC) $(UNWIND)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %/$(@F).c.o,$^) $(TEST_SUPPORT) -lcmocka -lc \
	    -Wl,--start-group $(ARCHIVES) $(STATIC) $(UNWIND) -Wl,--end-group -lm

comma := ,
# The test has these fail, in code of ours and not in the fakes.
$(OUT)/tests/test_preload_fails: private LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc aligned_alloc strndup \
    open_memstream kp_symbols_driver)

# Run on a GPU machine, which need not have the test library, to record what tests/unit/cupti/test_cupti_recorded.c evaluates.
$(OUT)/tests/gpu/record_image: $(OBJ)/tests/gpu/record_image.c.o $(ARCHIVES) $(STATIC) $(UNWIND)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $< -lc \
	    -Wl,--start-group $(ARCHIVES) $(STATIC) $(UNWIND) -Wl,--end-group -lm

# tests/fake/fake_X.c is the library FAKE_X, or libX.so; the folder's other sources are part of each of them.
FAKE_cuda    := libcuda.so.1
FAKE_cudart  := libcudart.so.13
FAKE_cupti   := libcupti.so.13
FAKE_nvperf  := libnvperf_host.so
# The real libcupti must not find this one by name.
SONAME_nvperf := libnvperf_fake.so
fake_library  = $(OUT)/fake/$(or $(FAKE_$(1)),lib$(1).so)
FAKES        := $(patsubst tests/fake/fake_%.c,%,$(wildcard tests/fake/fake_*.c))
FAKE_SUPPORT := $(filter-out tests/fake/fake_%,$(wildcard tests/fake/*.c))
PROGRAMS     := $(patsubst tests/programs/%.c,$(OUT)/programs/%,$(wildcard tests/programs/*.c))
# What a source says in a comment `LINK: …` about the libraries it needs.
LINK_LINE     = $$(sed -n 's@.*LINK: *\([^*]*\).*@\1@p' $<)

define fake_rule
$(call fake_library,$(1)): tests/fake/fake_$(1).c $(FAKE_SUPPORT) $(OBJ)/flags | $(BUILD)/include-c/string
	@mkdir -p $$(@D)
	$$(call say,FAKE)
	$$(Q)$$(PLAIN_COMPILE) -MMD -MP -MF $(OBJ)/fake_$(1).d -shared -Wl,-soname,$(or $(SONAME_$(1)),$$(@F)) $(LDFLAGS) -o $$@ $$< $(FAKE_SUPPORT) $$(LINK_LINE)
	$$(if $(FAKE_$(1)),@ln -sf $$(@F) $(OUT)/fake/lib$(1).so)
endef
FAKE_LIBS := $(foreach f,$(FAKES),$(call fake_library,$(f)))
$(foreach f,$(FAKES),$(eval $(call fake_rule,$(f))))

$(OUT)/programs/%: tests/programs/%.c $(FAKE_LIBS) $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(PLAIN_COMPILE) -MMD -MP -MF $(OBJ)/program_$*.d -o $@ $< -L$(OUT)/fake $(LINK_LINE)

# What the scripts of tests/e2e preload beside the profiler: other people's libraries, too.
E2E_LIBS := $(patsubst tests/e2e/%.c,$(OUT)/e2e/%.so,$(wildcard tests/e2e/*.c))
$(OUT)/e2e/%.so: tests/e2e/%.c $(FAKE_LIBS) $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(PLAIN_COMPILE) -MMD -MP -MF $(OBJ)/e2e_$*.d -shared -o $@ $< -L$(OUT)/fake $(LINK_LINE)

# libkprof.so with the mode of the tests.
TOY := $(OUT)/e2e/libkprof_toy.so
$(TOY): $(LIBRARY_OBJ) $(call objects,tests/toy/mode.c) $(STATIC) $(UNWIND)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(SO_LDFLAGS) $(INSTRUMENT) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %/mode/modes.c.o,$(filter %.o,$^)) $(STATIC) $(UNWIND)

# What a preloaded sanitiser needs in front of it (tests/shim/nodeepbind.c), and its runtime.
SHIM := $(OUT)/nodeepbind.so
$(SHIM): tests/shim/nodeepbind.c $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,SHIM)
	$(Q)$(PLAIN_COMPILE) -shared -o $@ $<

# Tests of code that never sees a second thread, or (test_preload_fails) whose processes end beside a thread of kprof's,
# which TSan takes for a leak.
UNTHREADED := test_report_% test_cmd_% test_base_demangle test_collect_plan test_collect_catalog test_collect_pm_list \
              test_collect_runs test_collect_cubin test_collect_ptx test_collect_providers test_cupti_recorded \
              test_cupti_host test_cupti_source test_fakes test_preload_fails
RUN_BIN     = $(if $(filter tsan,$(VARIANT)),$(filter-out $(addprefix $(OUT)/tests/,$(UNTHREADED)),$(TEST_BIN)),$(TEST_BIN))

# The library of symbols is looked for beside whatever the code is part of.
$(OUT)/tests/libkprof-symbols.so: $(OUT)/libkprof-symbols.so
	@mkdir -p $(@D)
	@ln -sf ../$(<F) $@

test-programs: $(RUN_BIN) $(FAKE_LIBS) $(PROGRAMS) $(E2E_LIBS) $(TOY) $(OUT)/tests/libkprof-symbols.so

# What all compilers are to accept, without the tests' programs, of which nothing runs.
compile: all $(foreach f,$(TEST_SRC) $(wildcard tests/support/*.c),$(OBJ)/$(f).o) $(FAKE_LIBS) $(PROGRAMS) $(E2E_LIBS)

# CASES are those to run: names or patterns with | between them, see tests/e2e/e2e.inc; of a cmocka program one pattern.
run-tests: export KP_TEST_CASES = $(CASES)
# The leak checker (gcc 12) crashes where it scans thread-local memory of the vendor's libraries by what it has recorded
# of it. Without the record it reports more, not less.
run-tests: all $(if $(SANITIZE),,docs) test-programs $(if $(RUNTIME_$(VARIANT)),$(SHIM))
	@KP_TEST_BUILD=$(abspath $(OUT)) KP_TEST_SRC=$(CURDIR) KP_REAL_CUPTI=$(CUPTI_LIBDIR) KP_TEST_VARIANT=$(VARIANT) $(if $(SANITIZE),E2E_LIMIT=120) \
	 KP_TEST_PRELOAD_FIRST=$(if $(RUNTIME_$(VARIANT)),$(abspath $(SHIM)):$(realpath $(shell $(CC) -print-file-name=$(RUNTIME_$(VARIANT))))) \
	 $(if $(RUNTIME_$(VARIANT)),KP_TEST_SHIM=$(abspath $(SHIM)) ASAN_OPTIONS=verify_asan_link_order=0:intercept_tls_get_addr=0:quarantine_size_mb=16:malloc_context_size=6 \
	 LSAN_OPTIONS=suppressions=$(CURDIR)/tools/lsan.supp:print_suppressions=0) \
	 KP_TEST_PRELOAD_PLAIN=$(if $(filter asan ubsan,$(VARIANT)),$(realpath $(shell $(CC) -print-file-name=$(RUNTIME_ubsan)))) \
	 KP_HOST_ANSWERS=$(abspath $(BUILD))/host-answers \
	 KP_TEST_ENV='$(TEST_ENV_$(VARIANT))' tools/run_tests.sh $(TEST_LIMIT) $(OUT)/test-logs $(or $(TESTS),$(TEST_SCRIPTS) $(RUN_BIN))

list-goldens:
	@echo $(notdir $(GOLDEN_BIN))

goldens:
	@KP_TEST_UPDATE=1 $(MAKE) --no-print-directory run-tests TESTS='$(GOLDEN_BIN)'

test: setup-test
	@$(MAKE) --no-print-directory $(PARALLEL) run-tests

asan ubsan tsan: setup-test
	@$(MAKE) --no-print-directory $(PARALLEL) VARIANT=$@ run-tests

# The share of lines and branches that the tests run, by room; tests that fail are told, and are for `make test` to fail on.
# MISSING=ROOM or MISSING=FILE prints what of it did not run in the last run, and runs nothing.
MISSING ?=
coverage: $(if $(MISSING),,setup-test)
	@$(if $(MISSING),,$(MAKE) --no-print-directory $(PARALLEL) VARIANT=$@ run-coverage &&) \
	    tools/coverage.py $(BUILD)/obj/$@ tools/coverage.floors $(MISSING)
run-coverage: all docs test-programs
	@find $(OBJ) -name '*.gcda' -delete
	-@$(MAKE) --no-print-directory run-tests

# A build to step through: build/debug/kprof.
debug:
	@$(MAKE) --no-print-directory $(PARALLEL) VARIANT=$@ all test-programs

# For editors and tools that read code: what a build of nothing yet would run.
compdb:
	@$(MAKE) --no-print-directory --dry-run V=1 VARIANT=compdb compile 2>/dev/null | \
	    tools/compdb.py '$(CURDIR)' > compile_commands.json

# --- fuzzing: tests/fuzz/fuzz_NAME.c is the harness NAME ---
FUZZ_CC   ?= clang
SECONDS   ?= 60
FUZZ_JOBS ?= $(shell nproc)
FUZZERS   := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN  := $(addprefix $(OUT)/,$(FUZZERS))
FUZZ_LINK  = $(CC) $(subst fuzzer-no-link,fuzzer,$(SANITIZE)) $(CFLAGS) $(LDFLAGS)
# Of collectors/ what reads files of others: not all of it, as it is compiled for each run of the CI.
FUZZED    := $(OUT)/libfuzzed.a
FUZZED_SRC := $(filter base/% report/%,$(LIBRARY_SRC)) $(wildcard cmd/diff*.c) \
              $(filter collectors/code/cubin% %/disassemble.c %/sass.c,$(filter collectors/%,$(LIBRARY_SRC)))
FUZZ_SUPPORT := $(call objects,$(filter-out tests/fuzz/fuzz_%,$(wildcard tests/fuzz/*.c)))
FUZZ_REST  = -Wl,--start-group $(FUZZED) $(STATIC) -Wl,--end-group -lm

$(FUZZED): $(call objects,$(FUZZED_SRC)) $(FUZZ_SUPPORT) $(OBJ)/sources
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $(filter %.o,$^)

# A static pattern: `make fuzz` alone has these programs. Harness first, so that it may include what it looks into.
ifeq ($(VARIANT),fuzz)
$(FUZZ_BIN): $(OUT)/%: $(OBJ)/tests/fuzz/fuzz_%.c.o $(FUZZED) $(STATIC)
	$(call say,LINK)
	$(Q)$(FUZZ_LINK) -o $@ $< $(FUZZ_REST)
endif

# Runs the kept inputs, and then each harness for SECONDS seconds, or until RUNS runs are made, with all that it found in
# earlier runs. HARNESSES are the ones to run.
fuzz: setup-fuzz
	@$(MAKE) --no-print-directory VARIANT=fuzz CC='$(FUZZ_CC)' run-fuzz
fuzz-selftest: setup-fuzz
	@$(MAKE) --no-print-directory VARIANT=fuzz CC='$(FUZZ_CC)' run-fuzz-selftest
HARNESSES ?= $(FUZZERS)
run-fuzz: $(addprefix $(OUT)/,$(HARNESSES))
	@tests/fuzz/run.sh $(OUT) '$(SECONDS)' '$(RUNS)' $(FUZZ_JOBS) $(HARNESSES)
run-fuzz-selftest: $(FUZZ_BIN)
	@COMPILE='$(COMPILE)' LINK='$(FUZZ_LINK)' REST='$(FUZZ_REST)' \
	    tests/fuzz/selftest.sh $(OUT) $(OBJ) $(FUZZ_JOBS)
.PHONY: fuzz fuzz-selftest run-fuzz run-fuzz-selftest setup-fuzz
setup-fuzz:
	@FUZZ_CC='$(FUZZ_CC)' tools/setup.sh fuzz

# --- checks ---
check-layers: all
	@tools/check_layers.py $(OBJ)
	@tools/check_names.py tools/names.allow

check-abi: all
	@tools/check_abi.sh $(OUT)/libkprof.so $(OUT)/kprof $(OUT)/libkprof-symbols.so

FORMATTED := $(wildcard $(foreach d,$(FOLDERS) $(FOLDERS:=/*) tests/* tests/*/* tools examples, \
               $(d)/*.c $(d)/*.h)) $(wildcard report/html/script/*.js)
format:
	@$(CLANG_FORMAT) -i $(FORMATTED)
format-check:
	@printf '%s\n' $(FORMATTED) | xargs -P $(shell nproc) -n 40 $(CLANG_FORMAT) --dry-run -Werror

PRODUCT_SRC := $(filter %.c,$(SOURCES))
# A finding is an error. LINT_CHECKS='-clang-analyzer-*' leaves out the analyzer, which takes minutes.
LINT_CHECKS ?=
lint: | $(BUILD)/include-c/string $(UNWIND)
	@printf '%s\n' $(PRODUCT_SRC) | xargs -P $(shell nproc) -I{} $(CLANG_TIDY) --quiet --warnings-as-errors='*' \
	    --checks='$(LINT_CHECKS)' {} -- $(BASE_FLAGS) $(CUDA_CPPFLAGS) -I$(BUILD)/include-c \
	    -isystem $(UNWIND_DIR)/include 2>/dev/null

# Follows the recipes of docs/adding.md in a copy of the tree. RECIPES="page rule" are some of them.
check-recipes: all $(FAKE_LIBS) $(PROGRAMS)
	@tests/recipes/apply.py $(RECIPES)

check-functions:
	@tools/check_functions.sh $(PRODUCT_SRC)

# --- demo ---
demo: setup
	@echo "demo: builds kprof first, which takes a minute or two"
	@$(MAKE) --no-print-directory $(PARALLEL) all run-demo
.PHONY: run-demo
run-demo: all
	@NVCC='$(NVCC)' CUPTI_LIBDIR='$(CUPTI_LIBDIR)' tools/demo.sh $(OUT)

clean:
	rm -rf $(BUILD)

-include $(wildcard $(foreach d,* */* */*/* */*/*/*,$(OBJ)/$(d).d))
