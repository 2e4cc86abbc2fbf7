package web

import (
	"context"
	"io"
)

// Job is one run of a command, with its streams.
type Job struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Folders are all that the run may read and write of the server's files,
	// besides what it reads of the machine itself.
	Folders []string
}

// Command is the program as a function of a job; it gives the exit code. It comes
// back when nothing of the job is left running, which may be after the end of the
// context.
type Command func(ctx context.Context, j Job) int

// Config is what a server is made of.
type Config struct {
	// Run answers the page's questions, confined to the folders of a job.
	Run Command
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
	// Note is told of faults of the server itself; nil for nobody.
	Note func(text string)
	// Version is what the page shows of the program.
	Version string
}
