# Needs Python 3.11 and make; everything else comes, pinned, from requirements/dev.txt into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
BUILD := build
NEWEST ?= $(shell for p in python3.13 python3.12 $(PYTHON); do $$p -c '' >/dev/null 2>&1 && echo $$p && break; done)

# A stamp is named after the contents of what it was made from, so that a changed pin is installed and a touched file is not.
DEPENDENCIES := .venv/dependencies-$(shell cksum < requirements/dev.txt | tr -dc 0-9)
PACKAGE := .venv/package-$(shell cksum < pyproject.toml | tr -dc 0-9)

.PHONY: setup demo test test-spark check docs bench bench-spark format lock clean

setup: $(PACKAGE)

$(DEPENDENCIES):
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

$(PACKAGE): $(DEPENDENCIES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

demo: $(PACKAGE)
	mkdir -p $(BUILD)
	$(BIN)/python examples/breast_cancer.py $(BUILD)
	$(BIN)/opinionpool experts $(BUILD)/breast_cancer.csv --format table
	$(BIN)/opinionpool pool $(BUILD)/breast_cancer.csv --format table | head -n 20
	$(BIN)/opinionpool pool $(BUILD)/breast_cancer.csv --format csv --output $(BUILD)/pooled.csv 2> $(BUILD)/pooled.txt
	$(BIN)/python examples/breast_cancer_scores.py $(BUILD)

# The matrices are small: threads of linear algebra that wait for each other take minutes on a busy machine, and tests
# side by side do not. What is compiled once is kept, also where the environment forbids it: tests start processes.
WORKERS ?= auto
test: $(PACKAGE)
	OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

# The tests on Spark, in an environment of their own; they need Java 17. Kept as the others are, by what it was made from.
SPARK := $(BUILD)/spark
SPARK_MADE := $(SPARK)/made-$(shell cat requirements/spark.txt pyproject.toml | cksum | tr -dc 0-9)

$(SPARK_MADE):
	$(PYTHON) -m venv --clear $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/spark.txt
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

test-spark: $(SPARK_MADE)
	OPENBLAS_NUM_THREADS=1 $(SPARK)/bin/python -m pytest -p no:cacheprovider tests/spark

bench-spark: $(SPARK_MADE)
	OPENBLAS_NUM_THREADS=1 $(SPARK)/bin/python benchmarks/spark.py

# The suite with the oldest releases that are allowed, with the newest there are, and the main job with the wheel in an
# environment that has nothing else. Each makes its own environment; the gate does not wait for them.
# Older tools say the same in other words: layers, documentation, the outputs that pages show.
NOT_WITH_OLD := --ignore=tests/test_layers.py --ignore=tests/test_site.py --ignore=tests/test_readme.py
test-lowest:
	$(PYTHON) -m venv --clear $(BUILD)/lowest
	$(BUILD)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lowest.txt
	$(BUILD)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	OPENBLAS_NUM_THREADS=1 $(BUILD)/lowest/bin/python -m pytest -p no:cacheprovider $(NOT_WITH_OLD)

test-newest:
	$(NEWEST) -m venv --clear $(BUILD)/newest
	$(BUILD)/newest/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.in
	$(BUILD)/newest/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[paper]'
	OPENBLAS_NUM_THREADS=1 $(BUILD)/newest/bin/python -m pytest -p no:cacheprovider

test-wheel: $(PACKAGE)
	rm -rf $(BUILD)/wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir $(BUILD)/wheel
	$(PYTHON) -m venv $(BUILD)/wheel/alone
	cd $(BUILD)/wheel && alone/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls *.whl)"
	cd $(BUILD)/wheel && alone/bin/python -I ../../tests/wheel.py
	cd $(BUILD)/wheel && alone/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls *.whl)[paper]"
	cd $(BUILD)/wheel && alone/bin/python -I ../../tests/wheel.py paper

# Some minutes of random panels, wrong arguments, interrupts, kills and damage, and the properties of the tests on examples
# that are new each time; what is found becomes an explicit example. fuzz/readers.py says how to fuzz what is read.
fuzz: $(PACKAGE)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python fuzz/panels.py --seconds 300
	OPENBLAS_NUM_THREADS=1 $(BIN)/python fuzz/calls.py --seconds 120
	OPENBLAS_NUM_THREADS=1 $(BIN)/python fuzz/states.py --seconds 180
	HYPOTHESIS_PROFILE=random OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) -m hypothesis tests

check: $(PACKAGE)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -f tests/test_readme.py ]; then $(BIN)/python -m pytest --quiet tests/test_readme.py; fi
	$(MAKE) --no-print-directory docs

# All pages anew each time: a page that is not read again has no warnings.
docs: $(PACKAGE)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx --builder html --fresh-env --quiet --fail-on-warning --keep-going \
		--doctree-dir $(BUILD)/doctrees docs $(BUILD)/docs

bench: $(PACKAGE)
	$(BIN)/python benchmarks/run.py

format: $(PACKAGE)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pins the newest releases that pyproject.toml and requirements/dev.in allow, whatever this machine's pip is set up to
# prefer; no address is written.
lock: $(PACKAGE)
	env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
		--upgrade --extra plot --extra page --extra paper --generate-hashes --allow-unsafe --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file requirements/dev.txt pyproject.toml requirements/dev.in
	env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
		--upgrade --generate-hashes --allow-unsafe --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file requirements/lowest.txt requirements/lowest.in
	env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
		--upgrade --extra spark --generate-hashes --allow-unsafe --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file requirements/spark.txt pyproject.toml requirements/spark.in

clean:
	rm -rf .venv $(BUILD) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
