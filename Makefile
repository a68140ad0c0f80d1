PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -m 'not processes'
MODEL_TESTS := $(addprefix tests/,checkpoints export layers models)
TEXT_TESTS := $(addprefix tests/,preprocessing zh)
export TEXT

.PHONY: demo test test-peers lint benchmark benchmark-convert \
	benchmark-pretrain-data clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

# In several runs, so that none takes 4 GB: TensorFlow keeps some of what each test
# used as long as its process lives, and some tests start other processes.
test: $(VENV)/.installed-test
	$(PYTEST) -n 3 $(MODEL_TESTS)
	$(PYTEST) -n 3 $(TEXT_TESTS)
	$(PYTEST) -n 2 $(addprefix --ignore=,$(MODEL_TESTS) $(TEXT_TESTS))
	$(BIN)/python -m pytest -m processes

test-peers: $(VENV)/.installed-peers
	$(BIN)/python -m pytest -n 2 -m peers

lint: $(VENV)/.installed-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

benchmark: $(VENV)/.installed
	$(BIN)/python benchmarks/classify.py

benchmark-convert: $(VENV)/.installed
	$(BIN)/python benchmarks/convert.py

benchmark-pretrain-data: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf,fast]'
	$(BIN)/python benchmarks/pretrain_data.py '$(TEXTS)'

clean:
	rm -rf $(VENV) demo_output

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python setup.py
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf,test]'
	touch $@

$(VENV)/.installed-peers: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf,test,peers]'
	touch $@
