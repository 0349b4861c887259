# `make run` serves on 127.0.0.1:50051; `make test` passes every test. Each installs what is missing first.

CONFIGURATION ?= release
# Finds out which formats are on by default when libraries were installed or removed.
SWIFT_BUILD = deploy/swift.sh build -c $(CONFIGURATION) --product image-worker
WORKER = .build/$(CONFIGURATION)/image-worker

.PHONY: run test build-all unit-test c-test codec-test kernel-test example-test end-to-end-test soak-test soak \
        leaks spark-test fuzz build release setup format check-format generate check-generated lint breaking text docs bench \
        corpus compare bench-pair cost-gate figures completions dist sbom clean

# The port of ARGS, for the call that is printed.
PORT = $(or $(shell echo '$(ARGS)' | sed -nE 's/.*--port[= ]+([0-9]+).*/\1/p'),50051)

## Serve on 127.0.0.1:50051. Options: make run ARGS="--port 8080"
run: build
	@echo
	@echo "The program is $(WORKER). Try a call in another terminal; it writes small/photo-420.jpg:"
	@echo
	@echo "  cd $(CURDIR) && $(WORKER) batch Tests/TestSupport/Fixtures/photo-420.jpg \\"
	@echo "    --max-width 120 --out small --to 127.0.0.1:$(PORT)"
	@echo
	$(WORKER) serve $(ARGS)

## Build the worker.
build: setup
	$(SWIFT_BUILD)

# The tests need nearly every module of the worker. `--build-tests` would also compile protoc, which a dependency has in source.
build-all: setup
	$(SWIFT_BUILD:image-worker=image-workerPackageTests)
	$(SWIFT_BUILD)

## Pass every test: the decoders' against libjpeg-turbo and a minute of fuzzing, those of the package, packages that use its
## library, a minute of trouble, and those of a foreign client against the worker.
test: setup c-test fuzz unit-test example-test soak-test end-to-end-test

# At the same time, as each uses one core; the output of each is printed when it ends.
c-test: setup
	$(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=recurse) codec-test kernel-test

# Suites of what has kernels for several instruction sets, and those of what uses them.
KERNEL_TESTS = CPixelsTests|ImageKernelsTests|ImageCodecsTests
PIPELINE_TESTS = ImagePipelineTests
# Suites that measure time against a server or a client of their own, or wait for others: one test at a time, as many of them
# block the few threads that tests share.
SERVER_TESTS = WorkerOperationsTests
CLIENT_TESTS = ImageWorkerClientTests|ImageWorkerKitTests
TEST_BUILT = Tests/run_built.py -c $(CONFIGURATION)

# On a processor with AVX-512, those with kernels run once more as on one without.
unit-test: build-all
	$(TEST_BUILT) --no-parallel --filter '$(SERVER_TESTS)|$(CLIENT_TESTS)'
	$(TEST_BUILT) --skip '$(SERVER_TESTS)|$(CLIENT_TESTS)|$(KERNEL_TESTS)|$(PIPELINE_TESTS)'
	$(TEST_BUILT) --filter '$(KERNEL_TESTS)|$(PIPELINE_TESTS)'
	! grep -qs avx512f /proc/cpuinfo || IMAGE_WORKER_INSTRUCTION_SET=avx2 $(TEST_BUILT) --filter '$(KERNEL_TESTS)'

