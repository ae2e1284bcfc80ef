# `make help` lists the recipes; each brings what it needs.

VENV := .venv
BIN  := $(VENV)/bin
OUT  := demo-output

# cargo is the one that rust-toolchain.toml names. On a machine without Rust it comes into
# the user's cache, through the package puccinialin.
export PATH := $(CURDIR)/$(BIN):$(PATH):$(CURDIR)/.uv/bin:$(HOME)/.cargo/bin
ifeq ($(shell PATH="$(PATH)" command -v cargo),)
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slidewise
export CARGO_HOME := $(CACHE)/cargo
export RUSTUP_HOME := $(CACHE)/rustup
export PATH := $(CARGO_HOME)/bin:$(PATH)
FETCHED := $(CARGO_HOME)/bin/cargo
endif
# Without what make says of its jobs, which cargo's own children cannot take part in.
CARGO := MAKEFLAGS= cargo

# uv makes .venv as uv.lock has it, and builds slidewise anew once its sources have changed.
# It is the one on PATH, else one from PyPI.
PYTHON ?= python3
UV     := $(or $(shell PATH="$(PATH)" command -v uv),$(CURDIR)/.uv/bin/uv)
SYNC   := MAKEFLAGS= UV=$(UV) tools/sync

# What is random is another each day. The same again: make test SEED=20260101000000
SEED := $(or $(SEED),$(SLIDEWISE_SEED),$(shell date +%Y%m%d)000000)
export SLIDEWISE_SEED := $(SEED)

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Where a benchmark writes its record, if `make bench RECORD=bench/record/today` asks.
record = $(if $(RECORD),--json $(abspath $(RECORD))-$(1).json)

.DEFAULT_GOAL := help
.PHONY: help dev dev-tools core-dev build-dev rust demo demo-spark test test-core test-package \
        test-spark test-nightly test-release test-long test-matrix test-matrix-long test-faults \
        test-keyed-pairs test-queries test-threads test-streams test-crash-recovery \
        test-cluster test-kafka test-spark-versions test-python-versions test-oldest test-miri \
        test-sanitizer fuzz coverage kafka lint bench bench-core bench-rolling bench-latency experiments \
        bench-native bench-keyed bench-queries bench-peers bench-spark bench-streams bench-rates soak \
        soak-spark docs wheels format lock clean

help: ## this list
	@echo "slidewise: exact sliding-window aggregates on event time"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

dev: rust $(UV) ## a virtual environment in .venv with slidewise and all tools in it
	@$(SYNC) --all-extras

# Tests run on this build: with those of the core over tables it shares the profile, and it
# checks assertions and overflow. What asks for `dev` next has the optimised one again.
build-dev: rust $(UV) ## the extension for tests: built sooner, runs slower; then .venv/bin/pytest
	@$(MAKE) --no-print-directory -j 2 dev-tools core-dev
	@touch $(VENV)/.build-dev
	@MAKEFLAGS= $(BIN)/maturin develop --uv --locked --quiet

demo: rust $(UV) ## the main job on a generated trip stream: table, Parquet, picture
	@echo "Building slidewise (optimised; the first time takes a minute or two)"
	@$(SYNC) --no-default-groups --extra cli --extra plot
	@$(BIN)/python examples/trips/demo.py --out $(OUT)

demo-spark: dev ## both engines on the same trips: in process, Spark as a table and as a stream
	@$(BIN)/python examples/trips/demo_spark.py

# Two at a time, in this order: Spark, which leaves a core free most of the time, runs
# beside cargo, and what pytest runs in two processes comes last.
# BUILT keeps make from putting cargo before Spark, which would wait for the build again.
test: build-dev ## everything that must pass: lint, cargo tests, pytest; SEED= of another day
	@echo "seed $(SEED); the same again: make test SEED=$(SEED)"
	@$(MAKE) --no-print-directory -j 2 BUILT=1 lint test-spark test-core test-package

