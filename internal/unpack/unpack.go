// Package unpack opens what gzip, bzip2, tar and zip made of files, in each other too, one file after the other. What
// comes out counts against the budget of the question that reads it, and reading ends when nobody waits for the answer.
package unpack

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

const (
	maxNested  = 4       // packed files in each other
	maxZipList = 4 << 20 // bytes of the list of files in a zip archive: all of it is read before the first file
	headSize   = 512     // bytes that tell what a file is; tar's mark is the last
	bufferSize = 1 << 16 // as much as visitors may peek at
)

// ErrXZ says what to do with a file that xz made, which is not read.
var ErrXZ = errors.New("packed by xz; expected text, tar, gzip or bzip2; unpack it first: xz -d FILE")

// File is a file that is not packed, or no longer.
type File struct {
	*bufio.Reader
	Name string // what people call it: where an archive has it, the archive's name, a slash and Path
	Path string // in its archive
}

// Visitor takes what Walk finds.
type Visitor struct {
	// File takes a file, before the next one is looked for.
	File func(f *File) error
	// Tar, if there is one, is shown a tar archive before its members are. It returns the archive from its beginning, and
	// what ends with it.
	Tar func(name string, in io.Reader) (again io.Reader, done func())
	// Bad, if there is one, is told of a member that cannot be read; without it no further ones are.
	Bad func(err error)
}

// Walk gives a file, or the files of an archive, to a visitor.
func Walk(b *cluster.Budget, name string, in io.Reader, v Visitor) error {
	w := walker{v, orUsual(b)}
	return w.open(&File{bufio.NewReaderSize(w.plain(in), bufferSize), name, ""}, 0)
}

// Plain is what gzip or bzip2 made a file of, and the file itself where it is not packed.
func Plain(b *cluster.Budget, in io.Reader) (plain *bufio.Reader, packed bool, err error) {
	w := walker{b: orUsual(b)}
	f := &File{Reader: bufio.NewReaderSize(w.plain(in), bufferSize)}
	depth, err := w.decompress(f, 0)
	return f.Reader, depth > 0, err
}

// Whole reads a file to its end, for who needs all of it at once. The bytes count as held until done is called. With an
// error it returns what came before.
func Whole(b *cluster.Budget, in io.Reader) (data []byte, done func(), err error) {
	most := b.HoldLeft()
	in = io.LimitReader(in, most+1)
	for err == nil {
		if len(data) == cap(data) { // doubling a large one would take three times what it holds
			data = slices.Grow(data, max(64<<10, min(cap(data), 16<<20), cap(data)/4))
		}
		var n int
		n, err = in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
	}
	size := int64(len(data))
	switch {
	case err != io.EOF:
		return data, func() {}, err
	case size > most:
		return data, func() {}, fmt.Errorf("more than %d MiB; cut out the part that matters", most>>20)
	}
	b.Hold(size)
	return data, func() { b.Hold(-size) }, nil
}

// Packed reports the beginning of a file that stands for more bytes than it has.
func Packed(head []byte) bool { return isGzip(head) || isBzip2(head) || isZip(head) }

// IsTar reports the beginning of a tar archive.
func IsTar(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }
func isZip(head []byte) bool  { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }
func isBzip2(head []byte) bool {
	return len(head) > 3 && string(head[:3]) == "BZh" && head[3] >= '1' && head[3] <= '9'
}

func orUsual(b *cluster.Budget) *cluster.Budget {
	if b == nil {
		return cluster.NewBudget(cluster.Limits{}, nil)
	}
	return b
}

type walker struct {
	Visitor
	b *cluster.Budget
}

// source is a reader whose bytes are taken from a budget.
type source struct {
	io.Reader
	take func(n int) error
}

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if over := s.take(n); over != nil {
		return 0, over
	}
	return n, err
}

// plain is a source that has as many bytes as it seems to.
func (w *walker) plain(in io.Reader) source {
	return source{in, func(int) error { return w.b.Stopped() }}
}

// decompress undoes gzip and bzip2, and tells how deep that leads.
func (w *walker) decompress(f *File, depth int) (int, error) {
	for ; ; depth++ {
		head, _ := f.Peek(headSize)
		var in io.Reader
		switch {
		case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
			return depth, ErrXZ
		case isGzip(head):
			z, err := gzip.NewReader(f.Reader)
			if err != nil {
				return depth, fmt.Errorf("begins like gzip and is not: %w; copy it again", err)
			}
			in = z
		case isBzip2(head):
			in = bzip2.NewReader(f.Reader)
		default:
			if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
				_, _ = f.Discard(2) // peeked at
				f.Reader = bufio.NewReaderSize(utf16{f.Reader, int(0xff - head[0])}, bufferSize)
			}
			return depth, nil
		}
		if depth >= maxNested {
			return depth, errNested
		}
		f.Reader = bufio.NewReaderSize(source{in, w.b.TakeUnpacked}, bufferSize)
	}
}

