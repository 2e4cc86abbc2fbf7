// Package keywords finds which of many words stand in a text, in one pass over
// its bytes whatever their number.
//
// It is the automaton of Aho and Corasick (CACM 18(6), 1975), made whole: every
// state has a transition for every class of bytes, so that a byte costs one look
// into a table. Letters are compared without case.
package keywords

import (
	"slices"
	"strings"
)

// Set is a set of words to look for. It is not changed by use.
type Set struct {
	class   [256]uint8
	classes int
	next    []int32   // where a state's row begins, plus the class; negative (^row) where words end in the state
	found   [][]int32 // words that end in a state
}

// New makes a set. Empty words are never found.
func New(words []string) *Set {
	s := &Set{classes: 1} // class 0: bytes that no word has
	for _, w := range words {
		for _, b := range []byte(w) {
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			if s.class[b] == 0 {
				s.class[b] = uint8(s.classes)
				s.classes++
			}
		}
	}
	for b := byte('A'); b <= 'Z'; b++ {
		s.class[b] = s.class[b+'a'-'A']
	}
	s.grow()
	for i, w := range words {
		if w == "" {
			continue
		}
		at := int32(0)
		for _, b := range []byte(w) {
			slot := int(at)*s.classes + int(s.class[b])
			if s.next[slot] == 0 {
				s.next[slot] = s.grow()
			}
			at = s.next[slot]
		}
		s.found[at] = append(s.found[at], int32(i))
	}
	s.complete()
	for i, to := range s.next {
		if s.next[i] = to * int32(s.classes); s.found[to] != nil {
			s.next[i] = ^s.next[i]
		}
	}
	return s
}

// NewDigitless makes a set for which all digits are one: "signal 0" is found in "signal 9".
func NewDigitless(words []string) *Set {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0'
			}
			return r
		}, w)
	}
	s := New(list)
	for b := '1'; b <= '9'; b++ {
		s.class[b] = s.class['0']
	}
	return s
}

// grow adds a state.
func (s *Set) grow() int32 {
	n := int32(len(s.found))
	s.next = append(s.next, make([]int32, s.classes)...)
	s.found = append(s.found, nil)
	return n
}

// complete gives every state a transition for every byte: where its own word
// does not go on, the longest end of it that begins another word does.
func (s *Set) complete() {
	fail := make([]int32, len(s.found))
	queue := make([]int32, 0, len(s.found))
	for c := range s.classes {
		if to := s.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		back := fail[at]
		s.found[at] = append(s.found[at], s.found[back]...)
		for c := range s.classes {
			slot := int(at)*s.classes + c
			to := s.next[slot]
			if to == 0 {
				s.next[slot] = s.next[int(back)*s.classes+c]
				continue
			}
			fail[to] = s.next[int(back)*s.classes+c]
			queue = append(queue, to)
		}
	}
}

// Scan calls hit with the number of every word in a text, in the order of their
// ends; a word that comes twice is told twice.
func (s *Set) Scan(text string, hit func(word int)) {
	at := int32(0)
	for i := range len(text) {
		if at = s.next[at+int32(s.class[text[i]])]; at < 0 {
			at = ^at
			for _, w := range s.found[int(at)/s.classes] {
				hit(int(w))
			}
		}
	}
}

// In reports whether any of the words is in a text.
func (s *Set) In(text string) bool {
	at := int32(0)
	for i := range len(text) {
		if at = s.next[at+int32(s.class[text[i]])]; at < 0 {
			return true
		}
	}
	return false
}

// All lists the words that are in a text, each once, by their numbers.
func (s *Set) All(text string) (words []int) {
	s.Scan(text, func(w int) { words = append(words, w) })
	slices.Sort(words)
	return slices.Compact(words)
}
