// Package input recognises a text by its content and hands it to the reader of
// its format.
//
// A file can hold several formats: a support log with an nvidia-smi matrix, an
// ibstat listing and an nccl-tests table gives three fragments of one machine. A
// document that is one thing from end to end (XML, YAML, JSON) is given to one
// reader only. Nothing is decided by file names.
//
// The package and the readers below it are not promised and may change within v0;
// who needs one of them asks Read, which changes least.
package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/snapshot"
	"busbar.dev/internal/unpack"
)

// MaxBytes is the largest text Read takes.
const MaxBytes = 256 << 20

// ErrUnknown is wrapped by errors about texts that no reader knows.
var ErrUnknown = errors.New("no known format in it")

// Formats lists what Read recognises, in the order of trying.
func Formats() []string {
	var names []string
	for _, k := range kinds {
		if k.Class&Part != 0 {
			names = append(names, k.Name)
		}
	}
	return names
}

// Read recognises a text and returns what each matching reader found in it.
// Readers that recognised the text but could not use it give an error only when
// no other reader found anything; else their complaint is a warning.
func Read(name string, r io.Reader) ([]*cluster.Fragment, error) {
	return ReadWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}

// ReadWithin is Read for texts that may cost so much together. It ends when the budget says that nobody waits any more.
func ReadWithin(b *cluster.Budget, name string, r io.Reader) ([]*cluster.Fragment, error) {
	in, _, err := unpack.Plain(b, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if head, _ := in.Peek(512); unpack.IsTar(head) {
		f, err := snapshot.ReadWithin(b, name, in)
		if err == nil {
			err = b.Keep(f)
		}
		if err != nil {
			return nil, err
		}
		return []*cluster.Fragment{f}, nil
	}
	data, done, err := unpack.Whole(b, io.LimitReader(in, b.BytesLeft(MaxBytes)+1))
	defer done()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%s: compressed text: %w; copy it again", name, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("%s: larger than %d MiB; cut out the part with the topology", name, MaxBytes>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("%s: empty; expected the output of one of: %s", name, strings.Join(Formats(), ", "))
	}
	if err := b.TakeBytes(int64(len(data))); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	head := data[:min(len(data), 1<<16)] // a log that was cut while it was written to has holes of zeros
	texts := bytes.FieldsFunc(head, func(c rune) bool { return c == 0 })
	if at := bytes.IndexByte(head, 0); at >= 0 && (len(texts) == 0 || 64*len(texts) > len(head)) {
		return nil, fmt.Errorf("%s: %w: binary data (a zero byte at offset %d); expected text", name, ErrUnknown, at)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var frags []*cluster.Fragment
	var failed []error
	for _, k := range Find(data, Part) {
		if err := b.Stopped(); err != nil {
			return nil, err
		}
		x, err := k.read(b, name, data)
		list, _ := x.([]*cluster.Fragment)
		if f, one := x.(*cluster.Fragment); one {
			list = append(list, f)
		}
		for _, f := range list {
			if err == nil {
				err = b.Keep(f)
			}
			if err == nil {
				frags = append(frags, f)
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(frags) == 0 && len(failed) == 0 && clusterfile.Resembles(data) {
		_, err := clusterfile.ReadWithin(b, name, bytes.NewReader(data))
		if err == nil {
			err = fmt.Errorf("%s: a cluster file without nodes; expected nodes: with hosts or count, and type", name)
		}
		return nil, nearly{err}
	}
	if len(frags) == 0 {
		if len(failed) > 0 {
			return nil, failed[0]
		}
		if what := otherwise(data); what != "" {
			return nil, Named{name, what}
		}
		return nil, fmt.Errorf("%s: %w; expected one of: %s", name, ErrUnknown, strings.Join(Formats(), ", "))
	}
	for _, err := range failed {
		frags[0].Warnings = append(frags[0].Warnings, cluster.Warning{Text: err.Error()})
	}
	return frags, nil
}

// nearly is what is wrong with a text that resembles a format and is none: ErrUnknown in words of that format.
type nearly struct{ error }

func (n nearly) Unwrap() error        { return n.error }
func (n nearly) Is(target error) bool { return target == ErrUnknown }

// stopping is a reader that ends when nobody waits for what is read.
type stopping struct {
	io.Reader
	b *cluster.Budget
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.b.Stopped(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
