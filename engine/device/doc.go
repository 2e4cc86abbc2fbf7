// Package device is how busbar works GPUs: the requests that the program busbar-gpu answers, and what asks them.
//
// A worker is one process of busbar-gpu with at most one GPU. It reads requests and writes answers, one JSON object a
// line, on its standard streams or on a connection, and ends when its requests end: whoever started it may die at any
// time, and nothing is left behind. docs/format/gpu.md describes the lines. The package links no C library;
// engine/device/native, which only busbar-gpu imports, loads those of the vendor at run time.
//
// The package is not promised: names may change between releases.
package device

import (
	"encoding/json"
	"fmt"
	"strings"

	"busbar.dev/coll"
)

// Do is what a request asks for.
type Do string

// What a worker can be asked.
const (
	Open       Do = "open"       // take a GPU and say what it is
	Key        Do = "key"        // make the key of a communicator
	Join       Do = "join"       // become a rank of a communicator
	Leave      Do = "leave"      // and no more
	Collective Do = "collective" // run and time a collective
	Pair       Do = "pair"       // send to a rank, receive from it, or both
	Memory     Do = "memory"     // rates of the GPU's own memory
	Copies     Do = "copies"     // rates between the host and the GPU
	Peer       Do = "peer"       // rate of copies to another GPU of the host
	Product    Do = "product"    // rate of a matrix product
	Health     Do = "health"     // what the driver says of all GPUs
	GPUs       Do = "gpus"       // how many GPUs there are
)

// Request is one line that a worker reads.
type Request struct {
	ID int `json:"id"`
	Do Do  `json:"do"`

	GPU   int    `json:"gpu,omitempty"` // as the driver counts those that are visible
	Other int    `json:"other,omitempty"`
	Key   string `json:"key,omitempty"` // of the communicator, as hexadecimal digits
	Rank  int    `json:"rank,omitempty"`
	Ranks int    `json:"ranks,omitempty"`

	Op      coll.Kind `json:"op,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	Dtype   string    `json:"dtype,omitempty"`
	Redop   string    `json:"redop,omitempty"`
	Root    int       `json:"root,omitempty"`
	InPlace bool      `json:"in_place,omitempty"`
	Check   bool      `json:"check,omitempty"`
	Warm    int       `json:"warm,omitempty"`
	Iters   int       `json:"iters,omitempty"`
	Room    int64     `json:"room,omitempty"` // bytes of the largest size of a sweep: calls of smaller ones walk through so much memory
	Send    *int      `json:"send,omitempty"` // the rank to send to
	Receive *int      `json:"receive,omitempty"`

	// A product is D (m×n) = A (m×k, rows of k) × B (n×k, rows of k, transposed), as the linear layers of frameworks
	// have it.
	M int `json:"m,omitempty"`
	N int `json:"n,omitempty"`
	K int `json:"k,omitempty"`
}

// Answer is one line that a worker writes. The first one, before any request, has the ID 0 and says who answers.
type Answer struct {
	ID      int      `json:"id"`
	Failure *Failure `json:"failure,omitempty"`

	Hello   *Hello   `json:"hello,omitempty"`
	Device  *Device  `json:"device,omitempty"`
	Key     string   `json:"key,omitempty"`
	Timing  *Timing  `json:"timing,omitempty"`
	Rates   []Rate   `json:"rates,omitempty"`
	Product *Result  `json:"product,omitempty"`
	Health  []State  `json:"health,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Count   int      `json:"count,omitempty"`
}

// Hello is who answers.
type Hello struct {
	Program string `json:"program"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
}

// Failure is why a request was not done. The worker goes on unless it says Fatal.
type Failure struct {
	Text    string   `json:"text"`
	Library string   `json:"library,omitempty"` // that could not be loaded
	Tried   []string `json:"tried,omitempty"`   // where it was looked for
	Call    string   `json:"call,omitempty"`    // of the library that failed
	Code    int      `json:"code,omitempty"`
}

func (f *Failure) Error() string {
	var b strings.Builder
	if f.Library != "" {
		fmt.Fprintf(&b, "%s could not be loaded: ", f.Library)
	}
	if f.Call != "" {
		fmt.Fprintf(&b, "%s: ", f.Call)
	}
	b.WriteString(f.Text)
	if len(f.Tried) > 0 {
		fmt.Fprintf(&b, " (tried %s)", strings.Join(f.Tried, ", "))
	}
	return b.String()
}

// Device is the GPU that a worker took.
type Device struct {
	Name    string `json:"name"`
	PCI     string `json:"pci"`
	UUID    string `json:"uuid"`
	Memory  int64  `json:"memory_bytes"`
	Free    int64  `json:"free_bytes"`
	Driver  string `json:"driver"` // the newest CUDA that the driver can do: 13.0
	NCCL    string `json:"nccl,omitempty"`
	Library string `json:"nccl_library,omitempty"` // the file
	Vendor  string `json:"vendor"`                 // nvidia or amd
}

// Timing is how long one operation took on one rank.
type Timing struct {
	Micros float64 `json:"us"`     // by the clock of the host, from the first call to the end of the last, as nccl-tests
	GPU    float64 `json:"gpu_us"` // by events around them in the stream
	Wrong  *int64  `json:"wrong,omitempty"`
}

// Rate is one measured rate.
type Rate struct {
	What  string  `json:"what"` // copy, write, to_gpu, from_gpu, both, peer, peer_both
	Bytes int64   `json:"bytes"`
	GBps  float64 `json:"GBps"`
	// Wrong elements of what was moved; nil where results were not checked.
	Wrong *int64 `json:"wrong,omitempty"`
}

// Result is how fast a product was, and what the GPU did meanwhile.
type Result struct {
	Micros float64  `json:"us"`
	TFLOPS float64  `json:"tflops"`
	Wrong  int      `json:"wrong"`   // of the elements that were computed again
	Tested int      `json:"checked"` // how many those are
	MHz    int      `json:"sm_mhz,omitempty"`
	Watts  float64  `json:"watts,omitempty"`
	Why    []string `json:"throttled,omitempty"` // reasons for lower clocks while it ran
	By     string   `json:"by,omitempty"`        // the library
}

// Line is a value as a line.
func Line(v any) []byte {
	data, _ := json.Marshal(v) // nothing here cannot be written
	return append(data, '\n')
}
