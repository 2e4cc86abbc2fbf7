// Package tags finds XML tags in text that need not be XML.
//
// NCCL's files are XML in a small dialect: elements and attributes, no text, no
// entities. People hand them in as the file itself, or as part of a log whose
// launcher wrote "[1,0]<stdout>:" before each line, cut off at the end, with
// comments on top. An XML decoder gives up on all but the first; this scanner
// returns the tags it sees and leaves their order to its caller.
//
// Entities are never expanded. Memory does not grow with the input: names,
// values, attributes per tag and kept comments are bounded, and a tag beyond the
// bounds is returned as Broken.
package tags

import (
	"bufio"
	"bytes"
	"io"
)

// Bounds of one tag. NCCL itself allows 254 characters and 16 attributes.
const (
	MaxName    = 64
	MaxValue   = 4 << 10
	MaxAttrs   = 64
	MaxComment = 64 << 10 // of a comment, this much is kept
)

// Kind is what a token is.
type Kind uint8

// Token kinds.
const (
	Open    Kind = iota + 1 // <cpu numaid="0">
	Empty                   // <net name="lo"/>
	Close                   // </cpu>
	Comment                 // <!-- … -->
	Decl                    // <!DOCTYPE or <!ENTITY: only the name is read
	Broken                  // a tag that does not end, or is beyond the bounds
)

// Attr is one attribute.
type Attr struct{ Key, Value string }

// Token is one tag or comment.
type Token struct {
	Kind  Kind
	Name  string
	Attrs []Attr // valid until the next call of Next
	Text  string // of a comment
	Line  int    // where it begins, from 1
}

// Scanner returns the tags of a text one after another.
type Scanner struct {
	in    *bufio.Reader
	line  int
	attrs []Attr
	buf   []byte
}

// NewScanner reads from r.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(r, 64<<10), line: 1}
}

// Line is the number of the line the scanner has reached.
func (s *Scanner) Line() int { return s.line }

// Next returns the next tag, or io.EOF at the end of the text.
func (s *Scanner) Next() (Token, error) {
	for {
		if err := s.skipText(); err != nil {
			return Token{}, err
		}
		t := Token{Line: s.line}
		c, err := s.peek()
		if err != nil {
			return Token{}, err
		}
		switch {
		case c == '!':
			s.readByte()
			if ok := s.bang(&t); !ok {
				continue
			}
		case c == '/':
			s.readByte()
			t.Kind = Close
			s.tag(&t)
		case isLetter(c):
			t.Kind = Open
			s.tag(&t)
		default:
			continue
		}
		return t, nil
	}
}

// skipText moves behind the next '<'.
func (s *Scanner) skipText() error {
	for {
		b, err := s.in.ReadSlice('<')
		s.line += bytes.Count(b, []byte{'\n'})
		switch err {
		case nil:
			return nil
		case bufio.ErrBufferFull:
		default:
			return err
		}
	}
}

func (s *Scanner) peek() (byte, error) {
	b, err := s.in.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// readByte returns 0 at the end of the text, which no tag contains.
func (s *Scanner) readByte() byte {
	c, err := s.in.ReadByte()
	if err != nil {
		return 0
	}
	if c == '\n' {
		s.line++
	}
	return c
}

// bang reads what follows "<!": a comment, or the name of a declaration.
func (s *Scanner) bang(t *Token) bool {
	if b, _ := s.in.Peek(2); string(b) == "--" {
		s.in.Discard(2)
		s.comment(t)
		return true
	}
	name, _ := s.name()
	t.Kind, t.Name = Decl, name
	return name != ""
}

func (s *Scanner) comment(t *Token) {
	t.Kind = Comment
	s.buf = s.buf[:0]
	dashes := 0
	for {
		c := s.readByte()
		if c == 0 {
			if _, err := s.in.Peek(1); err != nil {
				break
			}
		}
		if c == '>' && dashes >= 2 {
			s.buf = bytes.TrimSuffix(s.buf, []byte("--"))
			break
		}
		if c == '-' {
			dashes++
		} else {
			dashes = 0
		}
		if len(s.buf) < MaxComment {
			s.buf = append(s.buf, c)
		}
	}
	t.Text = string(s.buf)
}

// name reads a name and returns it with the byte that ended it, unread.
func (s *Scanner) name() (string, bool) {
	s.buf = s.buf[:0]
	for {
		c, err := s.peek()
		if err != nil || !isName(c) {
			return string(s.buf), err == nil
		}
		if len(s.buf) == MaxName {
			return string(s.buf), false
		}
		s.buf = append(s.buf, c)
		s.readByte()
	}
}

// tag reads a name and its attributes up to '>'.
func (s *Scanner) tag(t *Token) {
	name, ok := s.name()
	t.Name = name
	s.attrs = s.attrs[:0]
	for ok {
		c, err := s.peek()
		switch {
		case err != nil || c == '<':
			ok = false
		case c == '>':
			s.readByte()
			t.Attrs = s.attrs
			return
		case c == '/':
			s.readByte()
			if t.Kind == Open {
				t.Kind = Empty
			}
		case isName(c):
			ok = s.attr()
		default:
			s.readByte()
		}
	}
	t.Kind = Broken
	t.Attrs = s.attrs
}

// attr reads key="value". A key without a value is passed over.
func (s *Scanner) attr() bool {
	key, ok := s.name()
	if !ok {
		return false
	}
	if c, _ := s.peek(); c != '=' {
		return true
	}
	s.readByte()
	quote, err := s.peek()
	if err != nil || quote != '"' && quote != '\'' {
		return err == nil
	}
	s.readByte()
	s.buf = s.buf[:0]
	for {
		c, err := s.peek()
		// No value of NCCL's spans lines: one that does was never closed.
		if err != nil || c == '\n' || len(s.buf) > MaxValue {
			return false
		}
		s.readByte()
		if c == quote {
			break
		}
		s.buf = append(s.buf, c)
	}
	if len(s.attrs) == MaxAttrs {
		return false
	}
	s.attrs = append(s.attrs, Attr{key, string(s.buf)})
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isName(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':' || c == '.'
}
