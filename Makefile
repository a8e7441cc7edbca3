# What you need: Go, make and git. `make test` also needs npm and tmux, and
# says so (or installs what it can).

GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X switchboard/internal/cli.Version=$(VERSION)
NODE := e2e/npm/node_modules
NODE_BIN = $(CURDIR)/$(NODE)/node-linux-$(shell uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/bin

.PHONY: build install test check demo bench soak fuzz setup clean

build: ## bin/switchboard
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/switchboard ./cmd/switchboard

install: build ## the program onto PATH, the extension into Pi
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags '$(LDFLAGS)' ./cmd/switchboard
	"$$($(GO) env GOBIN | grep . || echo "$$($(GO) env GOPATH)/bin")"/switchboard pi install

demo: ## sessions talk and don't overwrite each other, without Pi
	$(GO) run ./cmd/switchboard demo

setup: ## the pinned Node and Pi for the end-to-end tests
	@e2e/setup.sh

# End to end one package at a time, and nothing is compiled beside: they run many
# real processes, and look at when what happens.
test: setup ## everything, with the race detector, on the real Pi
	$(GO) build -race -ldflags '$(LDFLAGS)' -o bin/race/switchboard ./cmd/switchboard
	$(GO) test -race $$($(GO) list ./... | grep -v /e2e/)
	SWITCHBOARD_E2E_BIN=$(CURDIR)/bin/race/switchboard $(GO) test -race -p 1 -timeout 15m ./e2e/...

check: setup ## formatting, vet on three systems, staticcheck, types, tidiness
	@cd tools && test -z "$$($(GO) tool gofumpt -l ../cmd ../internal ../extension ../e2e/model ../e2e/rig ../e2e/firstlight ../e2e/beacon ../e2e/partyline ../e2e/team ../e2e/overwrite ../e2e/screens ../bench | tee /dev/stderr)"
	$(GO) vet ./...
	cd tools && $(GO) build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck ./...
	@for os in darwin windows; do echo "build and vet for $$os"; \
		GOOS=$$os CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/switchboard && GOOS=$$os CGO_ENABLED=0 $(GO) vet ./internal/... ./cmd/... ./extension || exit 1; done
	PATH="$(NODE_BIN):$$PATH" $(NODE)/.bin/tsc -p extension
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff

bench: setup ## each figure beside the machine's floor
	$(GO) run ./bench

soak: setup ## the long forms of the tests
	$(GO) build -race -o bin/race/switchboard ./cmd/switchboard
	SOAK=50 SWITCHBOARD_E2E_BIN=$(CURDIR)/bin/race/switchboard $(GO) test -race -count=1 -timeout 60m -v -run 'Kills|Random|Soak' ./e2e/...

fuzz: ## each fuzz target for a while
	@for pkg in $$($(GO) list ./internal/...); do for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
		echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $${FUZZTIME:-10s} $$pkg || exit 1; done; done

clean:
	rm -rf bin $(NODE)
