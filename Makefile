# Everything CI does is a target here. `make test` needs Go alone.
GO     ?= go
TOOL    = $(GO) tool -modfile=tools/go.mod
RACE    = $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
FUZZ   ?= 100x
# Compilers, linkers and lint take a fifth less time with more garbage, up to 2 GB of it. Tests run as ever.
FASTER  = GOGC=400

.PHONY: attack format kernels fill test test-long race lint fuzz schema vuln bench bench-peers fit update dist site grafana debian page-assets browser test-quiet

# All tests, at one package more than there are processors because some only wait. CI runs lint, which vets all, before it. What
# fails beside others has failed: nothing is tried again, and nothing is drawn at random that another run would not draw.
JOBS    = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
RACES   = ./engine ./engine/bench/... ./engine/device ./engine/health ./engine/ranks ./input/nccllog ./internal/shm ./plan
# What takes longest goes first, so that nothing runs alone at the end.
LONGEST = ./cmd/busbar ./query ./fleet/bus ./engine ./doctor ./measure ./fleet/hub
UNIT    = $(FASTER) $(GO) test -vet=off -ldflags='-s -w' -timeout 60m -p $(JOBS)
test:
	$(UNIT) -exec 'env -u GOGC' $(LONGEST) ./...

# What make test does in part, done whole, about an hour: every number of ranks and preset, fits left out one by one, more
# random calls, more kills, all under the race detector, and fuzzing that is guided by what it reaches.
LONG   ?= 1m
test-long: lint
	BUSBAR_LONG=$(LONG) BUSBAR_KILLS=40 $(GO) test -vet=off -timeout 60m -p $(JOBS) ./...
	$(MAKE) race
	$(MAKE) fuzz FUZZ=20s
	cd tools/fleet && $(GO) test ./...
	cd tools/fit && BUSBAR_LONG=$(LONG) $(GO) test -timeout 60m ./...

# Briefly with the race detector what starts goroutines: some minutes, and no part of CI.
race:
	$(GO) test -race -short -timeout 60m ./cmd/busbar ./fleet ./fleet/agent ./fleet/bus ./fleet/client ./fleet/hub ./fleet/server ./internal/reduce ./lab ./measure ./web ./engine/device/native $(RACES)

# Go files of our own. Lines end at 120 bytes and gofumpt's rules hold, see tools/wrap; then go vet's checks and staticcheck's in
# one program, see tools/lint.
OURS    = $$(git ls-files '*.go' | grep -v -e testdata/ -e vendor/ | sed 's,^,../,')
lint:
	@bad=$$($(GO) run -C tools ./wrap -l $(OURS)) || { echo "not formatted, make format does it: $$bad"; exit 1; }
	$(FASTER) $(GO) run -C tools ./lint ./...

format:
	$(GO) run -C tools ./wrap $(OURS)

# Every fuzz target alone, before a change of a reader lands: some minutes. FUZZ=20s builds them anew to be guided by the code that
# they reach, and takes long.
fuzz:
	@$(GO) run ./internal/test/fuzzall -time $(FUZZ)

# The manifests of plan --emit and the Helm chart against the types of Kubernetes and JobSet, and what is told to CEL, NVSentinel,
# Prometheus, clients of OpenAPI and of MCP against their own libraries. Modules of their own: the first time they fetch them, so
# they are no part of test.
schema:
	cd launch/schema && $(GO) test ./...
	cd tools/contracts && $(GO) test ./...

# Needs the vulnerability database on the network, so it is no part of test.
vuln:
	$(TOOL) govulncheck ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# busbar beside Gloo, Open MPI and MPICH (make debian brings them) on a machine that does nothing else, about a quarter of an
# hour. PEERS="-short" is a quick look.
bench-peers:
	cd tools/peers && $(GO) run . -o ../../docs/peers.md $(PEERS)

# How far off predictions are of machines that the fit of the built-in parameters has not seen; FIT=-figures prints the parameters,
# and cd tools/fit && go run . -h lists the rest.
FIT    ?= -cross
fit:
	cd tools/fit && $(GO) run . $(FIT) $(abspath $(FILES))

# Golden files, the manual's outputs, pictures and links, the list of linked modules, and budget.txt where something shrank.
update:
	$(GO) test ./doctor ./fleet/health ./launch ./query ./report ./cmd/busbar ./internal/rules ./web -update

# The assembly of internal/reduce, by a module of its own.
kernels:
	cd tools/kernels && $(GO) run . && $(GO) test -count 1 .

