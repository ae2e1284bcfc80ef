# The workshop. `make help` lists the recipes; each one brings what it needs.

PYTHON ?=
VENV   := .venv
BIN    := $(VENV)/bin
# Without what make says of its jobs, which cargo's own children cannot take part in.
RUST   := MAKEFLAGS= $(BIN)/python tools/toolchain.py
OUT    := demo-output

BENCH_CORE := $(RUST) cargo bench --quiet --locked -p slidewise-core --bench windows --

# Where a benchmark writes its record, if `make bench RECORD=bench/record/today` asks.
record = $(if $(RECORD),--json $(abspath $(RECORD))-$(1).json)

# Stamps live inside the environment they describe, so that removing it is enough: the
# environment itself, slidewise in it with what it runs on, and all tools for developers.
BASE := $(VENV)/.base
CORE := $(VENV)/.core
DEPS := $(VENV)/.deps
DEV  := $(DEPS) $(CORE)

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
                $(shell find crates -name '*.rs' -o -name Cargo.toml)

export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help dev quick demo demo-spark test test-core test-long test-faults test-matrix \
        test-threads test-streams test-cluster test-kills test-python test-package \
        test-pairs test-keyed-pairs test-spark test-spark-versions kafka lint bench \
        bench-core bench-rolling bench-ranges bench-latency bench-native \
        bench-peers bench-spark bench-streams soak soak-spark docs wheels format lock clean

help: ## this list
	@echo "slidewise: exact sliding-window aggregates on event time"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

dev: $(DEV) ## a virtual environment in .venv with slidewise and all tools in it

quick: $(DEPS) ## while developing: a build in seconds that runs slower; then .venv/bin/pytest
	@test -e $(CORE) || $(MAKE) dev
	@$(RUST) cargo build --quiet --locked -p slidewise-py --profile quick
	@install "$$(ls target/quick/lib_core.so target/quick/lib_core.dylib 2>/dev/null)" python/slidewise/_core.abi3.so

demo: $(CORE) ## the main job on a generated trip stream: table, Parquet, picture
	@$(BIN)/python examples/trips/demo.py --out $(OUT)

demo-spark: $(DEV) ## both engines on the same trips: in process, Spark as a table and as a stream
	@$(BIN)/python examples/trips/demo_spark.py

# Two at a time, in this order: lint beside the build for Python, cargo tests beside pytest,
# and pairs where a core is free first. Spark has both to itself.
test: $(DEPS) ## everything that must pass: lint, cargo tests, pytest
	@$(RUST) >/dev/null # once, before two of them would install Rust
	@$(MAKE) --no-print-directory -j 2 lint test-package test-core test-pairs
	@$(MAKE) --no-print-directory test-spark

test-core: $(DEPS) ## the tests of the Rust core
	$(RUST) cargo test --locked -p slidewise-core

# A fresh seed each day. Scripts per structure and kind of partial: 20,000 of them take
# minutes, a million, the tier to pass before a release, hours.
SCRIPTS ?= 1000000
SEED    ?= $(shell date +%Y%m%d)0000000
WINDOWS := oracle:: in_order:: reactive:: trees:: shared:: hybrids::
test-long: $(DEPS) ## random scripts against the oracle: SCRIPTS=1000000 of each kind; WINDOWS=trees::
	@echo "$(SCRIPTS) scripts from seed $(SEED)"
	SLIDEWISE_SCRIPTS=$(SCRIPTS) SLIDEWISE_SEED=$(SEED) \
		$(RUST) cargo test --locked -p slidewise-core --test structures -- $(WINDOWS) --skip costs

FAULTS ?= 300
test-faults: $(DEV) ## errors of users, injected: FAULTS=300 scripts per algorithm, a million
	SLIDEWISE_FAULT_SCRIPTS=$(FAULTS) $(BIN)/pytest tests/aggregations/test_custom_faults.py -q -k kth_call

test-matrix: $(DEV) ## every algorithm with every aggregation: SCRIPTS=1000000; ARGS="-k sum"
	SLIDEWISE_SCRIPTS=$(SCRIPTS) $(BIN)/pytest tests/aggregations/test_matrix.py -q $(ARGS)

STREAMS ?= 100
STEPS   ?= 30
FIRST   ?= 0
test-streams: $(DEV) ## Spark streams against tables: STREAMS=100 of STEPS=30 batches; ARGS=--all
	$(BIN)/python tests/helpers/parity.py \
		--streams $(STREAMS) --steps $(STEPS) --first $(FIRST) $(ARGS)

THREADS ?= 2,4,8
test-threads: $(DEV) ## threads that share one window: MINUTES=10 THREADS=2,4,8; ARGS="--parts window"
	$(BIN)/python tests/helpers/threads.py --minutes $(or $(MINUTES),10) --threads $(THREADS) $(ARGS)

DRIVERS ?= 5
WORKERS ?= 15
test-cluster: $(DEV) ## Spark with two executors, slidewise sent along in an archive
	SLIDEWISE_CLUSTER=1 $(BIN)/pytest tests/spark/test_cluster.py -q

test-kills: $(DEV) ## kills of Spark drivers and workers: DRIVERS=5 WORKERS=15 for each sink
	SLIDEWISE_DRIVER_KILLS=$(DRIVERS) SLIDEWISE_WORKER_KILLS=$(WORKERS) \
		$(BIN)/pytest tests/spark/test_kills.py -q -s

