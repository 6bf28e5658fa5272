# `make` lists what there is. Needed: Python 3.11 or later; for Apache Kafka also Java 17 and Maven.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
JARS := deploy/kafka/lib
REGISTRY := deploy/registry/lib
CORE = hatch_build.py $(shell find explainers/attributary_explainers/core -name '*.py' -o -name '*.pxd')
# A file's tests in one process, files in the order of tests/conftest.py: integration tests first. Three processes on
# two cores, because those mostly wait; with more, workers that compete for the cores miss what tests wait for.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder --durations=40 --durations-min=5
# Python keeps what it compiles, also where a container's environment tells it not to: each of the three processes would
# compile all files of tests anew, and each command that they start our packages.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv kafka registry kafka-or-warn registry-or-warn core classes demo test test-all proofs lint format types layers elec2 papers calibration change speed reference chaos hostile record scale memory contracts house image-check clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: .venv/.installed ## Create .venv with the package, the demo's broker and the development tools

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed: make venv PYTHON=python3.12" >&2; exit 1; }
	@echo "making .venv, a virtual environment of this folder"
	@$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	@echo "installing Attributary, its demonstration and the development tools: some 155 packages, 1.2 GB on disk"
	@# Older versions of pip do not know --group.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python deploy/install.py --group dev --editable '.[demo]'
	@touch $@

# What a user installs, without development tools; an environment that has these has that too. Installing compiles the
# core in place: whoever fetches newer sources must not run what was compiled from older ones.
.venv/.demo: pyproject.toml $(CORE) | .venv/bin/python
	@echo "installing Attributary and its demonstration, once: some 65 packages, 80 MB to fetch, 360 MB on disk"
	@$(BIN)/python deploy/install.py --editable '.[demo]'
	@touch $@

kafka: $(JARS)/.complete ## Fetch the jars of Apache Kafka (needs Java 17 and Maven)

$(JARS)/.complete: deploy/kafka/pom.xml
	@for tool in java mvn; do command -v $$tool >/dev/null \
	  || { echo "Apache Kafka needs $$tool, which is not installed: install Java 17 and Maven" >&2; exit 1; }; done
	rm -rf $(JARS)
	mvn --quiet --batch-mode --no-transfer-progress --file $< dependency:copy-dependencies
	@touch $@

registry: $(REGISTRY)/.complete ## Fetch Apicurio Registry, a schema registry for tests (needs Java 17 and Maven)

$(REGISTRY)/.complete: deploy/registry/pom.xml
	@for tool in java mvn; do command -v $$tool >/dev/null \
	  || { echo "Apicurio Registry needs $$tool, which is not installed: install Java 17 and Maven" >&2; exit 1; }; done
	rm -rf $(REGISTRY)
	mvn --quiet --batch-mode --no-transfer-progress --file $< dependency:unpack
	@touch $@

# Without Kafka its tests are skipped, and said to be; under CI that would hide what CI is for.
kafka-or-warn:
	@[ -n "$$ATTRIBUTARY_KAFKA_LIB" ] || $(MAKE) --no-print-directory kafka || { [ -z "$$CI" ] \
	  && echo "warning: no Apache Kafka here, for the reason above; the tests that need it are skipped" >&2; }

registry-or-warn:
	@$(MAKE) --no-print-directory registry || { [ -z "$$CI" ] \
	  && echo "warning: no schema registry here, for the reason above; the tests that need it are skipped" >&2; }

demo: $(if $(wildcard .venv/.installed),core,.venv/.demo) ## Show a live dashboard on a stream that drifts: make demo ARGS="--broker kafka"
	@exec $(BIN)/attributary demo $(ARGS)

test: venv kafka-or-warn core lint types layers classes ## Run the checks and the tests of everyday: make test ARGS="tests/explainers -k sage"
	$(BIN)/pytest $(PYTEST_ARGS) -m "not long" $(ARGS)

