# `make help` lists the recipes; each builds its own requirements first.

VENV := .venv
BIN  := $(VENV)/bin
OUT  := demo-output

# cargo follows rust-toolchain.toml. On a machine without Rust, the package puccinialin
# installs it in the user's cache.
export PATH := $(CURDIR)/$(BIN):$(PATH):$(CURDIR)/.uv/bin:$(HOME)/.cargo/bin
ifeq ($(shell PATH="$(PATH)" command -v cargo),)
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slidewise
export CARGO_HOME := $(CACHE)/cargo
export RUSTUP_HOME := $(CACHE)/rustup
export PATH := $(CARGO_HOME)/bin:$(PATH)
FETCHED := $(CARGO_HOME)/bin/cargo
endif
# MAKEFLAGS is cleared because the processes that cargo starts cannot use make's job server.
CARGO := MAKEFLAGS= cargo

# uv makes .venv from uv.lock, and rebuilds slidewise when its sources have changed. It is the
# uv on PATH, else one from PyPI.
PYTHON ?= python3
UV     := $(or $(shell PATH="$(PATH)" command -v uv),$(CURDIR)/.uv/bin/uv)
SYNC   := MAKEFLAGS= UV=$(UV) tools/sync

# The seed of random tests changes every day. To repeat a run: make test SEED=20260101000000
SEED := $(or $(SEED),$(SLIDEWISE_SEED),$(shell date +%Y%m%d)000000)
export SLIDEWISE_SEED := $(SEED)

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The option that makes a benchmark write its record: `make bench RECORD=bench/record/today`.
record = $(if $(RECORD),--json $(abspath $(RECORD))-$(1).json)

.DEFAULT_GOAL := help
.PHONY: help dev dev-tools build-dev rust demo demo-spark test test-core test-package \
        test-package-keyed test-package-windows test-package-others \
        test-spark test-nightly test-release test-long test-matrix test-matrix-long test-faults \
        test-keyed-pairs test-one-number test-queries test-threads test-streams test-crash-recovery \
        test-cluster test-kafka test-sinks test-spark-versions test-python-versions test-oldest test-miri \
        test-sanitizer fuzz coverage kafka lint bench bench-core bench-rolling bench-latency experiments \
        bench-native bench-keyed bench-queries bench-memory bench-peers bench-spark bench-streams bench-rates soak \
        soak-spark reports docs site wheels format lock clean

help: ## show this list
	@echo "slidewise: exact sliding-window aggregates on event time"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

dev: rust $(UV) ## make a virtual environment in .venv with slidewise and all tools
	@$(SYNC) --all-extras

# Tests run on this build, which checks assertions and overflow. It shares its profile with
# the core's tests of tables. The next recipe that needs `dev` builds the optimised extension.
build-dev: dev-tools ## build the extension for tests: fast to build, slow to run; then .venv/bin/pytest
	@touch $(VENV)/.build-dev
	@MAKEFLAGS= $(BIN)/maturin develop --uv --locked --quiet

demo: rust $(UV) ## run the main job on generated trips: table, Parquet, picture
	@echo "Building slidewise (optimised; the first time takes a minute or two)"
	@$(SYNC) --no-default-groups --extra cli --extra plot
	@$(BIN)/python examples/trips/demo.py --out $(OUT)

demo-spark: dev ## compare both engines on the same trips: in process, Spark batch and stream
	@$(BIN)/python examples/trips/demo_spark.py

# Two jobs run at a time, in this order. Spark leaves a core free most of the time, so it runs
# beside cargo; the package comes last, each third in a process that collects its own tests
# only. BUILT removes the dependencies on builds, by which make would start cargo before Spark.
test: build-dev ## run all tests that must pass: lint, cargo, pytest; SEED= repeats another day
	@echo "seed $(SEED); to repeat: make test SEED=$(SEED)"
	@$(MAKE) --no-print-directory -j 2 BUILT=1 lint test-spark test-core \
		test-package-keyed test-package-windows test-package-others

# Python's bindings are selected for their features of dependencies: with others, cargo would
# compile the core once more.
test-core: $(if $(BUILT),,dev-tools) ## test the Rust core; ARGS=oracle:: selects tests
	$(BIN)/python tools/cargo_test.py -p slidewise-tests -p slidewise-py --tests \
		--profile dev $(ARGS)
	$(BIN)/python tools/cargo_test.py -p slidewise-core -p slidewise-papers -p slidewise-py --doc \
		--profile dev $(ARGS)
	$(BIN)/python tools/cargo_test.py -p slidewise-core --lib $(ARGS)

