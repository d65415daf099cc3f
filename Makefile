# Every target does its own set-up; the first run takes some minutes, later ones none.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:
.NOTPARALLEL:

BIN := .venv/bin
READY := .venv/.ready

# A user's own packages must not stand in for the pinned ones.
export PYTHONNOUSERSITE := 1

.PHONY: help demo test test-slow lint format bench setup java hooks constraints clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
		printf '%-20s %s\n' "$$target" "$$text"; done

demo: setup ## make a year of weather, store it, move windows over it on Spark, draw a map
	$(BIN)/windrow demo

test: lint ## lint, then every test that is not slow; what fails is tried once more, alone
	$(BIN)/pytest -m "not slow" --numprocesses 2 --dist loadfile --no-loadscope-reorder || { \
		echo; echo "Once more, alone. What passes now depends on the machine's load: mend it all the same."; \
		$(BIN)/pytest -m "not slow" --last-failed --last-failed-no-failures none; }

test-slow: setup ## the slow tests alone, with real samples, astropy and a PostgreSQL server where they can be installed
	@$(BIN)/python -m pip install --quiet --no-build-isolation --constraint constraints.txt --editable '.[peers,samples]' || \
		echo "Tests of real stars, storms and places are skipped: their packages cannot be installed."
	@command -v initdb >/dev/null || test -d /usr/lib/postgresql || scripts/apt-install.sh postgresql || true
	$(BIN)/pytest -m slow

lint: setup ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## storage, windows, frames, joins, views, queries and placement against their peers, which are installed for it
	$(BIN)/python -m pip install --quiet --no-build-isolation --constraint constraints.txt --editable '.[exact,peers]'
	$(BIN)/windrow bench storage
	$(BIN)/windrow bench windows
	$(BIN)/windrow bench frames
	$(BIN)/windrow bench joins
	$(BIN)/windrow bench views
	$(BIN)/windrow bench queries
	$(BIN)/windrow bench placement

setup: java $(READY) ## the virtual environment, and Java if there is none

java:
	@scripts/setup-java.sh >/dev/null

$(READY): pyproject.toml constraints.txt scripts/setup-venv.sh
	scripts/setup-venv.sh
	@touch $@

hooks: $(READY) ## check each commit before it is made
	$(BIN)/pre-commit install

constraints: ## move the pinned versions to the newest that pyproject.toml allows
	scripts/update-constraints.sh

clean: ## remove what can be made again
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf src/*.egg-info warehouse spark-warehouse
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
