# Everything happens inside .venv; a second run installs nothing and needs no network.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DELETE_ON_ERROR:
.PHONY: demo test test-all docs fuzz check pictures bench peers peers-discrete test-peers clean help

help:
	@echo "make demo      discover the graph of the Sachs protein data: demo-out/ with a picture and a page"
	@echo "make test      the test suite"
	@echo "make test-all  the test suite with every optional dependency"
	@echo "make docs      the documentation as a site: build/docs/index.html"
	@echo "make pictures  the pictures of the documentation (with chromium, those of the report too)"
	@echo "make fuzz      random tables, files and parameters: N=10000 cases, SEED=0 (a new seed, printed, if not given)"
	@echo "make check     ruff and mypy, and pip-audit where it is installed"
	@echo "make bench     the benchmarks (minutes; with the peers of make peers, hours)"
	@echo "make peers     other packages that experiments and benchmarks compare with, in .venv-peers"
	@echo "make peers-discrete  packages for networks of categories, in .venv-discrete"
	@echo "make test-peers  the tests of their adapters"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.demo

# torch first and pinned: the newest one may arrive with gigabytes for graphics cards.
$(VENV)/.all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,metrics,ci,sb3,cluster]" \
		CausalDisco sb3-contrib selenium
	@touch $@ $(VENV)/.dev $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/vec2dag discover sachs -o demo-out --plot --report
	@echo "look at demo-out/graph.png, and open demo-out/report.html in a browser: the graph beside the known one"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto

test-all: $(VENV)/.all
	$(BIN)/python -m pytest -q -n auto --run-slow

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

# Needs no network once installed. Warnings, links to nowhere among them, are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -a -W --keep-going -c docs -d build/doctrees . build/docs
	@echo "open build/docs/index.html in a browser"

N ?= 10000
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --n $(N) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if [ -x $(BIN)/pip-audit ]; then $(BIN)/pip-audit --skip-editable --progress-spinner off; \
	else echo "pip-audit is not installed in $(VENV): known faults of dependencies were not looked for"; fi

pictures: $(VENV)/.dev
	$(BIN)/python -m docs.pictures
	$(BIN)/python -m docs.screenshots

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.throughput
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.gp
	$(BIN)/python -m benchmarks.linear
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.knowledge
	$(BIN)/python -m benchmarks.missing
	$(BIN)/python -m benchmarks.posterior all
	$(BIN)/python -m benchmarks.bootstrap
	$(BIN)/python -m benchmarks.budgets
	$(BIN)/python -m benchmarks.streaming
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.discrete mixed

# An environment of their own: their requirements must not decide ours (lingam wants scipy < 1.14, rcd pandas < 3).
PEERS := .venv-peers
PEER_PACKAGES := causal-learn==0.1.4.8 dagma==1.1.1 flopsearch==0.3.0 gcastle==1.0.4 lingam==1.13.0 rcd==0.2.1
# What they stand on: numpy 2.2 is the last that scipy 1.13 takes, and later versions of scikit-learn fit the kernel of
# a Gaussian process where gcastle counts on a fixed one.
PEER_BASE := numpy==2.2.6 scipy==1.13.1 pandas==2.3.3 scikit-learn==1.7.2 networkx==3.6.1
peers: $(PEERS)/.ready

# torch first and pinned: left to dagma, the newest one arrives with gigabytes for graphics cards.
$(PEERS)/.ready: Makefile
	$(PYTHON) -m venv $(PEERS)
	@echo '*' > $(PEERS)/.gitignore
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check $(PEER_PACKAGES) $(PEER_BASE) pytest
	@touch $@

# pgmpy stands on a later pandas than the other peers.
DISCRETE := .venv-discrete
peers-discrete: $(DISCRETE)/.ready

$(DISCRETE)/.ready: Makefile
	$(PYTHON) -m venv $(DISCRETE)
	@echo '*' > $(DISCRETE)/.gitignore
	$(DISCRETE)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(DISCRETE)/bin/python -m pip install --quiet --disable-pip-version-check pgmpy==1.1.2 causal-learn==0.1.4.8
	@touch $@

test-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m pytest -q --run-slow tests/test_peers.py

clean:
	rm -rf $(VENV) $(PEERS) $(DISCRETE) demo-out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
