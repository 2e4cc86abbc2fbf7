package lab

import (
	"encoding/json"
	"io"
)

// request is what a client asks of the holder.
type request struct {
	Do   string `json:"do"` // exec, end, status, port, fault, heal, down
	Node string `json:"node,omitempty"`
	// Args, Env and Dir are the program's; its standard streams come as descriptors.
	Path     string   `json:"path,omitempty"`
	Args     []string `json:"args,omitempty"`
	Env      []string `json:"env,omitempty"`
	Dir      string   `json:"dir,omitempty"`
	Terminal bool     `json:"terminal,omitempty"`
	Fault    Fault    `json:"fault,omitzero"`
	What     string   `json:"what,omitempty"`
}

// answer is what the holder says.
type answer struct {
	Error  string  `json:"error,omitempty"`
	Bad    bool    `json:"bad,omitempty"` // the request was wrong, not the machine
	Code   int     `json:"code,omitempty"`
	Port   int     `json:"port,omitempty"`
	Faults []Fault `json:"faults,omitempty"`
}

// maxMessage bounds what either side reads: an environment is the largest.
const maxMessage = 4 << 20

// receive reads a message. Who sends one waits for an answer, so that a decoder reads nothing of another ahead.
func receive(r io.Reader, v any) error {
	return json.NewDecoder(io.LimitReader(r, maxMessage)).Decode(v)
}

// send writes a message.
func send(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
