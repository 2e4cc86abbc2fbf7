package hwloc

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/internal/lines"
)

// maxDocument bounds one XML document. lstopo writes under 3 MB for a machine of
// a thousand cores.
const maxDocument = 64 << 20

// maxOpen bounds how many documents may be open at once in alternating lines.
const maxOpen = 1024

const (
	tagOpen  = "<topology"
	tagClose = "</topology>"
)

// Match reports whether the text holds an hwloc XML document.
func Match(data []byte) bool {
	for {
		i := bytes.Index(data, []byte(tagOpen))
		if i < 0 {
			return false
		}
		data = data[i+len(tagOpen):]
		// libvirt has an element of this name too; only hwloc's begins with the
		// machine as an object.
		head := data[:min(len(data), 4096)]
		k := bytes.Index(head, []byte("<object"))
		if k >= 0 && bytes.Contains(head[k:], []byte("type=\"")) && !bytes.Contains(head[:k], []byte("</")) {
			return true
		}
	}
}

// document is the XML of one machine, cut out of the text around it.
type document struct {
	text  []byte
	lines []int32 // number in the source of each line of text
	whole bool    // the closing tag was seen
}

// line translates a line of the document into a line of the source.
func (d *document) line(n int) int {
	if n < 1 || n > len(d.lines) {
		if len(d.lines) == 0 {
			return 0
		}
		n = len(d.lines)
	}
	return int(d.lines[n-1])
}

// finder cuts documents out of a text.
type finder struct {
	open map[string]*document // by what stands in front of its lines
	mark string               // what stands in front of the line at hand
	num  int                  // its number
	tail string               // end of the piece before, of the same line
	take func(*document) error
}

// find calls take for every document, those that broke off last.
func find(name string, r io.Reader, take func(*document) error) error {
	f := &finder{open: map[string]*document{}, take: take}
	in := lines.New(r)
	for in.Next() {
		if err := f.piece(in.Num(), in.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, in.Num(), err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, mark := range slices.Sorted(maps.Keys(f.open)) {
		if err := take(f.open[mark]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// piece takes a line, or the next piece of a line too long to have whole.
func (f *finder) piece(num int, text string) error {
	fresh := num != f.num
	if fresh {
		bare := lines.Bare(text)
		f.mark, f.num, f.tail = text[:len(text)-len(bare)], num, ""
		text = bare
	}
	for {
		d := f.open[f.mark]
		if d == nil {
			rest, found := f.seek(text)
			if !found {
				return nil
			}
			if len(f.open) >= maxOpen {
				return fmt.Errorf("%d topologies are open at once; expected each to end with %s", len(f.open), tagClose)
			}
			d = &document{}
			f.open[f.mark] = d
			text, fresh = rest, true
		}
		n, err := f.appendText(d, text, fresh)
		if err != nil || n == len(text) {
			return err
		}
		text = text[n:]
	}
}

// seek looks for the beginning of a document and returns the text from there on.
func (f *finder) seek(text string) (string, bool) {
	if f.tail != "" {
		text = f.tail + text
	}
	i := strings.Index(text, tagOpen)
	if i < 0 {
		f.tail = text[max(0, len(text)-len(tagOpen)+1):]
		return "", false
	}
	f.tail = ""
	return text[i:], true
}

// appendText appends text to a document, up to its end, and hands it on when it is
// complete. It returns how much of the text it used.
func (f *finder) appendText(d *document, text string, fresh bool) (int, error) {
	if len(d.text)+len(text) > maxDocument {
		return 0, fmt.Errorf("topology of more than %d MiB; lstopo writes a few, so this is no machine", maxDocument>>20)
	}
	if fresh {
		if len(d.text) > 0 {
			d.text = append(d.text, '\n')
		}
		d.lines = append(d.lines, int32(f.num))
	}
	use := len(text)
	before := string(d.text[max(0, len(d.text)-len(tagClose)+1):])
	if i := strings.Index(before+text, tagClose); i >= 0 {
		use, d.whole = i+len(tagClose)-len(before), true
	}
	d.text = append(d.text, sanitize(text[:use])...)
	if !d.plausible() {
		delete(f.open, f.mark)
		// Its first tag is behind us; look for another beginning in the rest.
		f.tail = ""
		return min(use, len(tagOpen)), nil
	}
	if d.whole {
		delete(f.open, f.mark)
		return use, f.take(d)
	}
	return use, nil
}

// plausible reports whether the document can still be hwloc's: its first
// element is an object.
func (d *document) plausible() bool {
	head := d.text[:min(len(d.text), 4096)]
	end := bytes.IndexByte(head, '>')
	if end < 0 {
		return len(head) < 4096
	}
	if end > 0 && head[end-1] == '/' {
		return false
	}
	if c := head[min(len(tagOpen), len(head)-1)]; c != '>' && c != ' ' && c != '\n' && c != '\t' {
		return false
	}
	body := bytes.TrimLeft(head[end+1:], " \t\n")
	want := []byte("<object")
	n := min(len(body), len(want))
	return bytes.Equal(body[:n], want[:n])
}

// sanitize replaces what XML forbids and firmware strings contain: control
// characters and bytes that are no UTF-8.
func sanitize(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if strings.IndexFunc(s, forbidden) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if forbidden(r) {
			return '?'
		}
		return r
	}, s)
}

func forbidden(r rune) bool {
	return r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff
}