// utf16 reads what PowerShell's redirection writes, and keeps what is ASCII: every format here is.
type utf16 struct {
	*bufio.Reader

	low int // place of the lower byte
}

func (u utf16) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || u.Buffered() > 1) {
		var c [2]byte
		if _, err = io.ReadFull(u.Reader, c[:]); err != nil {
			if err == io.ErrUnexpectedEOF { // half a character
				err = io.EOF
			}
			return n, err
		}
		if p[n] = c[u.low]; c[1-u.low] != 0 {
			p[n] = '?'
		}
		n++
	}
	return n, nil
}

var errNested = fmt.Errorf("packed more than %d times over; unpack it first", maxNested)

// open gives a file, or what is in it, to the visitor.
func (w *walker) open(f *File, depth int) error {
	depth, err := w.decompress(f, depth)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	head, _ := f.Peek(headSize)
	switch {
	case !isZip(head) && !IsTar(head):
		f.Name = strings.TrimSuffix(strings.TrimSuffix(f.Name, ".gz"), ".bz2")
		return w.File(f)
	case depth >= maxNested:
		return fmt.Errorf("%s: %w", f.Name, errNested)
	}
	a := archive{w, f, depth + 1, bufio.NewReaderSize(nil, bufferSize)}
	if isZip(head) {
		return a.zip()
	}
	return a.tar()
}

// archive is one whose members are opened, one after the other.
type archive struct {
	*walker
	f     *File
	depth int // of its members
	text  *bufio.Reader
}

func (a *archive) tar() error {
	var in io.Reader = a.f
	if a.Tar != nil {
		again, done := a.Tar(a.f.Name, in)
		defer done()
		in = again
	}
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w; copy it again", a.f.Name, err)
		}
		text := a.plain(t)
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") { // its zeros are not in the archive
				text.take = a.b.TakeUnpacked
			}
		}
		if err := a.member(h.Name, h.FileInfo().Mode(), text); err != nil {
			return err
		}
	}
}

// zip reads an archive whose list of files is at its end.
func (a *archive) zip() error {
	data, done, err := Whole(a.b, a.f)
	if err != nil {
		return fmt.Errorf("%s: %w", a.f.Name, err)
	}
	defer done()
	in := &zipped{bytes.NewReader(data), maxZipList}
	z, err := zip.NewReader(in, int64(len(data)))
	if err != nil {
		return fmt.Errorf("%s: a zip archive that cannot be read: %w; copy it again", a.f.Name, err)
	}
	in.left = math.MaxInt
	for _, m := range z.File {
		text, err := m.Open()
		if err != nil {
			err = a.bad(fmt.Errorf("%s/%s: %w", a.f.Name, m.Name, err))
		} else {
			err = a.member(m.Name, m.Mode(), source{text, a.b.TakeUnpacked})
			text.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// zipped bounds what is read of an archive.
type zipped struct {
	*bytes.Reader
	left int
}

func (z *zipped) ReadAt(p []byte, at int64) (int, error) {
	if z.left -= len(p); z.left < 0 {
		return 0, fmt.Errorf("more than %d MiB of names", maxZipList>>20)
	}
	return z.Reader.ReadAt(p, at)
}

// member opens a member, if it is a file.
func (a *archive) member(name string, mode fs.FileMode, in source) error {
	if err := a.b.TakeMember(); err != nil {
		return fmt.Errorf("%s: %w", a.f.Name, err)
	}
	if !mode.IsRegular() {
		return nil
	}
	name = path.Clean(name)
	a.text.Reset(in)
	return a.bad(a.open(&File{a.text, a.f.Name + "/" + name, name}, a.depth))
}

// bad tells of a member that cannot be read. What it returns ends all reading: the budget is spent, or nobody waits.
func (w *walker) bad(err error) error {
	if err == nil || w.Bad == nil || errors.Is(err, cluster.ErrTooLarge) || w.b.Stopped() != nil {
		return err
	}
	w.Bad(err)
	return nil
}