# What the tests of tables run is compiled in the core: they share the extension's, optimised.
test-core: $(if $(BUILT),,dev-tools) ## the tests of the Rust core; ARGS=oracle:: for a part of them
	$(BIN)/python tools/cargo_test.py -p slidewise-core --lib --test every \
		--test structures --test experiments $(ARGS)
	$(BIN)/python tools/cargo_test.py -p slidewise-core --doc --profile dev $(ARGS)
	$(BIN)/python tools/cargo_test.py -p slidewise-core --test tables --test keyed \
		--profile dev $(ARGS)

test-package: $(if $(BUILT),,build-dev) ## those of the Python package without Spark
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/spark $(ARGS)

test-spark: $(if $(BUILT),,build-dev) ## those with Spark
	$(BIN)/pytest tests/spark $(ARGS)

test-matrix: build-dev ## every algorithm with every aggregation; ARGS="-k sum"
	$(BIN)/pytest -n 2 --dist worksteal tests/aggregations/test_matrix.py $(ARGS)

# The tier to pass before a release. Each prints its seed; the counts are for one night.
NIGHTLY := test-release test-long test-matrix-long test-faults test-keyed-pairs test-queries \
           test-threads test-streams test-crash-recovery test-cluster test-kafka test-oldest \
           test-python-versions test-spark-versions test-miri test-sanitizer fuzz soak \
           soak-spark
test-nightly: ## the long counts, kills, Kafka, Connect, a cluster, fuzz, Miri, other versions
	@echo "seed $(SEED)"
	@for one in $(NIGHTLY); do \
		$(MAKE) --no-print-directory $$one || failed="$$failed $$one"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

test-release: dev ## the tests of the package on the optimised build
	SLIDEWISE_DAMAGE=all $(BIN)/pytest -n 2 --dist worksteal --ignore tests/spark $(ARGS)

# Scripts of fiba per kind of partial; a tenth of that for each other structure.
SCRIPTS ?= 1000000
WINDOWS := oracle:: in_order:: reactive:: trees:: shared:: hybrids:: queue:: costs \
           auto:: deferred:: aggregations:: holistic::
test-long: dev-tools ## the core's scripts and costs at length: SCRIPTS=1000000; WINDOWS=trees::
	@echo "$(SCRIPTS) scripts from seed $(SEED)"
	SLIDEWISE_SCRIPTS=$(SCRIPTS) SLIDEWISE_COSTS=all $(CARGO) test --profile long --locked \
		-p slidewise-core --test structures --test every --test tables -- $(WINDOWS)

PAIRS ?= 10000
test-matrix-long: dev ## every algorithm with every aggregation, PAIRS=10000 scripts for each
	SLIDEWISE_SCRIPTS=$(PAIRS) $(BIN)/pytest -n 2 --dist worksteal --timeout 0 \
		tests/aggregations/test_matrix.py $(ARGS)

FAULTS ?= 300
test-faults: dev ## errors of users, injected: FAULTS=300 scripts per algorithm, a million
	SLIDEWISE_FAULT_SCRIPTS=$(FAULTS) $(BIN)/pytest -n 2 --timeout 0 \
		tests/aggregations/test_custom_faults.py -q -k kth_call

MINUTES ?= 10
test-keyed-pairs: dev ## every two features of keyed streams: MINUTES=10 SEED=20260101
	PYTHONPATH=tests/helpers $(BIN)/python -m keyed_pairs --minutes $(MINUTES) --seed $(SEED)

QUERIES ?= 20000
test-queries: dev ## keyed windows that are asked: QUERIES=20000 scripts, a million questions
	SLIDEWISE_QUERY_SCRIPTS=$(QUERIES) $(BIN)/pytest -n 2 \
		--timeout 0 tests/keyed/test_query.py -q -k rolling_over_all_rows

THREADS ?= 2,4,8
test-threads: dev ## threads that share one window: MINUTES=10 THREADS=2,4,8; ARGS="--parts window"
	$(BIN)/python tests/helpers/threads.py --minutes $(MINUTES) --threads $(THREADS) $(ARGS)

