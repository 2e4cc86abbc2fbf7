package web

import (
	"context"

	"busbar.dev/cluster"
)

// Config is what a server is made of.
type Config struct {
	// Machine reads the machine itself, for questions that name no cluster; nil refuses them.
	Machine func(ctx context.Context) ([]*cluster.Fragment, error)
	// Tokens are who may ask.
	Tokens *Tokens
	// Data is the folder that uploads pass through.
	Data string
	// Events are what the page is told as it happens; nil for none.
	Events *Events
	// More are routes of others. Their paths must not be those of this package.
	More []Route
	// Hosts are names under which the server may be asked; with none, any. On
	// loopback a page elsewhere could have got its own name to mean this machine,
	// so that only names of loopback are taken there.
	Hosts []string
	// Secure says that the page is served over TLS.
	Secure bool
	// Memory is what the process may use, in bytes: questions are refused before more is needed. 0 is no bound.
	Memory int64
	// Note is told of faults of the server itself; nil for nobody.
	Note func(text string)
	// Version is what the page shows of the program.
	Version string
}
