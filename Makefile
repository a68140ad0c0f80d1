PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export TEXT

.PHONY: demo test lint benchmark clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

benchmark: $(VENV)/.installed
	$(BIN)/python benchmarks/classify.py

clean:
	rm -rf $(VENV) demo_output

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python setup.py
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[cli,test]'
	touch $@
