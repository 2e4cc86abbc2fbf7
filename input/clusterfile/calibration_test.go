package clusterfile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// A calibration survives YAML and JSON, and a wrong one says where it is wrong.
func TestCalibration(t *testing.T) {
	text := `name: site
nodes:
  - count: 2
    type: dgx-h100
calibration:
  points: 12
  median_ape: 0.03
  p90_ape: 0.09
  figures:
    - name: rdma_share
      value: 0.91
      low: 0.9
      high: 0.93
      source: two-nodes.log
    - name: hopper.launch
      value: 6.2
      unit: us
`
	f, err := Read("site.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &cluster.Calibration{Points: 12, Median: 0.03, P90: 0.09, Figures: []cluster.Calibrated{
		{Name: "rdma_share", Value: 0.91, Low: 0.9, High: 0.93, Source: "two-nodes.log"},
		{Name: "hopper.launch", Value: 6.2, Unit: "us"},
	}}
	if !reflect.DeepEqual(f.Calibration, want) {
		t.Fatalf("read %+v, want %+v", f.Calibration, want)
	}
	var b bytes.Buffer
	if err := Write(&b, cluster.Join(f)); err != nil {
		t.Fatal(err)
	}
	again, err := Read("again.yaml", &b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Calibration, want) {
		t.Errorf("written and read %+v, want %+v", again.Calibration, want)
	}
	c, err := f.Document().Cluster()
	if err != nil || !reflect.DeepEqual(c.Calibration, want) {
		t.Errorf("the document gives %+v, %v", c, err)
	}
	for bad, say := range map[string]string{
		"value: 0.91": "site.yaml:10: calibration.figures[0]: rdma_share: value -1; expected a number from zero on",
		"points: 12":  "site.yaml:5: calibration: -1 points, errors of 0.03 and 0.09; expected numbers from zero on",
	} {
		key, _, _ := strings.Cut(bad, ":")
		_, err := Read("site.yaml", strings.NewReader(strings.Replace(text, bad, key+": -1", 1)))
		if err == nil || err.Error() != say {
			t.Errorf("%s -1: %v, want %s", key, err, say)
		}
	}
}
