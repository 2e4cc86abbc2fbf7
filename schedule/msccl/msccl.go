// Package msccl reads, proves and writes MSCCL algorithm files: a collective as a
// program for each GPU, made of thread blocks that each talk to one peer on one
// channel, made of steps. Microsoft's MSCCL reads these files, and RCCL did up to that of
// ROCm 7.12; NCCL itself does not.
//
// Read refuses what is no algorithm. Check tells whether the parts of one fit
// together (peers, channels, buffers, dependencies), and Limits whether the
// runtime would take it. Schedule makes it a schedule, so that its checker can prove
// it; Prove does all of this for every call that the file says it serves.
//
// Write goes the other way: it lowers a schedule to thread blocks, or refuses with the
// rank and lane that need more than the reader takes. What it writes is proven.
package msccl

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Limits on a file. The greatest in use has some thousands of steps.
const (
	maxFile  = 64 << 20
	maxGPUs  = 65536
	maxSteps = 4 << 20 // of all GPUs
	maxDepth = 16
)

// Algo is a file.
type Algo struct {
	Name          string
	Proto         string // LL, LL128 or Simple
	Coll          string // allreduce, allgather, reducescatter, alltoall, broadcast, reduce, custom
	Channels      int
	ChunksPerLoop int
	NGPUs         int
	InPlace       bool
	OutOfPlace    bool
	MinBytes      int64
	MaxBytes      int64 // 0 where the file names none
	GPUs          []GPU
	// Runtime is what is to run the file, which no file says; "" is MSCCL.
	Runtime Runtime
}

// Runtime is a library that runs algorithm files.
type Runtime string

// Runtimes. With protocol LL, a step that sends is done when all its threads have read their data in MSCCL (its kernels for NCCL
// 2.12 and its executor: sendWithBarrier), and not yet in RCCL (src/device/msccl_kernel_impl.h, RCCL 2.12 to 2.27).
const (
	MSCCL Runtime = "msccl"
	RCCL  Runtime = "rccl"
)

// GPU is the program of one rank.
type GPU struct {
	ID                     int
	Input, Output, Scratch int // chunks in each buffer
	Blocks                 []Block
	Line                   int
}

// Block is a thread block. Send and Recv are its peers, -1 for none.
type Block struct {
	ID         int
	Send, Recv int
	Channel    int
	Steps      []Step
	Line       int
}

// Step is one instruction.
type Step struct {
	Index  int
	Op     Op
	Src    Buffer
	SrcOff int // chunk, -1 where there is none
	Dst    Buffer
	DstOff int
	Count  int // chunks
	// DepBlock and DepStep name the step this one waits for, -1 for none.
	DepBlock, DepStep int
	HasDep            bool // another step waits for this one
	Line              int
}

// Op is what a step does, in the file's words.
type Op string

// Instructions.
const (
	Send              Op = "s"
	Recv              Op = "r"
	RecvCopySend      Op = "rcs"
	RecvReduceSend    Op = "rrs"
	RecvReduceCopy    Op = "rrc"
	RecvReduceCpySend Op = "rrcs"
	Copy              Op = "cpy"
	Reduce            Op = "re"
	Nop               Op = "nop" // only waits
)

// Sends reports whether a step sends a message to the block's peer.
func (o Op) Sends() bool {
	return o == Send || o == RecvCopySend || o == RecvReduceSend || o == RecvReduceCpySend
}

// Receives reports whether a step takes a message from the block's peer.
func (o Op) Receives() bool {
	return o == Recv || o == RecvCopySend || o == RecvReduceSend || o == RecvReduceCopy || o == RecvReduceCpySend
}

// reads reports whether a step reads its source.
func (o Op) reads() bool {
	switch o {
	case Send, Copy, Reduce, RecvReduceSend, RecvReduceCopy, RecvReduceCpySend:
		return true
	}
	return false
}

// writes reports whether a step writes its destination.
func (o Op) writes() bool {
	switch o {
	case Recv, Copy, Reduce, RecvCopySend, RecvReduceCopy, RecvReduceCpySend:
		return true
	}
	return false
}

func (o Op) known() bool { return o.Sends() || o.Receives() || o == Copy || o == Reduce || o == Nop }

// Buffer is one of the three memories of a rank.
type Buffer byte