test-all: venv kafka-or-warn registry-or-warn core lint types layers classes ## Run the checks and all tests but `proofs`, as CI does; what was skipped stands in the last lines
	$(BIN)/python -m pytest -p tests.plain_core $(PYTEST_ARGS) -m "not long" tests/explainers --ignore tests/explainers/core/test_build.py
	$(BIN)/pytest $(PYTEST_ARGS) -m "not proof" $(ARGS)

proofs: venv kafka registry core classes ## Run the proofs that take minutes each, before a release: chaos in short, attacks, the pages of the docs
	$(BIN)/pytest $(PYTEST_ARGS) -m proof $(ARGS)

core: venv ## Compile what has changed of the core, in place; without a compiler it runs as plain Python
	@$(BIN)/python hatch_build.py

classes: venv kafka-or-warn ## Store the classes of Apache Kafka as Java has them in memory, once: brokers start with half of the work
	@$(BIN)/python -m support.processes.java_classes

lint: venv ## Check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: venv ## Format the code and mend what can be mended by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: venv ## Check the types
	$(BIN)/mypy

layers: venv ## Check which package may import which
	$(BIN)/lint-imports

elec2: core ## Run the main benchmark, on Elec2: make elec2 ARGS=...
	$(BIN)/python -m benchmarks.main_job $(ARGS)

papers: core ## Compare with the papers' tables and figures: make papers ARGS="--full"
	$(BIN)/python -m benchmarks.papers $(ARGS)

calibration: core ## Judge intervals, bias and curves by exact values: make calibration ARGS="--quick"
	$(BIN)/python -m benchmarks.calibration $(ARGS)

change: core ## Measure how often and how late changes are found: make change ARGS="--full"; what is told of them: ARGS=--told; of a loss: ARGS=--harm
	$(BIN)/python -m benchmarks.change $(ARGS)

speed: core ## Measure what explaining costs: make speed ARGS="--full"; beside iXAI where `make reference` was run
	$(BIN)/python -m benchmarks.speed $(ARGS)

reference: venv ## Install iXAI, confluent-kafka and others, which speed, batch and scale compare with
	$(BIN)/python -m pip install --quiet --group benchmark

chaos: core classes ## Kill workers and brokers, and compare with an undisturbed run: make chaos ARGS="--short"
	$(BIN)/python -m benchmarks.chaos $(ARGS)

hostile: core classes ## Attack workers as a security team would, and print what each attack does: make hostile ARGS="--list"
	$(BIN)/python -m benchmarks.hostile $(ARGS)

record: core ## Measure what a record costs a worker beside its model: make record ARGS="--beside CHECKOUT --cases learn pfi10"
	$(BIN)/python -m benchmarks.record $(ARGS)

scale: core kafka-or-warn ## Measure what a record costs, beside hand-written loops: make scale ARGS="--quick"; of a model's state: ARGS=state
	$(BIN)/python -m benchmarks.scale $(ARGS)

memory: core kafka-or-warn ## Measure what the memory of a worker is
	$(BIN)/python -m benchmarks.memory $(ARGS)

house: venv ## Make mistakes on purpose, or count what an explanation passes: make house ARGS="mutate --only trees.py"
	$(BIN)/python -m benchmarks.house $(ARGS)

contracts: venv ## Write docs/contracts: JSON Schemas of what is on the topics, and the AsyncAPI document
	@mkdir -p build
	@$(BIN)/attributary config example > build/example.yaml
	$(BIN)/attributary contracts export --config build/example.yaml --out docs/contracts

image-check: venv ## Build what the image holds, without Docker, and run it without rights
	PYTHON=$(CURDIR)/$(BIN)/python deploy/image/check.sh

clean: ## Remove all that the targets above have made
	rm -rf .venv $(JARS) $(REGISTRY) deploy/kafka/target build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find agents topics explainers support tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	find explainers -name '*.so' -delete
