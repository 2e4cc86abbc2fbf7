// Package readertest is what tests of readers have in common: what a fragment keeps to
// whatever it was read from, and short forms of fragments that are held against lines
// written by hand.
package readertest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// Reader is the reader of one format, and what recognises it.
type Reader struct {
	Match func([]byte) bool
	Read  func(string, io.Reader) (*cluster.Fragment, error)
}

// Text reads a text that the format is recognised in.
func (r Reader) Text(t testing.TB, text string) *cluster.Fragment {
	t.Helper()
	if !r.Match([]byte(text)) {
		t.Errorf("not recognised: %.60q", text)
	}
	f, err := r.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	Check(t, f)
	return f
}

// Fuzz hands the reader any bytes. It may refuse them, with an error that begins with
// the text's name; what it makes of others passes Check and, where given, more.
func (r Reader) Fuzz(f *testing.F, more func(*testing.T, *cluster.Fragment), seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r.Match(data)
		frag, err := r.Read("fuzz", bytes.NewReader(data))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		Check(t, frag)
		if more != nil {
			more(t, frag)
		}
	})
}

// maxMatrix bounds the nodes whose matrix of classes Check computes: it grows with
// the square of the devices.
const maxMatrix = 128

// Check holds a fragment to what everything behind the readers relies on.
func Check(t testing.TB, f *cluster.Fragment) {
	t.Helper()
	for _, ty := range f.Types {
		if err := ty.Check(); err != nil {
			t.Error(err)
		}
		if len(ty.Devices) <= maxMatrix {
			ty.Matrix()
		}
		checkPorts(t, ty)
	}
	for _, h := range f.Hosts {
		if h.Type < -1 || h.Type >= len(f.Types) {
			t.Errorf("host %q has type %d of %d", h.Name, h.Type, len(f.Types))
		}
	}
	for _, l := range f.Network.Links {
		if l.Rate.Known() && l.Rate.Value <= 0 || l.Max.Known() && l.Max.Value <= 0 {
			t.Errorf("link %+v: a rate that is none", l)
		}
		checkEnd(t, f, l.A)
		checkEnd(t, f, l.B)
	}
}

func checkPorts(t testing.TB, ty *cluster.NodeType) {
	t.Helper()
	for i := range ty.Devices {
		if ty.Devices[i].NIC == nil {
			continue
		}
		for _, p := range ty.Devices[i].NIC.Ports {
			if p.Rate.Known() && p.Rate.Value <= 0 || p.Max.Known() && p.Max.Value <= 0 {
				t.Errorf("%s: a rate that is none: %+v", ty.Devices[i].Name, p)
			}
		}
	}
}

func checkEnd(t testing.TB, f *cluster.Fragment, e cluster.End) {
	t.Helper()
	if e.Switch >= len(f.Network.Switches) || e.Switch >= 0 && len(e.Hosts) > 0 {
		t.Errorf("end %+v with %d switches", e, len(f.Network.Switches))
	}
	for _, s := range e.Hosts {
		if s.First < 0 || s.N < 1 || s.First+s.N > len(f.Hosts) {
			t.Errorf("end %+v of %d hosts", e, len(f.Hosts))
			continue
		}
		for h := s.First; h < s.First+s.N; h++ {
			if ty := f.TypeOf(h); e.NIC >= 0 && (ty == nil || e.NIC >= ty.Count(cluster.NIC)) {
				t.Errorf("end %+v: host %q has no such NIC", e, f.Hosts[h].Name)
			}
		}
	}
}
