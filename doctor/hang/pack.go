package hang

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Bounds of what comes out of packed files, together and each, and of archives within archives.
const (
	maxUnpacked = 2 << 30
	maxMember   = 512 << 20
	maxNested   = 3
)

// AddFile takes a file or an archive of files, packed or not, and says how many of them tell something. A file that
// cannot be read is an error only where it is the only one; of an archive's members it becomes a note.
func (c *Case) AddFile(name string, data []byte) (known int, err error) { return c.add(name, data, 0) }

func (c *Case) add(name string, data []byte, depth int) (int, error) {
	if depth > maxNested {
		return 0, fmt.Errorf("%s: archives nested more than %d deep", name, maxNested)
	}
	if out, packed, err := unpack(data, c.most()); packed {
		if err == nil {
			err = c.take(len(out))
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		return c.add(strings.TrimSuffix(name, path.Ext(name)), out, depth+1)
	}
	switch {
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return c.addTar(name, data, depth)
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return c.addZip(name, data, depth)
	}
	ok, err := c.Add(name, data)
	if ok && err == nil {
		return 1, nil
	}
	return 0, err
}

// take counts what was unpacked.
func (c *Case) take(n int) error {
	most := maxUnpacked
	if c.Unpacked > 0 {
		most = min(most, c.Unpacked)
	}
	if c.unpacked += n; c.unpacked > most {
		return fmt.Errorf("more than %d MiB when unpacked", most>>20)
	}
	return nil
}

// most is how much may come out of one packed file.
func (c *Case) most() int {
	if c.Unpacked > 0 {
		return min(maxMember, c.Unpacked)
	}
	return maxMember
}

// ErrXZ says what to do with a file that xz made, which is not read.
var ErrXZ = errors.New("packed by xz; expected text, tar, gzip or bzip2; unpack it first: xz -d FILE")

// RefuseXZ is ErrXZ of a file that xz made; nil of any other.
func RefuseXZ(data []byte) error {
	if !bytes.HasPrefix(data, []byte("\xfd7zXZ\x00")) {
		return nil
	}
	return ErrXZ
}

// unpack undoes gzip and bzip2.
func unpack(data []byte, most int) (out []byte, packed bool, err error) {
	var in io.Reader
	switch {
	case RefuseXZ(data) != nil:
		return nil, true, ErrXZ
	case bytes.HasPrefix(data, []byte("\x1f\x8b\x08")):
		if in, err = gzip.NewReader(bytes.NewReader(data)); err != nil {
			return nil, true, err
		}
	case bytes.HasPrefix(data, []byte("BZh")):
		in = bzip2.NewReader(bytes.NewReader(data))
	default:
		return nil, false, nil
	}
	out, err = io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(out) > most {
		err = fmt.Errorf("more than %d MiB when unpacked", most>>20)
	}
	return out, true, err
}

// member adds a file of an archive.
func (c *Case) member(name string, in io.Reader, size int64, depth int) (int, error) {
	if size > int64(c.most()) {
		c.note("%s: %d bytes are too many; left out", name, size)
		return 0, nil
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(c.most())))
	if err != nil {
		return 0, err
	}
	if err := c.take(len(data)); err != nil {
		return 0, err
	}
	n, err := c.add(name, data, depth+1)
	if err != nil {
		c.note("%v", err)
	}
	return n, nil
}

func (c *Case) note(format string, args ...any) {
	if len(c.notes) < 64 {
		c.notes = append(c.notes, fmt.Sprintf(format, args...))
	}
}

func (c *Case) addTar(name string, data []byte, depth int) (int, error) {
	in := tar.NewReader(bytes.NewReader(data))
	known := 0
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return known, nil
		}
		if err != nil {
			return known, fmt.Errorf("%s: %w", name, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		n, err := c.member(name+"/"+h.Name, in, h.Size, depth)
		if err != nil {
			return known, fmt.Errorf("%s: %w", name, err)
		}
		known += n
	}
}

func (c *Case) addZip(name string, data []byte, depth int) (int, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	known := 0
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return known, fmt.Errorf("%s: %w", name, err)
		}
		n, err := c.member(name+"/"+f.Name, in, int64(min(f.UncompressedSize64, 1<<40)), depth)
		in.Close()
		if err != nil {
			return known, fmt.Errorf("%s: %w", name, err)
		}
		known += n
	}
	return known, nil
}