# The short form of what Tests/JPEGOracle/run.sh can do with a corpus.
JPEG_FIXTURES = Tests/TestSupport/Fixtures/*.jpg

codec-test: setup
	Tests/JPEGOracle/run.sh identity $(JPEG_FIXTURES)
	Tests/JPEGOracle/run.sh windows $(JPEG_FIXTURES)
	IMAGE_WORKER_INSTRUCTION_SET=avx2 Tests/JPEGOracle/run.sh windows $(JPEG_FIXTURES)
	IMAGE_WORKER_INSTRUCTION_SET=scalar Tests/JPEGOracle/run.sh windows $(JPEG_FIXTURES)
	Tests/JPEGOracle/run.sh fuzz 20000 1 $(JPEG_FIXTURES)
	IMAGE_WORKER_INSTRUCTION_SET=avx2 Tests/JPEGOracle/run.sh fuzz 10000 2 $(JPEG_FIXTURES)
	Tests/JPEGEncoder/run.sh 2000 1
	Tests/Palette/run.sh 1000 1

## Compare the kernels for vectors with the scalar ones, those for NEON in QEMU.
kernel-test: setup
	@deploy/setup.sh --neon || echo "The kernels for NEON are not tested where a compiler for AArch64 or QEMU is missing."
	Tests/Kernels/run.sh

## Build packages outside of this repository that use ImageWorkerKit, and make a thumbnail with each.
example-test: setup
	Tests/EndToEnd/python.sh Tests/Examples/run.py

## Run the Spark job on a local cluster. Not part of `make test`, as it needs Java and downloads 450 MB.
spark-test: build
	Tests/Spark/run.sh $(WORKER)

# Most faults mainly wait, so that several at the same time fit into a minute.
soak-test: build
	Tests/Soak/run.sh $(WORKER) --seconds 60 --at-once 4

# Of all faults together.
SOAK_SECONDS ?= 3600

## Make trouble for a worker for an hour, and print what each kind of trouble cost. Options: make soak SOAK_SECONDS=600
soak: build
	Tests/Soak/run.sh $(WORKER) --seconds $(SOAK_SECONDS) $(ARGS)

# The last of the tests, so that its closing line is the last line of `make test`.
end-to-end-test: build
	@deploy/setup.sh --browser || echo "Tests with Chromium, ImageMagick, QEMU and strace are skipped where these are missing."
	Tests/EndToEnd/run.sh $(WORKER)

## Count the instructions of small jobs, and fail where one takes 5 % more than its figure.
## Options: make cost-gate ARGS=--update
cost-gate: build
	@deploy/setup.sh --cost-gate
	$(SWIFT_BUILD:image-worker=CostGate)
	Tests/CostGate/gate.py .build/$(CONFIGURATION)/CostGate $(ARGS)

# Of each decoder: about a minute in all on two cores.
FUZZ_SECONDS ?= 6

## Fuzz every decoder under sanitizers. Options: make fuzz FUZZ_SECONDS=1800
fuzz: setup
	Tests/Fuzz/run.sh $(FUZZ_SECONDS)

## Install the system packages that are missing.
setup:
	@deploy/setup.sh

# Generated code is as its generators write it.
SWIFT_FILES = Package.swift $(shell git ls-files 'Sources/*.swift' 'Tests/*.swift' 'Examples/*.swift' | grep -v /Generated/)
C_FILES = $(shell git ls-files '*.c' '*.h')
# Of one version, as others break some lines elsewhere.
CLANG_FORMAT ?= clang-format-14

## Format the Swift and the C.
format: setup
	@swift format --in-place --parallel $(SWIFT_FILES)
	@$(CLANG_FORMAT) -i $(C_FILES)

## Fail where the Swift or the C is not formatted.
check-format: setup
	@swift format lint --strict --parallel $(SWIFT_FILES)
	@$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

## Regenerate the protobuf and gRPC code from Protos.
generate: setup
	Protos/generate.sh

check-generated: setup
	Protos/generate.sh --check

## Lint the wire contract.
lint: check-generated
	Protos/lint.sh

## Compare the wire contract with the one that the branch main has.
breaking: check-generated
	Protos/lint.sh --breaking

## Refresh the files that are made of texts in the sources: UserVisibleText.md and the page of all options.
text: setup
	UPDATE_USER_VISIBLE_TEXT=1 deploy/swift.sh test -c $(CONFIGURATION) --filter UserVisibleTextTests

DOCUMENTED = $(patsubst Sources/%/Documentation.docc,%,$(wildcard Sources/*/Documentation.docc))
ARCHIVE = .build/documentation.doccarchive

## Build the documentation of every module as a site that opens from the file system: .build/docs/index.html. A warning
## of DocC, or a dead link, fails.
docs: setup
	@mkdir -p $(ARCHIVE)
	IMAGE_WORKER_DOCS=1 deploy/swift.sh package --quiet --allow-writing-to-directory $(ARCHIVE) \
	  generate-documentation $(DOCUMENTED:%=--target %) --symbol-graph-minimum-access-level package \
	  --enable-experimental-combined-documentation --warnings-as-errors --output-path $(ARCHIVE)
	Documentation/render_pages.py $(ARCHIVE) .build/docs

## Compare with libvips and others. Options: make bench ARGS="--jobs T --images 12mp --rounds 2", ARGS=--help
bench: build
	@deploy/setup.sh --benchmarks
	Benchmarks/tables/run.sh $(WORKER) $(ARGS)

## Write the figures of Benchmarks/results/figures.json into the documents that quote them.
figures:
	Benchmarks/tables/figures.py --write

## Report the outcome for every image of the shared corpus; fail if one is unexpected.
## Options: make corpus ARGS="--only 09-tiff"
corpus: build
	Tests/EndToEnd/python.sh Benchmarks/tables/corpus.py $(WORKER) $(ARGS)

## Compare every result of the shared corpus with those of another worker: make compare OLD=path/to/image-worker
compare: build
	Tests/EndToEnd/python.sh Benchmarks/tables/compare_results.py $(OLD) $(WORKER) $(ARGS)

## Compare the CPU time of images with that of another worker: make bench-pair OLD=path/to/image-worker
bench-pair: build
	Tests/EndToEnd/python.sh Benchmarks/tables/compare_costs.py $(OLD) $(WORKER) $(ARGS)

## Look for leaked memory: 10,000 mixed images, then the report of LeakSanitizer. Options: make leaks ARGS="--images 100000"
leaks: build
	Tests/EndToEnd/python.sh Benchmarks/experiments/leaks.py $(WORKER) --images 10000 $(ARGS)

## Write completions for bash, zsh and fish to .build/completions.
completions: build
	@mkdir -p .build/completions
	@for shell in bash zsh fish; do \
	  $(WORKER) --generate-completion-script $$shell > .build/completions/image-worker.$$shell; done
	@echo "Completions are in .build/completions; for bash: source .build/completions/image-worker.bash"

## Pack a release for Debian without Swift: .build/dist/image-worker-VERSION-linux-ARCHITECTURE.tar.gz
dist: setup
	deploy/dist.sh

## Write what the worker is linked with to .build/sbom.cdx.json, in the format CycloneDX.
sbom: build
	deploy/sbom.py $(WORKER) > .build/sbom.cdx.json
	@echo "The bill of materials is in .build/sbom.cdx.json"

clean:
	swift package clean
