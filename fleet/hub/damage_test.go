package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
)

func ownEvent(i int) *fleet.Event {
	return &fleet.Event{
		At: time.Now().UTC(), Kind: fleet.KindTokens, Tokens: &fleet.Tokens{Node: fleet.Name(fmt.Sprint("x", i))},
	}
}

// opened is a server in a folder, and its connection to itself.
func opened(t *testing.T, dir string) (*bus.Server, *bus.Bus, func()) {
	t.Helper()
	srv, err := bus.Start(bus.ServerConfig{Dir: dir, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := srv.Connect(bus.Config{MaxBytes: 12 << 20}) // small, and so are its files
	if err == nil {
		err = b.Ensure(t.Context())
	}
	if err != nil {
		srv.Close()
		t.Fatal(err)
	}
	return srv, b, func() { b.Close(); srv.Close() }
}

// entries reads all that is stored.
func entries(t *testing.T, b *bus.Bus) (list []Entry) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*eventually.Limit)
	defer stop()
	read := false
	err := b.Follow(ctx, bus.Following{
		Each: func(e Entry) { list = append(list, e) }, CaughtUp: func(uint64) { read = true; stop() },
	})
	if !read {
		t.Fatal(err)
	}
	return list
}

// TestOwnNumbersGoOn: an event that was stored and is lost with the whole store is not followed by another of its
// number, and that it is lost is found.
func TestOwnNumbersGoOn(t *testing.T) {
	dir := t.TempDir()
	_, b, end := opened(t, dir)
	for i := range 3 {
		if err := OnBus(b).Publish(t.Context(), ownEvent(i)); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is known after another start too
		_, b, end = opened(t, dir)
		h, stop := hubAt(t, b)
		eventually.Holds(t, "it is found that 1 to 3 are missing", func() bool {
			return slices.ContainsFunc(h.View().Findings(), func(f finding.Finding) bool {
				return f.Kind == storeDamaged && f.Severity == finding.Error &&
					strings.Contains(fmt.Sprint(f.Evidence), "the stream: numbers 1 to 3")
			})
		})
		stop()
		end()
	}
	_, b, end = opened(t, dir)
	defer end()
	for _, e := range entries(t, b) {
		if e.Event.Seq <= 3 {
			t.Errorf("number %d is given again", e.Event.Seq)
		}
	}
}

// fillStore stores events of three nodes and of the server, long enough for several files. Node c says no more at last.
func fillStore(t *testing.T, dir string) []Entry {
	t.Helper()
	srv, b, end := opened(t, dir)
	defer end()
	padding := json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)
	publish := map[fleet.Name]*bus.Publisher{"": b.Publisher()}
	for _, n := range []fleet.Name{"a", "b", "c"} {
		cfg, err := srv.Node(n)
		if err != nil {
			t.Fatal(err)
		}
		node, err := bus.Connect(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close()
		publish[n] = node.Publisher()
	}
	for i := range 50 {
		for n, p := range publish {
			e := ownEvent(i)
			switch {
			case n == "c" && i > 3, n == "" && i%10 > 0, n == "b" && i%2 > 0:
				continue
			case n != "":
				e = &fleet.Event{
					At: e.At, Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: fmt.Sprint("10.0.0.1:", i), Map: padding},
				}
			}
			if err := p.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	return entries(t, b)
}

// harm does to a file of the stream what a bad disk does, and says what.
func harm(t *testing.T, store string, r *rand.Rand) (what string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(store, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(name, "/BUSBAR/") {
			files = append(files, name)
			if strings.HasSuffix(name, ".blk") { // most of what lies on a disk
				files = append(files, name, name, name)
			}
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal("no files in the store: ", err)
	}
	file := files[r.IntN(len(files))]
	name, _ := filepath.Rel(store, file)
	name = filepath.Base(filepath.Dir(name)) + "/" + filepath.Base(name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	switch kind := r.IntN(10); {
	case kind < 4 && len(data) > 0:
		for range 1 + r.IntN(3) {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		what, err = "bits flipped in "+name, os.WriteFile(file, data, 0o600)
	case kind < 7 && len(data) > 0:
		at := r.IntN(len(data))
		what, err = fmt.Sprintf("%s cut to %d of %d bytes", name, at, len(data)), os.Truncate(file, int64(at))
	case kind == 7 && len(data) > 512: // a sector that reads as zeros
		at := r.IntN(len(data)/512) * 512
		clear(data[at : at+512])
		what, err = "a sector of "+name+" is zero", os.WriteFile(file, data, 0o600)
	case kind == 8:
		what, err = "all of "+filepath.Dir(name)+" is gone", os.RemoveAll(filepath.Dir(file))
	default:
		what, err = name+" is gone", os.Remove(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return what
}

// TestDamagedStores starts a server on damaged stores: it starts every time, what is missing is reported, sequence for
// sequence, and nothing else is. BUSBAR_DAMAGED says how many.
func TestDamagedStores(t *testing.T) {
	times := 16
	if n, err := strconv.Atoi(os.Getenv("BUSBAR_DAMAGED")); err == nil {
		times = n
	}
	whole := t.TempDir()
	all := fillStore(t, whole)
	r := rand.New(rand.NewPCG(7, 7))
	lossy := 0
	for i := range times {
		dir := filepath.Join(t.TempDir(), "bus")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		what := harm(t, filepath.Join(dir, "store"), r)
		lost := damagedStore(t, dir, what, all)
		t.Logf("%3d %-50s %d of %d missing, all reported", i+1, what, lost, len(all))
		if lost > 0 {
			lossy++
		}
	}
	if lossy == 0 {
		t.Error("no store lost anything: the damage does not harm")
	}
}

// damagedStore checks what a server says about one store.
func damagedStore(t *testing.T, dir, what string, all []Entry) (lost int) {
	t.Helper()
	_, b, end := opened(t, dir)
	defer end()
	there := map[uint64]bool{}
	for _, e := range entries(t, b) {
		if e.Event == nil {
			t.Errorf("%s: message %d is no event", what, e.Seq)
		}
		there[e.Seq] = true
	}
	h, stop := hubAt(t, b)
	defer stop()
	missing, err := h.missing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := map[uint64]bool{}
	for _, g := range missing {
		for k := g.from; g.of == theStream && k <= g.to; k++ {
			told[k] = true
		}
	}
	for _, e := range all {
		if told[e.Seq] == there[e.Seq] {
			t.Errorf("%s: %d is there: %v, and reported missing: %v (%v)", what, e.Seq, there[e.Seq], told[e.Seq], missing)
		}
		if !there[e.Seq] {
			lost++
		}
	}
	if lost > 0 {
		eventually.Holds(t, "a finding says so: "+what, func() bool {
			f, ok := h.View().Finding(string(storeDamaged) + ":")
			return ok && f.Severity == finding.Error && len(f.Evidence) > 0
		})
	}
	return lost
}
