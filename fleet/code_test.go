package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Event {
	return &Event{
		Seq: 3, At: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), Node: "gpu01.cluster", Kind: KindMeasured,
		Measured: &Measured{
			Order: "o1", Part: "o1/1/2/0", Sweep: 1, Round: 2, Took: time.Second,
			Pairs: []PairSample{{From: "gpu01.cluster", To: "gpu02", Rate: 11e9, Both: 9e9, Latency: 25e6}},
		},
	}
}

func TestEventRoundTrip(t *testing.T) {
	data, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode[Event](data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if d := cmp.Diff(sample(), back); d != "" {
		t.Error(d)
	}
}

func TestEventRefused(t *testing.T) {
	for name, change := range map[string]func(*Event){
		"no number":   func(n *Event) { n.Seq = 0 },
		"no time":     func(n *Event) { n.At = time.Time{} },
		"wrong field": func(n *Event) { n.Kind = KindLink },
		"two fields":  func(n *Event) { n.Link = &Link{} },
		"no names":    func(n *Event) { n.Measured.Pairs[0].To = "" },
	} {
		n := sample()
		change(n)
		if n.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"a", "gpu-01", "gpu01.rack2.example.org", "0a", "n_1"} {
		n, err := ParseName(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if strings.ContainsAny(n.Token(), ".*> ") {
			t.Errorf("%s: token %q has more than one part", s, n.Token())
		}
		for _, subject := range []string{LogOf(n), BeatOf(n), ProgressOf(n), PartOf(n)} {
			if back, err := OfSubject(subject); err != nil || back != n {
				t.Errorf("%s: %s gives %q, %v", s, subject, back, err)
			}
		}
	}
	for _, s := range []string{"", ".", "-a", "a b", "a>b", "a.*", "a~b", "ä", "a\n", strings.Repeat("a", MaxName+1)} {
		if _, err := ParseName(s); err == nil {
			t.Errorf("%q: taken as a name", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	data, _ := Encode(sample())
	f.Add(data)
	f.Add([]byte(`{"seq":1,"at":"2026-01-01T00:00:00Z","kind":"order","order":{"id":"a","what":{"measure":"pairs"}}}`))
	f.Add([]byte(`{"id":"p","order":"o","ranks":["a","b"],"meet":"a:1","secret":"0123456789abcdef","what":{"measure":"pairs","small_bytes":8,"large_bytes":1024,"iters":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := Decode[Event](data); err == nil {
			again, err := Encode(n)
			if err != nil {
				t.Skip("longer in our words than allowed") // numbers grow when they are written out
			}
			if _, err := Decode[Event](again); err != nil {
				t.Errorf("what was read is refused when written again: %v", err)
			}
		}
		if p, err := Decode[Part](data); err == nil && !p.Stop && p.Rank >= len(p.Ranks) {
			t.Error("a rank outside of its group was taken")
		}
		_, _ = Decode[Order](data)
		_, _ = Decode[Beat](data)
		_, _ = Decode[Answer](data)
	})
}

// BenchmarkDecodeEvent reads the outcome of a pair.
func BenchmarkDecodeEvent(b *testing.B) {
	n := sample()
	n.Measured.Pairs = append(n.Measured.Pairs, n.Measured.Pairs[0])
	data, err := Encode(n)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode[Event](data); err != nil {
			b.Fatal(err)
		}
	}
}