test-package: $(if $(BUILT),,build-dev) ## test the Python package without Spark
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/spark $(ARGS)

KEYED  := tests/keyed
WINDOW := tests/window tests/table
test-package-keyed: $(if $(BUILT),,build-dev)
	$(BIN)/pytest $(KEYED) $(ARGS)

test-package-windows: $(if $(BUILT),,build-dev)
	$(BIN)/pytest $(WINDOW) $(ARGS)

test-package-others: $(if $(BUILT),,build-dev)
	$(BIN)/pytest $(addprefix --ignore ,$(KEYED) $(WINDOW) tests/spark) $(ARGS)

test-spark: $(if $(BUILT),,build-dev) ## test the Python package with Spark
	$(BIN)/pytest tests/spark $(ARGS)

test-matrix: build-dev ## test every algorithm with every aggregation; ARGS="-k sum"
	$(BIN)/pytest -n 2 --dist worksteal tests/aggregations/test_matrix.py $(ARGS)

# The tier to pass before a release; docs/contributing/tests.md says what each recipe proves.
NIGHTLY := test-release test-long test-matrix-long test-faults test-keyed-pairs test-one-number \
           test-queries test-threads test-streams test-crash-recovery test-cluster test-kafka \
           test-sinks test-oldest test-python-versions test-spark-versions test-miri \
           test-sanitizer fuzz soak soak-spark reports
test-nightly: ## test at length: long counts, kills, Kafka, Connect, a cluster, fuzz, Miri, versions
	@echo "seed $(SEED)"
	@for one in $(NIGHTLY); do \
		$(MAKE) --no-print-directory $$one || failed="$$failed $$one"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

test-release: dev ## test the package on the optimised build
	SLIDEWISE_DAMAGE=all SLIDEWISE_EVERY_CASE=1 \
		$(BIN)/pytest -n 2 --dist worksteal --ignore tests/spark $(ARGS)
	SLIDEWISE_EVERY_CASE=1 $(BIN)/pytest tests/spark $(ARGS)

# The number of fiba's scripts per kind of partial; other structures run a tenth of it.
SCRIPTS ?= 1000000
WINDOWS := oracle:: in_order:: reactive:: trees:: shared:: queries:: hybrids:: queue:: costs \
           auto:: deferred:: aggregations:: holistic:: numbered:: answers_are_those
test-long: dev-tools ## test scripts and costs of the core at length: SCRIPTS=1000000; WINDOWS=trees::
	@echo "$(SCRIPTS) scripts from seed $(SEED)"
	SLIDEWISE_SCRIPTS=$(SCRIPTS) SLIDEWISE_COSTS=all $(CARGO) test --profile long --locked \
		-p slidewise-tests --tests -- $(WINDOWS)

PAIRS ?= 10000
test-matrix-long: dev ## test every algorithm with every aggregation by PAIRS=10000 scripts each
	SLIDEWISE_SCRIPTS=$(PAIRS) $(BIN)/pytest -n 2 --dist worksteal --timeout 0 \
		tests/aggregations/test_matrix.py $(ARGS)

FAULTS ?= 300
test-faults: dev ## inject errors into user functions: FAULTS=300 scripts per algorithm, a million
	SLIDEWISE_FAULT_SCRIPTS=$(FAULTS) $(BIN)/pytest -n 2 --timeout 0 \
		tests/aggregations/test_custom_faults.py -q -k kth_call

ONE_NUMBER ?= 200
test-one-number: dev ## ask for the numbers of one Spec in every way: ONE_NUMBER=200 streams
	SLIDEWISE_ONE_NUMBER=$(ONE_NUMBER) $(BIN)/pytest -n 2 tests/spec/test_one_number.py -q

MINUTES ?= 10
test-keyed-pairs: dev ## test every pair of features of keyed streams: MINUTES=10 SEED=20260101
	PYTHONPATH=tests/helpers $(BIN)/python -m keyed_pairs --minutes $(MINUTES) --seed $(SEED)

QUERIES ?= 20000
test-queries: dev ## test queries of keyed windows: QUERIES=20000 scripts, a million queries
	SLIDEWISE_QUERY_SCRIPTS=$(QUERIES) $(BIN)/pytest -n 2 \
		--timeout 0 tests/keyed/test_query.py -q -k rolling_over_all_rows

THREADS ?= 2,4,8
test-threads: dev ## test threads that share a window: MINUTES=10 THREADS=2,4,8; ARGS="--parts window"
	$(BIN)/python tests/helpers/threads.py --minutes $(MINUTES) --threads $(THREADS) $(ARGS)

