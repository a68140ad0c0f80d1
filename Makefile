PYTHON ?= python3
VENV := .venv
# With the TensorFlow of the newest released TensorFlow Serving.
SERVING := .venv-serving
OLDEST := .venv-oldest
NEXT := .venv-next
NEXT_UV = VIRTUAL_ENV=$(NEXT) $(NEXT)/bin/uv pip install --quiet
BIN := $(VENV)/bin
# A distribution of its own, which the other one requires.
LITE := ./albert_tf_lite
INSTALL := $(BIN)/python -m pip install --quiet --editable $(LITE) --editable
# glibc returns freed memory to the system: 130 MB less at the peak.
PYTEST_ENV := MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=131072 \
	MALLOC_ARENA_MAX=2
PYTEST := $(PYTEST_ENV) $(BIN)/python -m pytest -n 2 --dist worksteal
export TEXT
# Python compiles what is imported; pip would compile all of TensorFlow.
export PIP_COMPILE := 0
# Keep the bytecode: without it, each process that imports TensorFlow compiles it
# again, for as long as the import takes otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow test-peers test-nightly test-oldest test-next test-notext \
	test-released lint figures docs notebooks dist release-check benchmark \
	benchmark-convert benchmark-export benchmark-pretrain-data clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

# What a contributor runs: every promise of docs/contributing.
test: $(VENV)/.installed-test
	$(PYTEST) -m 'not slow and not nightly and not peers and not released'

# Minutes more, for continuous integration: kills, subprocesses, long trainings.
test-slow: $(VENV)/.installed-test
	$(PYTEST) -m slow

# Against PyTorch transformers and KerasHub.
test-peers: $(VENV)/.installed-peers
	$(PYTEST) -m peers

# Everything: Ray, several hosts, a second TensorFlow.
test-nightly: $(VENV)/.installed-nightly $(SERVING)/.installed
	ALBERT_TF_SERVING_PYTHON='$(CURDIR)/$(SERVING)/bin/python' $(PYTEST)

# The lower bounds of pyproject.toml.
test-oldest: $(OLDEST)/.installed
	$(PYTEST_ENV) $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal \
		-m 'not slow and not nightly and not peers and not released'

# Candidates of TensorFlow and development versions of Keras and KerasHub, of which not
# all are compatible with each other. NumPy 2.5 needs PYTHON=python3.12 or later.
test-next: $(NEXT)/.installed
	$(PYTEST_ENV) $(NEXT)/bin/python -m pytest -n 2 --dist worksteal \
		-m 'not slow and not nightly and not peers and not released'

# As on Windows, without tensorflow-text and fcntl. Skips tests marked `text_ops`.
test-notext: $(VENV)/.installed-test
	PYTHONPATH='$(CURDIR)/tests/helpers/without_text' PYTHONWARNDEFAULTENCODING=1 \
		$(PYTEST) -m 'not slow and not nightly and not peers and not released'

# Compare every release with what was published. Downloads gigabytes, or takes them from
# the folder ALBERT_TF_RELEASED.
test-released: $(VENV)/.installed-test
	ALBERT_TF_RELEASED='$(or $(ALBERT_TF_RELEASED),download)' $(PYTEST_ENV) $(BIN)/python -m pytest -m released -rs

lint: $(VENV)/.installed-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/python scripts/figures.py --check

# Write the figures of README, docs and cards from benchmarks/results, and the
# generated pages.
figures: $(VENV)/.installed
	$(BIN)/python scripts/figures.py

# A quarter of an hour; run nothing else meanwhile. ASSETS has the data sets.
benchmark: $(VENV)/.installed-peers
	$(BIN)/python -m benchmarks.speed.run_all $(if $(ASSETS),--assets '$(ASSETS)')

# The site, in site/. Warnings, such as broken links, are errors.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The wheel and the source distribution of both, in dist/, and what they contain, in
# sboms/. The same commit gives the same bytes.
dist: $(VENV)/.installed-release
	$(BIN)/python scripts/distributions.py
	$(BIN)/twine check --strict dist/*

# What is missing to publish the version. Installs TensorFlow once per Python.
release-check: $(VENV)/.installed-test $(VENV)/.installed-release
	$(BIN)/python scripts/release_check.py

# Execute the sources in notebooks/ again and store the outputs.
notebooks: $(VENV)/.installed
	$(INSTALL) '.[cli,notebooks]'
	$(BIN)/python scripts/notebooks.py

benchmark-convert: $(VENV)/.installed
	$(BIN)/python -m benchmarks.speed.convert

# VOCAB is a vocab.txt; OPTIONS are those of the script.
benchmark-export: $(VENV)/.installed
	$(INSTALL) '.[cli,hf,litert,onnx]'
	$(BIN)/python -m benchmarks.speed.export '$(VOCAB)' $(OPTIONS)

benchmark-pretrain-data: $(VENV)/.installed
	$(INSTALL) '.[cli,hf,fast]'
	$(BIN)/python -m benchmarks.speed.pretrain_data '$(TEXTS)'

clean:
	rm -rf $(VENV) $(SERVING) $(OLDEST) $(NEXT) build $(LITE)/build demo_output dist sboms site

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(INSTALL) '.[cli,hf]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) '.[test]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(INSTALL) '.[docs]'
	touch $@

$(VENV)/.installed-release: $(VENV)/.installed
	$(INSTALL) '.[release]'
	touch $@

$(VENV)/.installed-peers: $(VENV)/.installed-test
	$(INSTALL) '.[test,peers]'
	touch $@

$(VENV)/.installed-nightly: $(VENV)/.installed-peers
	$(INSTALL) '.[test,peers,ray,jax,notebooks,release]'
	touch $@

$(SERVING)/.installed:
	$(PYTHON) -m venv $(SERVING)
	$(SERVING)/bin/python -m pip install --quiet \
		'tensorflow==2.20.*' 'tensorflow-text==2.20.*'
	touch $@

$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	VIRTUAL_ENV=$(OLDEST) $(OLDEST)/bin/uv pip install --quiet \
		--resolution lowest-direct --editable $(LITE) --editable '.[test]'
	touch $@

# The tests of TensorFlow Text are skipped where it cannot be installed.
$(NEXT)/.installed: pyproject.toml tests/next_versions.txt
	$(PYTHON) -m venv $(NEXT)
	$(NEXT)/bin/python -m pip install --quiet uv
	$(NEXT_UV) --override tests/next_versions.txt --editable $(LITE) \
		--editable '.[test]' 'keras-nightly>=3.16.0.dev0' \
		'keras-hub-nightly>=0.33.0.dev0' 'keras-nlp-nightly>=0.33.0.dev0'
	$(NEXT_UV) --no-deps 'tensorflow-text>=2.22.0.dev0' \
		|| $(NEXT_UV) --no-deps 'tensorflow-text-nightly>=2.22.0.dev0' \
		|| echo 'Without tensorflow-text'
	touch $@
