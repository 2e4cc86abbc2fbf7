package fleet

import (
	"bytes"
	"strconv"
	"time"

	"busbar.dev/unit"
)

// DecodeEvent reads an event as Decode does. Outcomes of pairs are nearly all that a store holds, and
// a server reads all of it when it starts: they are read by their form, several times as fast.
func DecodeEvent(data []byte) (*Event, error) {
	if n := quickPairs(data); n != nil {
		if err := n.Check(); err != nil {
			return nil, err
		}
		return n, nil
	}
	return Decode[Event](data)
}

// quickPairs reads the outcome of a pair exactly as Encode writes it, and gives nil for
// everything else: other fields, another order of them, blanks, anything escaped.
func quickPairs(data []byte) *Event {
	if len(data) > 4<<10 {
		return nil
	}
	q := quick{rest: data, ok: true}
	n := &Event{Kind: KindMeasured}
	m := &Measured{}
	q.is(`{"seq":`)
	n.Seq = q.count()
	q.is(`,"at":`)
	n.At = q.time()
	q.is(`,"node":`)
	n.Node = q.name()
	q.is(`,"kind":"measured","measured":{"order":`)
	m.Order = q.text()
	q.is(`,"part":`)
	m.Part = q.text()
	q.is(`,"sweep":`)
	m.Sweep = int(q.count())
	q.is(`,"round":`)
	m.Round = int(q.count())
	q.is(`,"pairs":[`)
	m.Pairs = make([]PairSample, 0, 2)
	for len(m.Pairs) == 0 || q.may(`,`) {
		m.Pairs = append(m.Pairs, q.pair())
		if !q.ok {
			return nil
		}
	}
	q.is(`],"took_ns":`)
	m.Took = time.Duration(q.count())
	q.is(`}}`)
	if !q.ok || len(q.rest) > 0 {
		return nil
	}
	n.Measured = m
	return n
}

// quick reads pieces of a text; nothing it reads counts once ok is false.
type quick struct {
	rest []byte
	ok   bool
}

// may passes over a piece where it comes next.
func (q *quick) may(s string) bool {
	if len(q.rest) < len(s) || string(q.rest[:len(s)]) != s {
		return false
	}
	q.rest = q.rest[len(s):]
	return true
}

func (q *quick) is(s string) { q.ok = q.may(s) && q.ok }

// pair reads one direction.
func (q *quick) pair() (p PairSample) {
	q.is(`{"from":`)
	p.From = q.name()
	q.is(`,"to":`)
	p.To = q.name()
	if q.may(`,"rail":`) {
		p.Rail = q.text()
	}
	q.is(`,"rate_GBps":`)
	p.Rate = q.rate()
	if q.may(`,"both_GBps":`) {
		p.Both = q.rate()
	}
	if q.may(`,"latency_us":`) {
		p.Latency = unit.Micros(q.number())
	}
	q.is(`}`)
	return p
}

// count is a whole number that fits everywhere.
func (q *quick) count() (v uint64) {
	i := 0
	for ; i < len(q.rest) && i < 16 && q.rest[i] >= '0' && q.rest[i] <= '9'; i++ {
		v = 10*v + uint64(q.rest[i]-'0')
	}
	if i == 0 || i == 16 || i > 1 && q.rest[0] == '0' {
		q.ok = false
		return 0
	}
	q.rest = q.rest[i:]
	return v
}

// number is a figure without sign and exponent, of an ordinary size.
func (q *quick) number() float64 {
	i, dots := 0, 0
	for ; i < len(q.rest) && i < 24; i++ {
		if c := q.rest[i]; c == '.' {
			dots++
		} else if c < '0' || c > '9' {
			break
		}
	}
	text := q.rest[:i]
	if i == 0 || i == 24 || dots > 1 || text[0] == '.' || text[i-1] == '.' || i > 1 && text[0] == '0' && text[1] != '.' {
		q.ok = false
		return 0
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v > 1e9 {
		q.ok = false
	}
	q.rest = q.rest[i:]
	return v
}

// rate is a figure in GB/s. What is below a byte a second is left to who explains it.
func (q *quick) rate() unit.Rate {
	v := q.number() * 1e9
	q.ok = q.ok && (v == 0 || v >= 1)
	return unit.Rate(v)
}

// quoted is what stands between two quotes, of plain characters only.
func (q *quick) quoted() []byte {
	if len(q.rest) == 0 || q.rest[0] != '"' {
		q.ok = false
		return nil
	}
	end := bytes.IndexByte(q.rest[1:], '"')
	if end < 0 {
		q.ok = false
		return nil
	}
	text := q.rest[1 : end+1]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			q.ok = false
			return nil
		}
	}
	q.rest = q.rest[end+2:]
	return text
}

func (q *quick) text() string { return string(q.quoted()) }

func (q *quick) name() Name {
	n, err := ParseName(q.text())
	if err != nil {
		q.ok = false
	}
	return n
}

func (q *quick) time() (t time.Time) {
	before := q.rest
	q.quoted()
	if q.ok && t.UnmarshalJSON(before[:len(before)-len(q.rest)]) != nil {
		q.ok = false
	}
	return t
}
