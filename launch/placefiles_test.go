package launch

import (
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
