package lines

import (
	"bytes"
	"io"
	"iter"
	"runtime"
	"strings"
)

// Chunk is a run of lines of a text. Next walks through them as a Reader's does, with
// the same pieces and numbers wherever the text was cut into chunks. Lines are parts
// of the chunk: who keeps one copies it.
type Chunk struct {
	text  string // what is left
	rest  string // what is left of the piece at hand, after a bare CR
	num   int
	more  bool // the piece at hand ended without a newline
	codes bool // there are terminal codes or zero bytes
	line  string
}

// Next moves to the next line or piece of one.
func (c *Chunk) Next() bool {
	if c.rest == "" {
		if c.text == "" {
			return false
		}
		n := min(len(c.text), MaxPiece)
		if i := strings.IndexByte(c.text[:n], '\n'); i >= 0 {
			n = i + 1
		}
		c.rest, c.text = c.text[:n], c.text[n:]
		if !c.more {
			c.num++
		}
		c.more = c.rest[n-1] != '\n'
		c.rest = strings.TrimRight(c.rest, "\r\n")
	}
	c.line, c.rest, _ = strings.Cut(c.rest, "\r")
	if c.codes {
		c.line = StripANSI(c.line)
	}
	return true
}

// Text is the line without its ending and without terminal codes.
func (c *Chunk) Text() string { return c.line }

// Num is the number of the line, from 1.
func (c *Chunk) Num() int { return c.num }

// Ahead reads a text in chunks that are looked at concurrently, each by itself, and
// hands out what was made of them in the order of the text. What comes of it
// does therefore not depend on where chunks end nor on who looked at which.
type Ahead[T any] struct {
	// Size is how many bytes a chunk has at most, a multiple of MaxPiece; Workers is
	// how many are looked at concurrently.
	Size, Workers int

	in    io.Reader
	buf   []byte
	have  int // bytes in buf
	num   int // lines begun
	more  bool
	bytes int64
	err   error
}

// NewAhead makes an Ahead with a worker for every processor, from two to four: who takes what they make is busier.
func NewAhead[T any](in io.Reader) *Ahead[T] {
	return &Ahead[T]{Size: MaxPiece, Workers: min(max(runtime.GOMAXPROCS(0), 2), 4), in: in}
}

// job is a chunk and what is made of it.
type job[T any] struct {
	chunk Chunk
	made  T
	done  chan struct{}
}

// All yields what the workers make of the chunks; each is used again after the next
// was asked for. newWorker is called once for every worker. The goroutines that read
// and look have ended when All has.
func (a *Ahead[T]) All(newWorker func() func(*Chunk, *T)) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		all := a.Workers + 2
		free, order, todo := make(chan *job[T], all), make(chan *job[T], all), make(chan *job[T], all)
		for range all {
			free <- &job[T]{done: make(chan struct{}, 1)}
		}
		go func() {
			defer close(order)
			defer close(todo)
			for j := range free {
				if !a.next(&j.chunk) {
					return
				}
				order <- j
				todo <- j
			}
		}()
		for range a.Workers {
			look := newWorker()
			go func() {
				for j := range todo {
					look(&j.chunk, &j.made)
					j.done <- struct{}{}
				}
			}()
		}
		for j := range order {
			<-j.done
			if !yield(&j.made) {
				close(free)
				for j := range order { // those under way
					<-j.done
				}
				return
			}
			free <- j
		}
	}
}

// next reads a chunk: whole lines, or as much as fits of one that is longer.
func (a *Ahead[T]) next(c *Chunk) bool {
	if a.buf == nil {
		a.buf = make([]byte, a.Size)
	}
	for a.have < len(a.buf) && a.err == nil {
		var n int
		n, a.err = a.in.Read(a.buf[a.have:])
		a.have += n
		a.bytes += int64(n)
	}
	cut := a.have
	if i := bytes.LastIndexByte(a.buf[:cut], '\n') + 1; i > 0 && a.err == nil {
		cut = i
	}
	if cut == 0 {
		return false
	}
	part := a.buf[:cut]
	*c = Chunk{
		text: string(part), num: a.num, more: a.more,
		codes: bytes.IndexByte(part, 0x1b) >= 0 || bytes.IndexByte(part, 0) >= 0,
	}
	a.num += bytes.Count(part, []byte("\n"))
	if a.more {
		a.num--
	}
	if a.more = part[cut-1] != '\n'; a.more {
		a.num++
	}
	a.have = copy(a.buf, a.buf[cut:a.have])
	return true
}

// Bytes is how much has been read, once All is over.
func (a *Ahead[T]) Bytes() int64 { return a.bytes }

// Err is the first error of reading other than the end, with the text's name and its
// place, once All is over.
func (a *Ahead[T]) Err(name string) error {
	if a.err == nil || a.err == io.EOF {
		return nil
	}
	return at(name, a.num, a.err)
}