test-python: ## the tests of the Python package, by the built module
	@$(MAKE) --no-print-directory test-package
	@$(MAKE) --no-print-directory test-pairs
	@$(MAKE) --no-print-directory test-spark

test-package: $(DEV) ## those without Spark, but for the next
	$(BIN)/pytest --ignore tests/spark --ignore tests/aggregations/test_matrix.py

test-pairs: $(DEV) ## every algorithm with every aggregation, as in `make test`
	$(BIN)/pytest tests/aggregations/test_matrix.py

test-spark-versions: $(DEV) ## every PySpark that serves, each in an environment of its own; ARGS="4.1.4"
	$(BIN)/python tests/helpers/versions.py $(ARGS)

test-keyed-pairs: $(DEV) ## every two features of keyed streams: MINUTES=60 SEED=20260101
	PYTHONPATH=tests/helpers $(BIN)/python -m keyed_pairs --minutes $(or $(MINUTES),60) --seed $(SEED)

test-spark: $(DEV) ## those with Spark
	@$(BIN)/python tools/kafka.py --once
	$(BIN)/pytest tests/spark

kafka: $(DEV) ## Kafka and Spark's connector for it, into .kafka: the tests run against them
	@$(BIN)/python tools/kafka.py

lint: $(DEPS) ## formatting, types, clippy, and the number of unsafe blocks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(RUST) cargo fmt --all --check
	$(RUST) tools/clippy
	@printf 'unsafe blocks, functions and impls in crates/: '
	@grep -rhE --include='*.rs' '^[^/]*\bunsafe (\{|fn|impl|trait|extern "C" \{)' crates | wc -l

bench: bench-core bench-rolling $(DEV) ## all figures: the core, Window and rolling; RECORD=prefix keeps them
	$(BIN)/python -m bench.python_window $(call record,window)
	$(BIN)/python -m bench.python_tables $(call record,tables)

bench-core: $(DEPS) ## figures of the Rust core; ARGS="i64 --log-n 18" for a part of them
	$(BENCH_CORE) $(ARGS) $(call record,core)
	$(BENCH_CORE) $(ARGS) --rss $(call record,core-rss)

bench-rolling: $(DEPS) ## figures of the kernels over tables; ARGS="sum --rows 1000000"
	$(RUST) cargo bench --quiet --locked -p slidewise-core --bench rolling -- $(ARGS)

bench-ranges: $(DEPS) ## many ranges over one stream; ARGS="'every max'", RECORD=prefix keeps them
	$(RUST) cargo bench --quiet --locked -p slidewise-core --bench ranges -- \
		$(ARGS) $(call record,ranges)

bench-latency: $(DEPS) ## how long single calls take, with a picture; RECORD=prefix keeps both
	@mkdir -p target
	$(RUST) cargo bench --quiet --locked -p slidewise-core --bench latency -- \
		$(ARGS) --json $(or $(if $(RECORD),$(abspath $(RECORD)).json),$(CURDIR)/target/latency.json)
	$(BIN)/python -m bench.latency $(or $(RECORD),target/latency).json

bench-native: $(DEV) ## aggregations through Numba and Python, and sketches; RECORD=prefix
	$(BIN)/python -m bench.python_native $(ARGS) $(call record,native)

bench-spark: $(DEV) ## batch on Spark beside its own frames; ARGS="--filter slidewise", RECORD=prefix
	$(BIN)/python -m bench.spark_batch $(ARGS) $(call record,spark-batch)

bench-streams: $(DEV) ## streams on Spark beside its own; ARGS="--filter keys", RECORD=prefix
	$(BIN)/python -m bench.spark_stream $(ARGS) $(call record,spark-stream)

bench-peers: $(DEV) ## tables beside peers, -> docs/speed.md; PEERS= an environment with them
	PYTHONPATH=$(CURDIR):$(CURDIR)/python $(or $(PEERS),$(VENV))/bin/python \
		-m bench.rolling_peers $(ARGS) --out docs $(call record,peers)

soak: $(DEV) ## a long run in which memory must not grow; ARGS="--native 1000000" for a short one
	$(BIN)/python -m bench.soak $(ARGS)

soak-spark: $(DEV) ## a long stream on Spark, likewise; ARGS="--minutes 30"
	$(BIN)/python -m bench.spark_soak $(ARGS)

docs: $(DEV) ## the pages that are made from the code
	$(BIN)/python tools/aggregation_page.py

wheels: ## the sdist and the Linux wheels (both libcs, both architectures) into dist/
	$(or $(PYTHON),python3) tools/wheels.py $(ARGS)

format: $(DEPS) ## put the code into its standard form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(RUST) cargo fmt --all

lock: ## renew the lock files to the newest versions
	tools/lock "$$(PYTHON=$(PYTHON) tools/find-python)"

clean: ## remove everything that was built
	rm -rf $(VENV) .kafka .spark-versions target $(OUT) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/slidewise/_core*.so
	find bench python tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE): requirements-dev.lock tools/find-python
	@python=$$(PYTHON=$(PYTHON) tools/find-python) || exit 1; \
		echo "Making $(VENV) with $$python"; \
		"$$python" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint requirements-dev.lock maturin
	@touch $@

$(DEPS): $(BASE)
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements-dev.lock
	@touch $@

$(CORE): $(BASE) $(RUST_SOURCES)
	@echo "Building slidewise (optimised; the first time takes a minute or two)"
	@$(RUST) $(BIN)/python -m pip install --quiet --no-build-isolation \
		--constraint requirements-dev.lock --editable '.[cli,plot]'
	@touch $@