# What the page has of others, at versions that a test holds against their checksums. Needs npm.
UPLOT  = 1.6.32
AXE    = 4.14.0
page-assets:
	@dir=$$(mktemp -d) && (cd $$dir && npm pack --silent uplot@$(UPLOT) && tar xzf uplot-$(UPLOT).tgz) && \
	  cp $$dir/package/dist/uPlot.esm.js web/page/vendor/uplot/uPlot.js && cp $$dir/package/dist/uPlot.min.css $$dir/package/LICENSE web/page/vendor/uplot/ && rm -r $$dir
	cd web/page/vendor && sha256sum -c SHA256SUMS

# Every view in Chromium, a module of its own; pictures of them go to web/browsertests/shots. The first time it
# fetches axe-core, which looks for what keeps people out, with npm.
browser: web/browsertests/.axe/axe.min.js
	cd web/browsertests && $(GO) test -v -timeout 30m -shots shots ./...

web/browsertests/.axe/axe.min.js:
	@mkdir -p $(@D) && dir=$$(mktemp -d) && (cd $$dir && npm pack --silent axe-core@$(AXE) && tar xzf axe-core-$(AXE).tgz) && \
	  echo "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878  $$dir/package/axe.min.js" | sha256sum -c --quiet && cp $$dir/package/axe.min.js $@ && rm -r $$dir

# Everything of a release in dist/: archives with manual pages and completions, deb, rpm, container images, the Helm chart, bills
# of materials and checksums. The version is that of the tag. Then it is tried: as root, packages are installed and removed in
# an empty root, and the image runs. Modules of their own, which are fetched the first time, so neither is a part of test.
DIST   ?= dist
dist:
	cd tools/pack && $(GO) test ./dist && $(GO) run ./dist -root ../.. -o $(DIST) $(if $(TARGET),-only $(TARGET))
	$(if $(TARGET),,cd tools/pack && BUSBAR_DIST=$(abspath $(DIST)) $(GO) test -count 1 -run TestRelease -v ./dist)

# The documents as plain HTML with a search in site/. Every link is checked. BUSBAR names a built program, whose help is shown.
site:
	cd tools/pack && $(GO) test ./site && $(GO) run ./site -root ../.. -o site $(if $(BUSBAR),-busbar $(abspath $(BUSBAR)))

# The dashboard against the types of Grafana itself, from npm.
GRAFANA = 13.2.3
grafana:
	@dir=$$(mktemp -d) && cd $$dir && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --ignore-scripts @grafana/schema@$(GRAFANA) typescript@5.9 && \
	  node $(CURDIR)/tools/grafana/check.mjs $(CURDIR)/docs/grafana-busbar.json board.ts && \
	  npx tsc --noEmit --strict --skipLibCheck --moduleResolution bundler --module esnext --target es2022 board.ts && echo "the dashboard has the types of Grafana $(GRAFANA)" && rm -r $$dir

# The real tools that some tests run against (as root, on Debian). Without them
# those tests skip and say so.
debian:
	printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends hwloc ibsim-utils infiniband-diags opensm slurm-wlm munge openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev g++ iproute2 ansible-core; s=$$?; rm -f /usr/sbin/policy-rc.d; exit $$s

# What judges rates that it measures, as root on a machine that does nothing else, about half an hour: six faults of a lab named by
# doctor; a fleet of eight nodes, fifty healthy sweeps without an alarm and then a NIC at half its rate found within two; busbar check on
# eight nodes, fifty that blame nobody and six faults, each named at its nodes alone; jobs, placements and orders of racks in the lab; collectives and steps
# in labs beside their predictions. make test runs the same labs, and judges recorded measurements.
test-quiet:
	BUSBAR_QUIET=1 $(GO) test ./lab -run TestLabsBesidePredictions -count 1 -timeout 30m -v
	BUSBAR_QUIET=1 BUSBAR_CHECK_RUNS=50 $(GO) test ./cmd/busbar -run 'TestScripts/lab_doctor|TestFleetLab|TestCheckLab$$|TestJobsInLab|TestPlaceInLab|TestRacksInLab' -parallel 1 -count 1 -timeout 90m -v

# What takes longer than tests may, about an hour: a server of 2 GB of addresses under ATTACK hostile documents, by a read
# token and by a node's credentials, beside honest nodes and readers; a node in the wrong hands among 200 for ten minutes;
# a store that is damaged a hundred times. The short ones of all kinds run with make test-long.
ATTACK ?= 10000
attack:
	BUSBAR_ATTACK=$(ATTACK) $(GO) test ./cmd/busbar -run 'TestAttack$$' -count 1 -timeout 90m -v
	BUSBAR_DAMAGED=100 $(GO) test ./fleet/hub -run TestDamagedStores -count 1 -timeout 60m -v
	cd tools/fleet && $(GO) run ./soak -hostile

# How long a server takes to start with what a fleet says in weeks.
FILL   ?= /tmp/busbar-fill
fill:
	cd tools/fleet && $(GO) run ./fill -dir $(FILL) && $(GO) run ./fill -dir $(FILL) -time
