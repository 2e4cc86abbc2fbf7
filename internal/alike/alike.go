// Package alike remembers what was found in texts for those that differ from them in nothing but which digits they
// hold: most lines of a long log have the form of one before.
package alike

import (
	"encoding/binary"
	"hash/maphash"
)

// most is how many forms are remembered; where there are more, all are forgotten.
const most = 1 << 12

// Memo remembers what was found in texts. The zero value knows nothing yet.
type Memo[T any] struct {
	Exact bool // digits tell texts apart, too

	seed  maphash.Seed
	blank []byte
	found map[uint64]T
}

// Of is what find says of the first text that was like this one.
func (m *Memo[T]) Of(text string, find func(text string) T) T {
	if m.found == nil {
		m.seed, m.found = maphash.MakeSeed(), map[uint64]T{}
	}
	if m.blank = append(m.blank[:0], text...); !m.Exact {
		blank(m.blank)
	}
	key := maphash.Bytes(m.seed, m.blank)
	known, ok := m.found[key]
	if !ok {
		if len(m.found) == most {
			clear(m.found)
		}
		known = find(text)
		m.found[key] = known
	}
	return known
}

// blank writes every digit of a text as 0.
func blank(rest []byte) {
	for ; len(rest) >= 8; rest = rest[8:] { // eight bytes at a time
		v := binary.LittleEndian.Uint64(rest)
		t := v ^ 0x3030303030303030
		other := (t&0x7f7f7f7f7f7f7f7f + 0x7676767676767676 | t) & 0x8080808080808080 // above 9
		digit := (other ^ 0x8080808080808080) >> 7 * 0x0f
		binary.LittleEndian.PutUint64(rest, v&^digit)
	}
	for i, c := range rest {
		if c >= '0' && c <= '9' {
			rest[i] = '0'
		}
	}
}
