# The targets are glue: what they do is in scripts/ and in cargo.

CARGO := scripts/cargo.sh
BUILD := $(or $(CARGO_TARGET_DIR),target)/release
PREFIX ?= /usr/local
DESTDIR ?=

FUZZ_SECONDS ?= 120
SECONDS ?= 7200
COUNT ?= 1000000
PACKAGES ?= dist
export GLIBC PACKAGES REVISION MAINTAINER SIGN_KEY

.PHONY: help setup setup-build setup-test setup-lint setup-evaluate setup-packages setup-arm64 setup-vm setup-kernels qemu build product product-store product-demo arm64 test test-all fuzz differential lint stale tree tables demo packages packages-test packages-reproduce evaluate evaluate-arm64 evaluate-packages install clean

help: ## List the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## Install what building, testing and checking need (root, Debian or Ubuntu)
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh test

setup-lint:
	@scripts/setup.sh lint

setup-evaluate:
	@scripts/setup.sh evaluate

setup-packages:
	@scripts/setup.sh packages

setup-build:
	@scripts/setup.sh build

setup-arm64:
	@scripts/setup.sh arm64

setup-vm: ## Unpack a newer QEMU beside the system's, for several processors in virtual time (no root)
	@scripts/setup-vm.sh

setup-kernels: ## Fetch headers of newer kernels, and a compiler for them; installs nothing (no root)
	@scripts/setup-kernels.sh

qemu: ## Build a QEMU whose processors are parallel in virtual time (GPL-2.0; 5 minutes of processor time)
	@scripts/qemu.sh

# Without luc-fleet-store, which takes long to compile; tests build it.
build: ## Build target/release/luc and target/release/libluc_gate_preload.so
	$(CARGO) build --release --workspace --exclude luc-fleet-store --locked
	scripts/preload.sh $(BUILD)

product: ## Build what users run, without what proves it
	$(CARGO) build --release --locked -p luc -p luc-fleet -p luc-service
	scripts/preload.sh $(BUILD)

# FEATURES=azure,gcp has it reach these stores, too.
product-store: ## Build luc-fleet-store, for rings in object stores (`luc fleet push`)
	$(CARGO) build --release --locked -p luc-fleet-store $(if $(FEATURES),--features $(FEATURES))

# Without the commands that the demo does not use, which take long to compile.
product-demo:
	$(CARGO) build --release --locked -p luc --no-default-features
	scripts/preload.sh $(BUILD)

arm64: setup-arm64 ## Build luc and its library for 64-bit Arm, on another machine (Debian, Rust by rustup)
	scripts/build-arm64.sh

# In the release profile: the tests find libluc_gate_preload.so beside luc.
test: setup-test ## Set up, build, and run the tests; those that cannot run here are listed
	scripts/test.sh

test-all: ## The same, and what takes long: luc-fleet-store, Spark, other kernels and QEMUs
	@scripts/setup.sh test-all
	scripts/test.sh all

fuzz: ## Fuzz what reads traces, FUZZ_SECONDS (120) for each target, by the stable compiler
	scripts/fuzz.sh $(FUZZ_SECONDS)

differential: build ## Run COUNT (1000000) random programs with and without LUC, for SECONDS (7200) at most (root)
	$(BUILD)/luc-differential fuzz --seconds $(SECONDS) --count $(COUNT) --json differential.json

lint: setup-lint ## Set up, then check form, lints, documentation, scripts and dependencies
	scripts/lint.sh

stale: ## List the pages of the evaluation whose code has changed since they were measured
	@scripts/stale.py

tree: ## Print lines, packages, dependencies and tests, now and before
	@scripts/tree.sh

tables: setup-test build ## Write what the documentation has from the code anew: arrows between folders, trace tables
	LUC_WRITE_DOCS=1 $(CARGO) test --release --locked -p luc --test arrows
	LUC_WRITE_DOCS=1 $(CARGO) test --release --locked -p luc-events --test store

demo: setup-build product-demo ## Set up, build, and show what LUC does
	$(BUILD)/luc demo

# SIGN_KEY=FILE signs the checksums by that key of ssh-keygen, REVISION=2 is another revision, MAINTAINER names who packs.
packages: setup-packages ## Build packages for apt and rpm, a tarball and checksums, into dist/
	scripts/packages.sh $$(scripts/dist.sh) $(PACKAGES)

packages-test: setup-packages ## Check the packages in dist/, and install, upgrade and remove them in a fresh root (root)
	scripts/packages-test.sh $(PACKAGES)

# Two full builds, in two folders: takes long.
packages-reproduce: setup-packages
	scripts/reproduce.sh $(PACKAGES)

evaluate: setup-evaluate build arm64 ## Measure what LUC claims and rewrite docs/evaluation (root, 4 hours)
	$(BUILD)/luc-evaluate

evaluate-arm64: setup-evaluate build arm64
	$(BUILD)/luc-evaluate arm64

evaluate-packages: setup-evaluate build packages
	$(BUILD)/luc-evaluate packages

# One part: evaluate-metarates, evaluate-sqlite, ...; luc-evaluate --help lists them.
evaluate-%: setup-evaluate build
	$(BUILD)/luc-evaluate $*

install: ## Install what was built, and the module's sources, under DESTDIR and PREFIX (/usr/local)
	scripts/install.sh $(BUILD) $(PREFIX) $(DESTDIR)

clean: ## Remove what was built
	$(CARGO) clean