// Buffers.
const (
	Input   Buffer = 'i'
	Output  Buffer = 'o'
	Scratch Buffer = 's'
)

func (b Buffer) String() string { return string(rune(b)) }

// Match reports whether a text begins as an algorithm file does: with an algo
// element that names its number of GPUs.
func Match(data []byte) bool {
	i := bytes.Index(data[:min(len(data), 64<<10)], []byte("<algo "))
	if i < 0 {
		return false
	}
	tag := data[i:min(len(data), i+2000)]
	if end := bytes.IndexByte(tag, '>'); end >= 0 {
		tag = tag[:end]
	}
	return bytes.Contains(tag, []byte("ngpus=")) && bytes.Contains(tag, []byte("coll="))
}

// Read reads an algorithm file.
func Read(name string, r io.Reader) (*Algo, error) {
	p := parser{name: name, dec: xml.NewDecoder(io.LimitReader(r, maxFile))}
	p.dec.Strict = true
	if err := p.file(); err != nil {
		return nil, err
	}
	if p.algo == nil {
		return nil, fmt.Errorf("%s: no <algo> element; expected an MSCCL algorithm file", name)
	}
	if len(p.algo.GPUs) != p.algo.NGPUs {
		return nil, fmt.Errorf("%s: %d <gpu> elements; the file says ngpus=%d", name, len(p.algo.GPUs), p.algo.NGPUs)
	}
	return p.algo, nil
}

// parser walks through the elements.
type parser struct {
	name  string
	dec   *xml.Decoder
	algo  *Algo
	steps int
	seen  map[int]bool // GPU ids
	// copies are those of the GPU at hand.
	copies []Step
}

func (p *parser) errorf(format string, args ...any) error {
	line, _ := p.dec.InputPos()
	return fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...))
}

// file reads all elements; each may stand only where it belongs.
func (p *parser) file() error {
	var path []string
	for {
		tok, err := p.dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return p.errorf("%v; expected well-formed XML", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if len(path) >= maxDepth {
				return p.errorf("elements nest deeper than %d; expected algo, gpu, tb, step", maxDepth)
			}
			if err := p.start(path, t); err != nil {
				return err
			}
			path = append(path, t.Name.Local)
		case xml.EndElement:
			if path[len(path)-1] == "gpu" {
				p.endGPU()
			}
			path = path[:len(path)-1]
		case xml.Directive:
			return p.errorf("a document type declaration; expected plain elements")
		}
	}
}

// start reads one element.
func (p *parser) start(path []string, e xml.StartElement) error {
	parents := map[string]string{"algo": "", "gpu": "algo", "copy": "gpu", "tb": "gpu", "step": "tb"}
	parent, ok := parents[e.Name.Local]
	at := ""
	if len(path) > 0 {
		at = path[len(path)-1]
	}
	if !ok || at != parent {
		return p.errorf("<%s> inside <%s>; expected algo, gpu, tb or copy, step, each inside the one before", e.Name.Local, at)
	}
	a := attrs{p: p, list: e.Attr, elem: e.Name.Local}
	switch e.Name.Local {
	case "algo":
		return p.startAlgo(&a)
	case "gpu":
		return p.startGPU(&a)
	case "copy":
		return p.startCopy(&a)
	case "tb":
		return p.startBlock(&a)
	}
	return p.startStep(&a)
}

func (p *parser) startAlgo(a *attrs) error {
	if p.algo != nil {
		return p.errorf("a second <algo>; expected one a file")
	}
	p.algo = &Algo{
		Name: a.text("name", "?"), Proto: a.text("proto", "Simple"), Coll: a.text("coll", ""),
		Channels: a.num("nchannels", 1, 0, 1024), ChunksPerLoop: a.num("nchunksperloop", -1, 1, math.MaxInt32),
		NGPUs: a.num("ngpus", -1, 1, maxGPUs), InPlace: a.num("inplace", 0, 0, 1) == 1, OutOfPlace: a.num("outofplace", 1, 0, 1) == 1,
		MinBytes: a.num64("minBytes", 0), MaxBytes: a.num64("maxBytes", 0),
	}
	p.seen = map[int]bool{}
	return a.err
}