STREAMS ?= 100
STEPS   ?= 30
FIRST   ?= 0
test-streams: dev ## compare Spark streams with tables: STREAMS=100 of STEPS=30 batches; ARGS=--all
	$(BIN)/python tests/helpers/parity.py \
		--streams $(STREAMS) --steps $(STEPS) --first $(FIRST) $(ARGS)

DRIVERS ?= 5
WORKERS ?= 15
test-crash-recovery: dev ## kill Spark drivers and workers: DRIVERS=5 WORKERS=15 for each sink
	SLIDEWISE_DRIVER_KILLS=$(DRIVERS) SLIDEWISE_WORKER_KILLS=$(WORKERS) \
		$(BIN)/pytest tests/spark/test_kills.py -q -s

test-cluster: dev ## test Spark with two executors that get slidewise in an archive, and Connect
	$(BIN)/pytest -m nightly tests/spark/test_cluster.py tests/spark/test_connect.py -q

test-kafka: kafka ## test streams from Kafka to Kafka, by functions and by the command
	$(BIN)/pytest -m nightly tests/spark/test_kafka.py tests/spark/test_cli_stream.py -q

# The servers are packages of the system; tests of one that is missing are skipped.
test-sinks: dev ## test sinks of streams on PostgreSQL and Redis, and kill both sides
	$(BIN)/pytest -m nightly tests/spark/test_sinks.py -q $(ARGS)

test-spark-versions: dev ## test each supported PySpark in its own environment; ARGS="4.1.4"
	$(BIN)/python tests/helpers/versions.py $(ARGS)

PYTHONS ?= 3.11 3.12 3.13 3.14
test-python-versions: dev ## test the package on PYTHONS="3.11 3.12 3.13 3.14"
	@tools/test-python $(PYTHONS)

test-oldest: dev ## test the package with the oldest versions that pyproject.toml allows
	@tools/test-python --oldest 3.11

test-miri: rust ## run the core's tests under Miri, which needs a nightly Rust
	tools/miri

test-sanitizer: rust ## run readers beside a writer under ThreadSanitizer: MINUTES=10; needs a nightly Rust
	MINUTES=$(MINUTES) tools/sanitizer

fuzz: dev ## damage snapshots and Arrow data at random: MINUTES=10 SEED=20260101
	$(BIN)/python tests/helpers/fuzz.py --minutes $(MINUTES) --seed $(SEED) $(ARGS)

coverage: dev-tools ## report the lines of Rust and Python that `make test` runs, into coverage/
	tools/coverage

kafka: dev ## fetch Kafka and Spark's connector for it into .kafka, for the tests
	@$(BIN)/python tools/kafka.py

# A Rust other than that of rust-toolchain.toml has other lints, so its warnings are not errors.
PINNED := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
lint: $(if $(BUILT),,dev-tools) ## check formatting, types and clippy; count unsafe blocks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- \
		$$(cargo --version | grep -qF " $(PINNED) " && echo "-D warnings")
	@printf 'unsafe blocks, functions and impls in crates/: '
	@grep -rhE --include='*.rs' '^[^/]*\bunsafe (\{|fn|impl|trait|extern "C" \{)' crates | wc -l

bench: bench-core bench-rolling dev ## measure the core, Window and rolling; RECORD=prefix keeps the figures
	$(BIN)/python -m bench.python_window $(call record,window)
	$(BIN)/python -m bench.python_tables $(call record,tables)

BENCH_CORE := $(CARGO) bench --quiet --locked -p slidewise-papers --bench windows --
bench-core: dev-tools ## measure the Rust core; ARGS="i64 --log-n 18" selects cases
	$(BENCH_CORE) $(ARGS) $(call record,core)
	$(BENCH_CORE) $(ARGS) --rss $(call record,core-rss)

bench-rolling: dev-tools ## measure the kernels over tables; ARGS="sum --rows 1000000"
	$(CARGO) bench --quiet --locked -p slidewise-core --bench rolling -- $(ARGS)

# ONLY selects figures by their keys: fiba-11, or fiba for all of a paper. CPP counts only from
# the command line, because make sets a CPP itself.
SCALE ?= quick
experiments: dev-tools ## redraw the papers' figures, check claims: SCALE=paper ONLY=fiba-11 DATA=folder CPP=path
	MAKEFLAGS= $(BIN)/python -m bench.experiments --scale $(SCALE) --only "$(ONLY)" \
		$(if $(DATA),--data $(DATA)) $(if $(filter command,$(origin CPP)),--cpp $(CPP)) $(ARGS)

