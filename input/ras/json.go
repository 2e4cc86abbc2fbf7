package ras

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// readJSON reads the JSON. The scanner takes commas for blanks, which is all that the broken form of 2.28.7 to 2.28.9
// needs.
func readJSON(data []byte) (*Report, error) {
	at := bytes.IndexByte(data, '{')
	if at < 0 {
		return nil, errors.New("no JSON object in it")
	}
	s := &scanner{data: data, at: at, hosts: map[string]string{}}
	r := &Report{JSON: true}
	ranks, announced := 0, 0
	err := s.object(func(key []byte) error {
		switch string(key) {
		case "nccl_version":
			r.Version = s.text()
		case "timestamp":
			r.Time = s.text()
		case "communicators_count":
			announced = s.int()
		case "communicators":
			return s.array(func() error {
				if len(r.Comms) >= maxComms {
					return fmt.Errorf("more than %d communicators", maxComms)
				}
				c, err := s.comm()
				if ranks += len(c.Ranks) + len(c.Missing); ranks > maxRanks && err == nil {
					err = fmt.Errorf("more than %d ranks", maxRanks)
				}
				r.Comms = append(r.Comms, c)
				return err
			})
		case "ras":
			return s.object(func(key []byte) error {
				if string(key) == "timeouts_count" {
					r.Timeouts = s.int()
					return nil
				}
				return s.skip()
			})
		default:
			return s.skip()
		}
		return nil
	})
	if err == nil {
		err = s.err
	}
	if err == nil && len(r.Comms) < announced {
		err = fmt.Errorf("the answer is cut off: it announces %d communicators and lists %d; ask again", announced,
			len(r.Comms))
	}
	return r, err
}

// comm reads a communicator.
func (s *scanner) comm() (Comm, error) {
	var c Comm
	err := s.object(func(key []byte) error {
		switch string(key) {
		case "hash":
			c.Hash, _ = strconv.ParseUint(strings.TrimPrefix(s.text(), "0x"), 16, 64)
		case "size":
			c.Size = min(s.int(), maxRanks)
		case "ranks", "missing_ranks":
			missing := len(key) > len("ranks")
			return s.array(func() error {
				x, err := s.rank()
				if missing {
					c.Missing = append(c.Missing, x)
				} else {
					c.Ranks = append(c.Ranks, x)
				}
				return err
			})
		default:
			return s.skip()
		}
		return nil
	})
	return c, err
}

// asyncErrors are NCCL's words for its results.
var asyncErrors = map[int]string{
	1: "Unhandled CUDA error", 2: "Unhandled system error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage",
	6: "Remote process error", 7: "NCCL operation in progress",
}

// rank reads a rank, of those that answered or of those that are missing.
func (s *scanner) rank() (Rank, error) {
	var x Rank
	err := s.object(func(key []byte) error {
		switch string(key) {
		case "rank":
			x.Rank = s.int()
		case "host":
			x.Host = s.host()
		case "pid":
			x.PID = s.int()
		case "cuda_dev":
			x.GPU = s.int()
		case "status":
			return s.object(func(key []byte) error {
				switch string(key) {
				case "async_error":
					x.Async = asyncErrors[s.int()]
				case "abort_flag":
					x.Aborted = s.bool()
				case "finalize_called", "destroy_flag":
					x.Finalized = s.bool() || x.Finalized
				case "unresponsive":
					x.Unresponsive = s.bool()
				case "considered_dead":
					x.Dead = s.bool()
				default:
					return s.skip()
				}
				return nil
			})
		case "collective_counts":
			return s.object(func(key []byte) error {
				for i := range Ops {
					if Ops[i] == string(key) {
						x.Counts[i], _ = strconv.ParseUint(string(s.literal()), 10, 64)
						return nil
					}
				}
				return s.skip()
			})
		default:
			return s.skip()
		}
		return nil
	})
	return x, err
}

// scanner walks JSON whose commas may be missing.
type scanner struct {
	data  []byte
	at    int
	depth int
	err   error
	hosts map[string]string
}

func (s *scanner) blank() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r', ',':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte that is no blank; 0 at the end.
func (s *scanner) peek() byte {
	s.blank()
	if s.at >= len(s.data) {
		return 0
	}
	return s.data[s.at]
}

func (s *scanner) expect(c byte) error {
	if got := s.peek(); got != c {
		return fmt.Errorf("JSON, byte %d: found %q, expected %q; the answer is cut off or no answer of RAS", s.at,
			string(rune(got)), string(rune(c)))
	}
	s.at++
	return nil
}

// enter bounds how deep values lie.
func (s *scanner) enter() error {
	if s.depth++; s.depth > 64 {
		return errors.New("JSON nested deeper than 64")
	}
	return nil
}

// object calls f for every key; f reads the value.
func (s *scanner) object(f func(key []byte) error) error {
	if err := errors.Join(s.enter(), s.expect('{')); err != nil {
		return err
	}
	for s.peek() != '}' {
		key, err := s.quoted()
		if err == nil {
			err = s.expect(':')
		}
		if err == nil {
			err = f(key)
		}
		if err != nil {
			return err
		}
	}
	s.at++
	s.depth--
	return nil
}

// array calls f for every element.
func (s *scanner) array(f func() error) error {
	if err := errors.Join(s.enter(), s.expect('[')); err != nil {
		return err
	}
	for s.peek() != ']' {
		if s.at >= len(s.data) {
			return errors.New("JSON ends within a list; the answer is cut off")
		}
		if err := f(); err != nil {
			return err
		}
	}
	s.at++
	s.depth--
	return nil
}

// quoted reads a string as it stands; RAS writes none with escapes but may write hosts with any byte.
func (s *scanner) quoted() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	from := s.at
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.data[from : s.at-1], nil
		}
		s.at++
	}
	return nil, errors.New("JSON ends within a string; the answer is cut off")
}

// literal reads a number or a word, or a string without its quotes.
func (s *scanner) literal() []byte {
	if s.peek() == '"' {
		b, err := s.quoted()
		s.fail(err)
		return b
	}
	from := s.at
	for s.at < len(s.data) && !ends[s.data[s.at]] {
		s.at++
	}
	if from == s.at {
		s.fail(fmt.Errorf("JSON, byte %d: expected a value", s.at))
		s.at = len(s.data)
	}
	return s.data[from:s.at]
}

// ends are the bytes that end a number or a word.
var ends = [256]bool{
	' ': true, '\t': true, '\r': true, '\n': true, ',': true, '}': true, ']': true, '{': true, '[': true, ':': true,
	'"': true,
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *scanner) text() string {
	b := s.literal()
	return string(b[:min(len(b), 256)])
}

// host keeps one copy of every host.
func (s *scanner) host() string {
	b := s.literal()
	b = b[:min(len(b), 256)]
	if h, ok := s.hosts[string(b)]; ok {
		return h
	}
	h := string(b)
	s.hosts[h] = h
	return h
}

func (s *scanner) int() int {
	n, err := strconv.ParseInt(string(s.literal()), 10, 63)
	if err != nil || n > 1<<40 || n < -1<<40 {
		return -1
	}
	return int(n)
}

func (s *scanner) bool() bool { return string(s.literal()) == "true" }

// skip passes over any value.
func (s *scanner) skip() error {
	switch s.peek() {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	}
	s.literal()
	return s.err
}
