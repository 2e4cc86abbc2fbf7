package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

func opened(t testing.TB, dir string, most int64) *spool {
	t.Helper()
	s, err := openSpool(dir, "n", most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// framed is a file of lines.
func framed(t testing.TB, lines ...line) (text []byte) {
	t.Helper()
	for _, l := range lines {
		data, err := l.frame()
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, data...)
	}
	return text
}

// word is news that can be told from other news.
func event(k fleet.Kind, text string) *fleet.Event {
	n := &fleet.Event{Node: "n", Kind: k}
	switch k {
	case fleet.KindMeasured:
		n.Measured = &fleet.Measured{Part: text}
	case fleet.KindCounters:
		n.Counters = &fleet.Counters{Boot: text}
	case fleet.KindLink:
		n.Link = &fleet.Link{Port: text}
	}
	return n
}

// words are what waits, oldest first; reading it empties the spool.
func texts(t *testing.T, s *spool) (all []string) {
	t.Helper()
	for s.Len() > 0 {
		n, err := s.Event()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n.Measured.Part)
		if err := s.Stored(1, s.last()+1); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestSpoolCutAnywhere cuts the file at every byte, as a power cut would, and expects a prefix
// of what was said, whole lines only, to which more can be added.
func TestSpoolCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	type state struct {
		size int64
		wait []string
	}
	states := []state{{}, {size: s.size}}
	note := func(wait ...string) { states = append(states, state{s.size, wait}) }
	add := func(text string) {
		if err := s.add(event(fleet.KindMeasured, text)); err != nil {
			t.Fatal(err)
		}
	}
	add("0")
	note("0")
	add("1")
	note("0", "1")
	add("2")
	note("0", "1", "2")
	if err := s.Stored(2, 2); err != nil {
		t.Fatal(err)
	}
	note("2")
	add("3")
	note("2", "3")
	s.close()
	whole, err := os.ReadFile(filepath.Join(dir, spoolName))
	if err != nil {
		t.Fatal(err)
	}
	near := func(cut int) bool { // a line's end, or any byte of the last one
		return int64(cut) > states[len(states)-2].size ||
			slices.ContainsFunc(states, func(s state) bool { return s.size-2 <= int64(cut) && int64(cut) <= s.size+2 })
	}
	for cut := range len(whole) + 1 {
		if !near(cut) && cut%37 != 0 {
			continue // each takes several waits for the disk
		}
		there := t.TempDir()
		if err := os.WriteFile(filepath.Join(there, spoolName), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := opened(t, there, 0)
		i := len(states) - 1
		for states[i].size > int64(cut) {
			i--
		}
		if err := s.add(event(fleet.KindMeasured, "new")); err != nil {
			t.Fatal(err)
		}
		s.close()
		s = opened(t, there, 0)
		got := texts(t, s)
		if want := append(slices.Clone(states[i].wait), "new"); !slices.Equal(got, want) {
			t.Fatalf("cut at %d of %d: %v wait, want %v", cut, len(whole), got, want)
		}
		s.close()
	}
}

func TestSpoolKeepsItsFolder(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	if _, err := openSpool(dir, "n", 0); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second agent in the folder: %v", err)
	}
	if err := s.add(event(fleet.KindMeasured, "x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Stored(1, 17); err != nil {
		t.Fatal(err)
	}
	s.close()
	if _, err := openSpool(dir, "other", 0); err == nil || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("another node's folder: %v", err)
	}
	s = opened(t, dir, 0)
	defer s.close()
	if s.last() != 17 || s.Len() != 0 {
		t.Errorf("number %d, %d wait", s.last(), s.Len())
	}
}

// TestSpoolFormat reads a spool of the last version, and refuses one of a later version whole.
func TestSpoolFormat(t *testing.T) {
	for format, want := range map[int]string{0: "", 1: "", 2: "has format 2"} {
		dir := t.TempDir()
		text := framed(t, line{Node: "n", Format: format}, line{ID: "x.1", News: []byte("{}")})
		if err := os.WriteFile(filepath.Join(dir, spoolName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSpool(dir, "n", 0)
		switch {
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)), err == nil && want != "":
			t.Errorf("format %d: %v", format, err)
		case err == nil:
			if s.Len() != 1 {
				t.Errorf("format %d: %d wait; want 1", format, s.Len())
			}
			s.close()
		}
	}
}

// TestSpoolFull fills the spool: what can be read again is refused first.
func TestSpoolFull(t *testing.T) {
	s := opened(t, t.TempDir(), 64<<10)
	defer s.close()
	long := strings.Repeat("x", 1000)
	fill := func(k fleet.Kind) (n int) {
		for ; ; n++ {
			if err := s.add(event(k, long)); errors.Is(err, errFull) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	counters, links, measured := fill(fleet.KindCounters), fill(fleet.KindLink), fill(fleet.KindMeasured)
	if counters < 20 || links < 8 || measured < 8 || s.lost() != 3 {
		t.Errorf("%d counters, then %d links, then %d results; %d lost", counters, links, measured, s.lost())
	}
	if s.live > 64<<10 {
		t.Errorf("%d bytes wait", s.live)
	}
	if err := s.add(event(fleet.KindMeasured, strings.Repeat("x", fleet.MaxBytes))); err == nil ||
		errors.Is(err, errFull) {
		t.Errorf("news that no server takes: %v", err)
	}
}

func TestSpoolCompacts(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	long := strings.Repeat("x", 10_000)
	for i := range 500 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprintf("%03d%s", i, long))); err != nil {
			t.Fatal(err)
		}
		if i >= 5 {
			if err := s.Stored(1, uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.size > 3<<20 {
		t.Errorf("%d bytes on disk for %d that wait", s.size, s.live)
	}
	s.close()
	s = opened(t, dir, 0)
	defer s.close()
	got := texts(t, s)
	if len(got) != 5 || got[0][:3] != "495" || got[4][:3] != "499" {
		t.Errorf("%d wait", len(got))
	}
}

func FuzzSpool(f *testing.F) {
	f.Add([]byte{})
	f.Add(framed(f, line{Node: "n"}))
	f.Add(framed(f, line{Node: "n"}, line{ID: "a.1", News: []byte(`{"seq":1}`)}))
	f.Add(framed(f, line{Node: "n"}, line{Stored: "a.1", Number: 7}))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, spoolName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSpool(dir, "n", 0)
		if err != nil {
			if !bytes.Contains(data, []byte("node")) && len(data) > 0 && !strings.Contains(err.Error(), "has to say") {
				t.Fatal(err)
			}
			return
		}
		before := s.Len()
		if err := s.add(event(fleet.KindMeasured, "x")); err != nil {
			t.Fatal(err)
		}
		s.close()
		if s, err = openSpool(dir, "n", 0); err != nil || s.Len() != before+1 {
			t.Fatalf("%d wait after %d and one more, %v", s.Len(), before, err)
		}
		s.close()
	})
}

// BenchmarkDrain is how fast a backlog reaches the store of a server that has come back.
func BenchmarkDrain(b *testing.B) {
	srv, err := bus.Start(bus.ServerConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	hub, err := srv.Connect(bus.Config{MaxBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer hub.Close()
	if err := hub.Ensure(b.Context()); err != nil {
		b.Fatal(err)
	}
	creds, _, err := srv.Keys().Issue("n", 0)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		b.Fatal(err)
	}
	node, err := bus.Connect(bus.Config{URLs: []string{srv.URL()}, Creds: file, Node: "n"})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close()
	s := opened(b, b.TempDir(), 0)
	defer s.close()
	for range b.N {
		n := event(fleet.KindMeasured, "x")
		n.At = time.Now()
		if err := s.add(n); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	if err := node.Publisher().PublishAll(b.Context(), s); err != nil || s.Len() != 0 {
		b.Fatalf("%d wait, %v", s.Len(), err)
	}
}

// TestSpoolDamaged turns over every byte of a file in which something waits: at most the line with
// the byte in it is lost, and what is stored never waits again but for the line that said so.
func TestSpoolDamaged(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	for i := range 6 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	path := filepath.Join(dir, spoolName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x15
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s := opened(t, dir, 0)
		got, damaged := texts(t, s), s.damaged
		s.close()
		if len(got) < 4 || !slices.IsSorted(got) || len(got) < 6 && damaged == 0 && i < len(whole)-1 {
			t.Fatalf("byte %d: %v are left, %d places damaged", i, got, damaged)
		}
	}
	// Rubbish to no end is given up.
	if err := os.WriteFile(path, bytes.Repeat([]byte{'\n'}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s = opened(t, dir, 0)
	defer s.close()
	if s.Len() != 0 || s.damaged != mostDamage {
		t.Errorf("%d wait, %d damaged", s.Len(), s.damaged)
	}
}

// TestSpoolOnAFullDisk stores what waits while nothing can be written: it goes on, and the disk is
// told as soon as it can be.
func TestSpoolOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	for i := range 4 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	good := s.f
	full, err := os.Open(s.path) // to read only
	if err != nil {
		t.Fatal(err)
	}
	s.f = full
	for range 2 {
		if err := s.Stored(1, s.last()+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.add(event(fleet.KindMeasured, "lost")); err == nil || s.Len() != 2 {
		t.Fatalf("%v, %d wait", err, s.Len())
	}
	full.Close()
	s.f = good
	if err := s.add(event(fleet.KindMeasured, "4")); err != nil {
		t.Fatal(err)
	}
	s.close()
	s = opened(t, dir, 0)
	defer s.close()
	if n := s.last(); n != 2 {
		t.Errorf("the last number is %d", n)
	}
	if got := texts(t, s); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("%v wait", got)
	}
}
