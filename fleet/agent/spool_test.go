package agent

import (
	"bytes"
	"encoding/json"
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

func opened(t testing.TB, dir string) *spool {
	t.Helper()
	s, err := openSpool(dir, "n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// framed is a file of lines.
func framed(t testing.TB, lines ...line) (text []byte) {
	t.Helper()
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, frame(data)...)
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
	for {
		id, n, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if id == "" {
			return all
		}
		all = append(all, n.Measured.Part)
		s.Stored(id, s.number+1)
	}
}

// TestSpoolCutAnywhere cuts the file at every byte, as a power cut would, and expects a prefix
// of what was said, whole lines only, to which more can be added.
func TestSpoolCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
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
	s.Stored(s.waiting[1].id, 2)
	note("2")
	add("3")
	note("2", "3")
	s.unlock()
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
		s := opened(t, there)
		i := len(states) - 1
		for states[i].size > int64(cut) {
			i--
		}
		if err := s.add(event(fleet.KindMeasured, "new")); err != nil {
			t.Fatal(err)
		}
		s.unlock()
		s = opened(t, there)
		got := texts(t, s)
		if want := append(slices.Clone(states[i].wait), "new"); !slices.Equal(got, want) {
			t.Fatalf("cut at %d of %d: %v wait, want %v", cut, len(whole), got, want)
		}
		s.unlock()
	}
}

func TestSpoolKeepsItsFolder(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	if _, err := openSpool(dir, "n"); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second agent in the folder: %v", err)
	}
	if err := s.add(event(fleet.KindMeasured, "x")); err != nil {
		t.Fatal(err)
	}
	s.Stored(s.waiting[0].id, 17)
	s.unlock()
	if _, err := openSpool(dir, "other"); err == nil || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("another node's folder: %v", err)
	}
	s = opened(t, dir)
	defer s.unlock()
	if s.number != 17 || len(s.waiting) != 0 {
		t.Errorf("number %d, %d wait", s.number, len(s.waiting))
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
		s, err := openSpool(dir, "n")
		switch {
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)), err == nil && want != "":
			t.Errorf("format %d: %v", format, err)
		case err == nil:
			if len(s.waiting) != 1 {
				t.Errorf("format %d: %d wait; want 1", format, len(s.waiting))
			}
			s.unlock()
		}
	}
}

// TestSpoolFull fills the spool: what has no room is refused and counted.
func TestSpoolFull(t *testing.T) {
	s := opened(t, t.TempDir())
	s.most = 64 << 10
	defer s.unlock()
	err := error(nil)
	for err == nil {
		err = s.add(event(fleet.KindMeasured, strings.Repeat("x", 1000)))
	}
	if !errors.Is(err, errFull) || len(s.waiting) < 50 || s.dropped != 1 || s.live > 64<<10 {
		t.Errorf("%v after %d events of %d bytes; %d dropped", err, len(s.waiting), s.live, s.dropped)
	}
	if err := s.add(event(fleet.KindMeasured, strings.Repeat("x", fleet.MaxBytes))); err == nil ||
		errors.Is(err, errFull) {
		t.Errorf("an event that no server takes: %v", err)
	}
}

func TestSpoolCompacts(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	long := strings.Repeat("x", 10_000)
	for i := range 500 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprintf("%03d%s", i, long))); err != nil {
			t.Fatal(err)
		}
		if i >= 5 {
			s.Stored(s.waiting[0].id, uint64(i))
		}
	}
	if s.size > 3<<20 {
		t.Errorf("%d bytes on disk for %d that wait", s.size, s.live)
	}
	s.unlock()
	s = opened(t, dir)
	defer s.unlock()
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
		s, err := openSpool(dir, "n")
		if err != nil {
			if !bytes.Contains(data, []byte("node")) && len(data) > 0 && !strings.Contains(err.Error(), "has to say") {
				t.Fatal(err)
			}
			return
		}
		before := len(s.waiting)
		if err := s.add(event(fleet.KindMeasured, "x")); err != nil {
			t.Fatal(err)
		}
		s.unlock()
		if s, err = openSpool(dir, "n"); err != nil || len(s.waiting) != before+1 {
			t.Fatalf("%d wait after %d and one more, %v", len(s.waiting), before, err)
		}
		s.unlock()
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
	s := opened(b, b.TempDir())
	defer s.unlock()
	for range b.N {
		n := event(fleet.KindMeasured, "x")
		n.At = time.Now()
		if err := s.add(n); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	if err := node.Publisher().PublishAll(b.Context(), s); err != nil || len(s.waiting) != 0 {
		b.Fatalf("%d wait, %v", len(s.waiting), err)
	}
}

// TestSpoolDamaged turns over every byte of a file in which something waits: at most the line with
// the byte in it is lost, and what is stored never waits again but for the line that said so.
func TestSpoolDamaged(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	for i := range 6 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	s.unlock()
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
		s := opened(t, dir)
		got, damaged := texts(t, s), s.damaged
		s.unlock()
		if len(got) < 4 || !slices.IsSorted(got) || len(got) < 6 && damaged == 0 && i < len(whole)-1 {
			t.Fatalf("byte %d: %v are left, %d places damaged", i, got, damaged)
		}
	}
	// Rubbish to no end is passed over.
	if err := os.WriteFile(path, bytes.Repeat([]byte{'\n'}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s = opened(t, dir)
	defer s.unlock()
	if len(s.waiting) != 0 || s.damaged != 1<<20 || s.size > 1<<10 {
		t.Errorf("%d wait, %d damaged, %d bytes are left", len(s.waiting), s.damaged, s.size)
	}
}

// TestSpoolOnAFullDisk stores what waits while nothing can be written: it goes on. An agent that starts again then
// finds in the store what it had sent, and the next line that fits says it to the disk.
func TestSpoolOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	for i := range 4 {
		if err := s.add(event(fleet.KindMeasured, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	first, path := s.waiting[0].id, s.path
	s.path = filepath.Join(dir, "nowhere", spoolName)
	s.Stored(s.waiting[0].id, 1)
	s.Stored(s.waiting[0].id, 2)
	if err := s.add(event(fleet.KindMeasured, "lost")); err == nil || len(s.waiting) != 2 {
		t.Fatalf("%v, %d wait", err, len(s.waiting))
	}
	s.unlock()
	s = opened(t, dir)
	if len(s.waiting) != 4 || s.waiting[0].id != first {
		t.Errorf("%d wait, the first is %s; want 4 from %s", len(s.waiting), s.waiting[0].id, first)
	}
	s.Stored(s.waiting[1].id, 2) // as the publisher does, which finds them in the store
	if err := s.add(event(fleet.KindMeasured, "4")); err != nil || s.path != path {
		t.Fatal(err)
	}
	s.unlock()
	s = opened(t, dir)
	defer s.unlock()
	if s.number != 2 {
		t.Errorf("the last number is %d", s.number)
	}
	if got := texts(t, s); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("%v wait", got)
	}
}
