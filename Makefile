# The front door: a thin layer over the CMake presets. `make help` lists what there is.
.DEFAULT_GOAL := release
.PHONY: release deps demo test bench test-gpu bench-gpu format format-check asan tsan fuzz clean help

release: ## build the program: build/release/trireme
	@tools/install_deps.sh --check build
	@tools/build.sh release

deps: ## install the Debian or Ubuntu packages that building and testing need
	@tools/install_deps.sh test

demo: ## train a small model on this project's own sources, in about two minutes
	@tools/install_deps.sh build
	@tools/build.sh release
	@tools/demo.sh

test: ## everything a change must pass: checks, tests, sanitizers, a short fuzz
	@tools/test.sh

bench: ## speed, as ratios to what this machine's BLAS does in the same run
	@tools/install_deps.sh build
	@tools/build.sh release
	@build/release/bench/trireme_bench

test-gpu: ## the CUDA backend against the oracle, on this machine's card
	@tools/install_deps.sh test-gpu
	@tools/build.sh gpu
	@ctest --preset gpu

bench-gpu: ## speed on the card, as ratios to a copy and a product of the same run
	@tools/install_deps.sh build
	@tools/build.sh gpu
	@build/gpu/bench/trireme_bench_cuda
	@build/gpu/bench/trireme_bench_cuda_attn causal 8192 8192 causal 32768 32768 causal 131072 131072 causal 65536 262144
	@for tokens in 65536 131072; do build/gpu/bench/trireme_bench_step bench/llama-8b-2-layers.json $$tokens || exit; done

format: ## format the sources
	@tools/format.sh

format-check: ## say which sources are not formatted
	@tools/format.sh --check

asan: ## build and test with the address and undefined-behaviour sanitizers
	@tools/install_deps.sh test
	@tools/build.sh asan
	@ctest --preset asan

tsan: ## build and test with the thread sanitizer, without OpenMP
	@tools/install_deps.sh test
	@tools/build.sh tsan
	@ctest --preset tsan

FUZZ_SECONDS ?= 60
fuzz: ## search every parser's inputs for FUZZ_SECONDS (60) each, under sanitizers
	@tools/install_deps.sh test
	@tools/build.sh fuzz
	@tools/fuzz.sh $(FUZZ_SECONDS)

clean: ## remove everything that was built
	@rm -rf build

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
