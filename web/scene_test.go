package web

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	topology "busbar.dev/cluster"
	"busbar.dev/hardware"
)

// TestSceneColours holds the page to a colour for every name that scenes have, in light and in dark.
func TestSceneColours(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes long under the race detector")
	}
	css, err := os.ReadFile("page/picture.css")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`"(?:fill|stroke)":"([^"]*)"`)
	for _, p := range hardware.Presets() {
		if p.GPUs == 1 {
			continue
		}
		for _, n := range []int{1, 3, 40} {
			c, err := hardware.Preset(p.Name, n)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(sceneOf(c, ""))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range named.FindAllSubmatch(data, -1) {
				if got := strings.Count(string(css), "--s-"+string(m[1])+":"); got != 3 {
					t.Fatalf("%s:%d has the colour %s, which page/picture.css defines %d times; expected light, dark and dark by "+
						"choice", p.Name, n, m[1], got)
				}
			}
		}
	}
}

func TestSceneOfNode(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"": "dgx-h100", "node1": "node1", "pod0": "dgx-h100", "nobody": "dgx-h100"} {
		if s := sceneOf(c, at); s.Title != want {
			t.Errorf("at %q: %q", at, s.Title)
		}
	}
	if s := sceneOf(&topology.Cluster{}, ""); s.Title != "cluster" {
		t.Errorf("nothing at all is called %q", s.Title)
	}
}
