# Everything CI does is a target here. `make test` needs Go; with a C compiler
# the race detector runs too.
GO     ?= go
TOOL    = $(GO) tool -modfile=tools/go.mod
RACE    = $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
FUZZ   ?= 300x

.PHONY: test unit race lint fuzz schema vuln bench bench-peers update dist debian page-assets browser fleet-lab

test: lint unit fuzz

# All of it without the race detector, then with it what is not plain computing: the packages left out start no goroutine
# and take minutes under it. The command itself takes as long again to build that way: make race. lint has vetted all.
PLAIN   = /(audit|calibrate|campaign|cluster|coll|doctor|hardware|health|launch|msccl|nccl|pairs|pipeline|predict|report|result|result/diff|schedule|sim|step|traffic|truth|tuner|unit|workload|input|input/[a-z0-9]*|input/internal/[a-z]*|cmd/busbar|internal/(corpus|counter|fair|keywords|lines|reduce|rules|svg|switchtree|texttab|yamldoc))$$
unit:
	$(GO) test -vet=off ./...
	$(if $(RACE),$(GO) test -vet=off $(RACE) -short $$($(GO) list ./... | grep -vE '$(PLAIN)'),@echo "no C compiler: the race detector is left out")

# The command with the race detector, a few minutes.
race:
	$(GO) test -race -short ./cmd/busbar ./internal/reduce

lint:
	$(GO) vet ./...
	@bad=$$($(TOOL) gofumpt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "not gofumpt-formatted: $$bad"; exit 1; }
	$(TOOL) staticcheck ./...

# Every fuzz target, briefly, but for those whose packages link a NATS server, which takes minutes to build for fuzzing; their
# seeds run with the tests, and FUZZSKIP= takes them in.
FUZZSKIP ?= ^busbar/(cmd/busbar|fleet/agent|fleet/hub)$$
fuzz:
	@$(GO) run ./internal/fuzzall -time $(FUZZ) -skip '$(FUZZSKIP)'

# The manifests of plan --emit against the types of Kubernetes and JobSet, a module of its own: the first time it
# fetches them, so it is no part of test.
schema:
	cd launch/schema && $(GO) test ./...

# Needs the vulnerability database on the network, so it is no part of test.
vuln:
	$(TOOL) govulncheck ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# busbar beside Gloo, Open MPI and MPICH on this machine, about ten minutes; as root on Debian it
# brings them. PEERS="-short" is a quick look; see go run ./internal/peers -h.
bench-peers:
	$(GO) run ./internal/peers -o docs/peers.md $(PEERS)

# Golden files, the manual's outputs and the list of linked modules.
update:
	$(GO) test ./doctor ./health ./launch ./msccl ./report ./cmd/busbar ./internal/rules -update

# What the page has of others, at versions that a test holds against their checksums. Needs npm.
UPLOT  = 1.6.32
AXE    = 4.14.0
page-assets:
	@dir=$$(mktemp -d) && (cd $$dir && npm pack --silent uplot@$(UPLOT) && tar xzf uplot-$(UPLOT).tgz) && \
	  cp $$dir/package/dist/uPlot.esm.js web/page/vendor/uplot/uPlot.js && cp $$dir/package/dist/uPlot.min.css $$dir/package/LICENSE web/page/vendor/uplot/ && rm -r $$dir
	cd web/page/vendor && sha256sum -c SHA256SUMS

# Every view in Chromium, a module of its own; pictures of them go to browsertests/shots. The first time it
# fetches axe-core, which looks for what keeps people out, with npm.
browser: browsertests/.axe/axe.min.js
	cd browsertests && $(GO) test -v -shots shots ./...

browsertests/.axe/axe.min.js:
	@mkdir -p $(@D) && dir=$$(mktemp -d) && (cd $$dir && npm pack --silent axe-core@$(AXE) && tar xzf axe-core-$(AXE).tgz) && \
	  echo "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878  $$dir/package/axe.min.js" | sha256sum -c --quiet && cp $$dir/package/axe.min.js $@ && rm -r $$dir

dist:
	@mkdir -p dist
	@for t in linux/amd64 linux/arm64 darwin/arm64; do \
	  CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -trimpath -ldflags='-s -w' -o dist/busbar-$${t%/*}-$${t#*/} ./cmd/busbar || exit 1; done
	@cd dist && sha256sum busbar-* > SHA256SUMS && cat SHA256SUMS

# The real tools that some tests run against (as root, on Debian). Without them
# those tests skip and say so.
debian:
	printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends hwloc ibsim-utils infiniband-diags opensm slurm-wlm munge openmpi-bin mpich iproute2; s=$$?; rm -f /usr/sbin/policy-rc.d; exit $$s

# A fleet of eight nodes in the lab, as root: fifty healthy sweeps without an alarm, then a NIC at half its rate
# found within two. About ten minutes on a quiet machine.
fleet-lab:
	BUSBAR_FLEET_NODES=8 BUSBAR_FLEET_SWEEPS=50 $(GO) test ./cmd/busbar -run TestFleetLab -count 1 -timeout 60m -v