STREAMS ?= 100
STEPS   ?= 30
FIRST   ?= 0
test-streams: dev ## Spark streams against tables: STREAMS=100 of STEPS=30 batches; ARGS=--all
	$(BIN)/python tests/helpers/parity.py \
		--streams $(STREAMS) --steps $(STEPS) --first $(FIRST) $(ARGS)

DRIVERS ?= 5
WORKERS ?= 15
test-crash-recovery: dev ## kills of Spark drivers and workers: DRIVERS=5 WORKERS=15 for each sink
	SLIDEWISE_DRIVER_KILLS=$(DRIVERS) SLIDEWISE_WORKER_KILLS=$(WORKERS) \
		$(BIN)/pytest tests/spark/test_kills.py -q -s

test-cluster: dev ## Spark with two executors, slidewise sent along in an archive; Connect
	$(BIN)/pytest -m nightly tests/spark/test_cluster.py tests/spark/test_connect.py -q

test-kafka: kafka ## streams from Kafka to Kafka, by functions and by the command
	$(BIN)/pytest -m nightly tests/spark/test_kafka.py tests/spark/test_cli_stream.py -q

test-spark-versions: dev ## every PySpark that serves, each in an environment of its own; ARGS="4.1.4"
	$(BIN)/python tests/helpers/versions.py $(ARGS)

PYTHONS ?= 3.11 3.12 3.13 3.14
test-python-versions: dev ## the tests of the package on PYTHONS="3.11 3.12 3.13 3.14"
	@tools/test-python $(PYTHONS)

test-oldest: dev ## the tests of the package with the oldest versions that pyproject.toml allows
	@tools/test-python --oldest 3.11

test-miri: rust ## the tests of the core that Miri can run; needs a nightly Rust with it
	tools/miri

test-sanitizer: rust ## readers beside a writer under ThreadSanitizer: MINUTES=10; needs a nightly Rust
	MINUTES=$(MINUTES) tools/sanitizer

fuzz: dev ## snapshots and Arrow data, damaged at random: MINUTES=10 SEED=20260101
	$(BIN)/python tests/helpers/fuzz.py --minutes $(MINUTES) --seed $(SEED) $(ARGS)

coverage: dev-tools ## lines of Rust and Python that `make test` runs, into coverage/
	tools/coverage

kafka: dev ## Kafka and Spark's connector for it, into .kafka: the tests run against them
	@$(BIN)/python tools/kafka.py

# Another Rust than that of rust-toolchain.toml has other lints: its warnings are shown only.
PINNED := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
lint: $(if $(BUILT),,dev-tools) ## formatting, types, clippy, and the number of unsafe blocks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- \
		$$(cargo --version | grep -qF " $(PINNED) " && echo "-D warnings")
	@printf 'unsafe blocks, functions and impls in crates/: '
	@grep -rhE --include='*.rs' '^[^/]*\bunsafe (\{|fn|impl|trait|extern "C" \{)' crates | wc -l

bench: bench-core bench-rolling dev ## figures of the core, Window and rolling; RECORD=prefix keeps them
	$(BIN)/python -m bench.python_window $(call record,window)
	$(BIN)/python -m bench.python_tables $(call record,tables)

BENCH_CORE := $(CARGO) bench --quiet --locked -p slidewise-core --bench windows --
bench-core: dev-tools ## figures of the Rust core; ARGS="i64 --log-n 18" for a part of them
	$(BENCH_CORE) $(ARGS) $(call record,core)
	$(BENCH_CORE) $(ARGS) --rss $(call record,core-rss)

bench-rolling: dev-tools ## figures of the kernels over tables; ARGS="sum --rows 1000000"
	$(CARGO) bench --quiet --locked -p slidewise-core --bench rolling -- $(ARGS)

# Figures and tables by their keys: fiba-11, or fiba for all of a paper. Make has a CPP of
# its own: only one from the command line is meant.
SCALE ?= quick
experiments: dev-tools ## the papers' figures and claims: SCALE=paper ONLY=fiba-11 DATA=folder CPP=path
	MAKEFLAGS= $(BIN)/python -m bench.experiments --scale $(SCALE) --only "$(ONLY)" \
		$(if $(DATA),--data $(DATA)) $(if $(filter command,$(origin CPP)),--cpp $(CPP)) $(ARGS)

