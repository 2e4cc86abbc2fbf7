package launch

import (
	"io"
	"os"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// What place writes for Kubernetes is what launch/schema holds against its types.
func TestPlaceFiles(t *testing.T) {
	r := &Request{Hosts: []string{"gpu01", "GPU02"}, GPUs: 8, Leaves: 1, Level: cluster.Leaf, Require: true}
	for _, form := range []string{"jobset", "kueue"} {
		want, err := os.ReadFile("testdata/place/" + form + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.Write(&b, form); err != nil || b.String() != string(want) {
			t.Errorf("%s: %v\n%s", form, err, b.String())
		}
	}
}

// TestPlaceRefusesNames: a name that a shell or YAML would read is written nowhere.
func TestPlaceRefusesNames(t *testing.T) {
	for _, form := range RequestForms()[:4] {
		r := &Request{Hosts: []string{"n0\ntouch /tmp/x #", `n1"x`}, GPUs: 8, Racks: 1}
		if err := r.Write(io.Discard, form); err == nil {
			t.Errorf("%s: written", form)
		}
	}
}