func (p *parser) startGPU(a *attrs) error {
	line, _ := p.dec.InputPos()
	g := GPU{
		ID: a.num("id", -1, 0, p.algo.NGPUs-1), Input: a.num("i_chunks", 0, 0, math.MaxInt32),
		Output: a.num("o_chunks", 0, 0, math.MaxInt32), Scratch: a.num("s_chunks", 0, 0, math.MaxInt32), Line: line,
	}
	if a.err == nil && p.seen[g.ID] {
		return p.errorf("gpu %d comes twice", g.ID)
	}
	p.seen[g.ID] = true
	p.algo.GPUs = append(p.algo.GPUs, g)
	return a.err
}

func (p *parser) startBlock(a *attrs) error {
	line, _ := p.dec.InputPos()
	last := p.algo.NGPUs - 1
	b := Block{
		ID: a.num("id", -1, 0, math.MaxInt16), Send: a.num("send", -1, -1, last), Recv: a.num("recv", -1, -1, last),
		Channel: a.num("chan", 0, 0, max(p.algo.Channels-1, 0)), Line: line,
	}
	g := &p.algo.GPUs[len(p.algo.GPUs)-1]
	if a.err == nil && b.ID != len(g.Blocks) {
		return p.errorf("tb %d of gpu %d; expected tb %d, as blocks are numbered in order", b.ID, g.ID, len(g.Blocks))
	}
	g.Blocks = append(g.Blocks, b)
	return a.err
}

func (p *parser) startStep(a *attrs) error {
	if p.steps++; p.steps > maxSteps {
		return p.errorf("more than %d steps; expected an algorithm that a GPU can run", maxSteps)
	}
	line, _ := p.dec.InputPos()
	g := &p.algo.GPUs[len(p.algo.GPUs)-1]
	b := &g.Blocks[len(g.Blocks)-1]
	s := Step{
		Index: a.num("s", -1, 0, math.MaxInt32), Op: Op(a.text("type", "")), Src: a.buffer("srcbuf"), SrcOff: a.num("srcoff", -1, -1, math.MaxInt32),
		Dst: a.buffer("dstbuf"), DstOff: a.num("dstoff", -1, -1, math.MaxInt32), Count: a.num("cnt", 0, 0, math.MaxInt32),
		DepBlock: a.num("depid", -1, -1, math.MaxInt32), DepStep: a.num("deps", -1, -1, math.MaxInt32), HasDep: a.num("hasdep", 0, 0, 1) == 1, Line: line,
	}
	if a.err == nil && !s.Op.known() {
		return p.errorf("step type %q; expected s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", s.Op)
	}
	if a.err == nil && s.Index != len(b.Steps) {
		return p.errorf("step %d of gpu %d tb %d; expected step %d, as steps are numbered in order", s.Index, g.ID, b.ID, len(b.Steps))
	}
	b.Steps = append(b.Steps, s)
	return a.err
}

// attrs reads the attributes of one element and keeps the first error.
type attrs struct {
	p    *parser
	elem string
	list []xml.Attr
	err  error
}

func (a *attrs) get(name string) (string, bool) {
	for _, at := range a.list {
		if at.Name.Local == name {
			return at.Value, true
		}
	}
	return "", false
}

func (a *attrs) fail(format string, args ...any) {
	if a.err == nil {
		a.err = a.p.errorf("%s", "<"+a.elem+">: "+fmt.Sprintf(format, args...))
	}
}

// text reads a name; without a default the attribute must be there.
func (a *attrs) text(name, def string) string {
	if s, ok := a.get(name); ok {
		return s
	}
	if def == "" {
		a.fail("no attribute %s", name)
	}
	return def
}

// num reads a number between low and high. The default stands in for a missing
// attribute when it lies between them too; else the attribute must be there.
func (a *attrs) num(name string, def, low, high int) int {
	s, ok := a.get(name)
	if !ok {
		if def < low || def > high {
			a.fail("no attribute %s", name)
		}
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		a.fail("%s=%q; expected a number from %d to %d", name, s, low, high)
		return def
	}
	return n
}

func (a *attrs) num64(name string, def int64) int64 {
	s, ok := a.get(name)
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		a.fail("%s=%q; expected a number of bytes", name, s)
	}
	return n
}

func (a *attrs) buffer(name string) Buffer {
	s, _ := a.get(name)
	if s != "i" && s != "o" && s != "s" {
		a.fail("%s=%q; expected i, o or s", name, s)
		return 0
	}
	return Buffer(s[0])
}