bench-latency: dev-tools ## how long single calls take, with a picture; RECORD=prefix keeps both
	@mkdir -p target
	$(CARGO) bench --quiet --locked -p slidewise-core --bench latency -- \
		$(ARGS) --json $(or $(if $(RECORD),$(abspath $(RECORD)).json),$(CURDIR)/target/latency.json)
	$(BIN)/python -m bench.latency $(or $(RECORD),target/latency).json

bench-native: dev ## aggregations through Numba and Python, and sketches; RECORD=prefix
	$(BIN)/python -m bench.python_native $(ARGS) $(call record,native)

bench-keyed: dev ## keyed windows: tables in, answers out, changes; ARGS="--only '1 k'", RECORD=prefix
	$(BIN)/python -m bench.keyed_ingest $(ARGS) $(call record,keyed)

bench-queries: dev ## questions to keyed windows; ARGS="--keys 100000 --entries 1000", RECORD=prefix
	$(BIN)/python -m bench.keyed_queries $(ARGS) $(call record,queries)

bench-spark: dev ## batch on Spark beside its own frames; ARGS="--filter slidewise", RECORD=prefix
	$(BIN)/python -m bench.spark_batch $(ARGS) $(call record,spark-batch)

bench-streams: dev ## streams on Spark beside its own; ARGS="--filter keys", RECORD=prefix
	$(BIN)/python -m bench.spark_stream $(ARGS) $(call record,spark-stream)

bench-rates: dev ## keyed streams beside an operator that does nothing; ARGS="--turns 2", RECORD=prefix
	$(BIN)/python -m bench.spark_rates $(ARGS) $(call record,spark-rates)

bench-peers: dev ## tables beside peers, -> docs/speed.md; PEERS= an environment with them
	PYTHONPATH=$(CURDIR):$(CURDIR)/python $(or $(PEERS),$(VENV))/bin/python \
		-m bench.rolling_peers $(ARGS) --out docs $(call record,peers)

soak: dev ## a long run in which memory must not grow; ARGS="--native 1000000" for a short one
	$(BIN)/python -m bench.soak $(ARGS)

soak-spark: dev ## a long stream on Spark, likewise; ARGS="--minutes 30"
	$(BIN)/python -m bench.spark_soak $(ARGS)

docs: dev ## the pages that are made from the code
	$(BIN)/python tools/aggregation_page.py

wheels: ## the sdist and the Linux wheels (both libcs, both architectures) into dist/
	$(or $(PYTHON),python3) tools/wheels.py $(ARGS)

format: dev-tools ## put the code into its standard form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(CARGO) fmt --all

lock: $(UV) ## renew the lock files to the newest versions; ARGS="--upgrade-package pyarrow"
	$(UV) lock --default-index https://pypi.org/simple $(or $(ARGS),--upgrade)
	$(CARGO) update

clean: ## remove everything that was built
	rm -rf $(VENV) .uv .kafka .spark-versions .python-versions target $(OUT) coverage dist
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/slidewise/_core*.so
	find bench python tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The tools without slidewise, for what need not wait until it is built.
dev-tools: rust $(UV)
	@$(SYNC) --tools --all-extras

# What of the extension needs no Python, compiled while the tools are fetched.
core-dev: rust
	@$(CARGO) build --quiet --locked -p slidewise-core --profile dev

# rustup installs what rust-toolchain.toml names, unless it is told not to.
rust: $(FETCHED)
	@cargo --version >/dev/null 2>&1 || rustup toolchain install

$(CACHE)/cargo/bin/cargo: $(UV)
	@cd / && $(UV) run --isolated --no-project --with puccinialin \
		python -m puccinialin --location $(CACHE) >/dev/null \
		|| { echo "Install Rust (https://rustup.rs), then run make again."; exit 1; }

$(CURDIR)/.uv/bin/uv:
	@$(PYTHON) -m venv .uv
	@.uv/bin/pip install --quiet 'uv>=0.9,<1'