bench-latency: dev-tools ## measure and draw the latency of single calls; RECORD=prefix keeps both
	@mkdir -p target
	$(CARGO) bench --quiet --locked -p slidewise-papers --bench latency -- \
		$(ARGS) --json $(or $(if $(RECORD),$(abspath $(RECORD)).json),$(CURDIR)/target/latency.json)
	$(BIN)/python -m bench.latency $(or $(RECORD),target/latency).json

bench-native: dev ## measure aggregations by Numba and by Python, and sketches; RECORD=prefix
	$(BIN)/python -m bench.python_native $(ARGS) $(call record,native)

bench-keyed: dev ## measure keyed windows: ingest, answers, changes; ARGS="--only '1 k'", RECORD=prefix
	$(BIN)/python -m bench.keyed_ingest $(ARGS) $(call record,keyed)

bench-queries: dev ## measure queries of keyed windows; ARGS="--keys 100000 --entries 1000", RECORD=prefix
	$(BIN)/python -m bench.keyed_queries $(ARGS) $(call record,queries)

bench-memory: dev ## measure bytes per entry and key of keyed windows; ARGS="--only late", RECORD=prefix
	$(BIN)/python -m bench.keyed_memory $(ARGS) $(call record,memory)

bench-spark: dev ## compare batch on Spark with Spark's frames; ARGS="--filter slidewise", RECORD=prefix
	$(BIN)/python -m bench.spark_batch $(ARGS) $(call record,spark-batch)

bench-streams: dev ## compare streams on Spark with Spark's own; ARGS="--filter keys", RECORD=prefix
	$(BIN)/python -m bench.spark_stream $(ARGS) $(call record,spark-stream)

bench-rates: dev ## compare keyed streams with an operator that does nothing; ARGS="--turns 2", RECORD=prefix
	$(BIN)/python -m bench.spark_rates $(ARGS) $(call record,spark-rates)

reports: dev ## answer public bug reports of other libraries, with pandas, polars and DuckDB; ARGS="--out docs/reports.md"
	$(BIN)/python -m bench.reports $(ARGS)

bench-peers: dev ## compare tables with other libraries, write docs/speed.md; PEERS= an environment with them
	PYTHONPATH=$(CURDIR):$(CURDIR)/python $(or $(PEERS),$(VENV))/bin/python \
		-m bench.rolling_peers $(ARGS) --out docs $(call record,peers)

soak: dev ## run long and check that memory does not grow; ARGS="--native 1000000" for a short run
	$(BIN)/python -m bench.soak $(ARGS)

soak-spark: dev ## run a long stream on Spark with the same check; ARGS="--minutes 30"
	$(BIN)/python -m bench.spark_soak $(ARGS)

docs: dev ## write the pages and pictures that are generated from the code
	$(BIN)/python tools/aggregation_page.py
	$(BIN)/python tools/api_page.py
	$(BIN)/python tools/llms_page.py
	$(BIN)/python tools/window_pictures.py

# Needs no network once uv has fetched mkdocs-material.
site: docs ## build the pages into site/, and follow their links
	$(UV) run --isolated --no-project --with 'mkdocs-material>=9.6,<10' \
		python -m mkdocs build --strict --quiet --site-dir site
	$(BIN)/python tools/follow_links.py site

wheels: ## build the sdist and the Linux wheels (both libcs, both architectures) into dist/
	$(or $(PYTHON),python3) tools/wheels.py $(ARGS)

format: dev-tools ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(CARGO) fmt --all

lock: $(UV) ## update the lock files to the newest versions; ARGS="--upgrade-package pyarrow"
	$(UV) lock --default-index https://pypi.org/simple $(or $(ARGS),--upgrade)
	$(CARGO) update

clean: ## remove all build products
	rm -rf $(VENV) .uv .kafka .spark-versions .python-versions target $(OUT) coverage dist site
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/slidewise/_core*.so
	find bench python tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# Installs the tools without slidewise, for recipes that do not need it.
dev-tools: rust $(UV)
	@$(SYNC) --tools --all-extras

# `cargo` makes rustup install the toolchain of rust-toolchain.toml. If rustup's automatic
# installation is off, the second command does.
rust: $(FETCHED)
	@cargo --version >/dev/null 2>&1 || rustup toolchain install

$(CACHE)/cargo/bin/cargo: $(UV)
	@cd / && $(UV) run --isolated --no-project --with puccinialin \
		python -m puccinialin --location $(CACHE) >/dev/null \
		|| { echo "Install Rust (https://rustup.rs), then run make again."; exit 1; }

$(CURDIR)/.uv/bin/uv:
	@$(PYTHON) -m venv .uv
	@.uv/bin/pip install --quiet 'uv>=0.9,<1'
