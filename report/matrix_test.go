package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/nvsmi"
)

func TestMatrix(t *testing.T) {
	for _, name := range []string{"baskerville-2", "dgx-1v", "sick", "fabric", "empty"} {
		var b bytes.Buffer
		if err := Matrix(&b, shown()[name]); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".matrix", b.Bytes())
	}
}

// TestMatrixReadsBack gives the table to the reader of nvidia-smi's own.
func TestMatrixReadsBack(t *testing.T) {
	for _, typ := range []*cluster.NodeType{baskerville(), dgx1v(), dgxH100()} {
		var b bytes.Buffer
		if err := Matrix(&b, alone(typ, 2)); err != nil {
			t.Fatal(err)
		}
		list, err := nvsmi.ReadMatrices("matrix", strings.NewReader(b.String()))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v in\n%s", typ.Name, err, b.String())
		}
		f := list[0]
		if len(f.Warnings) > 0 {
			t.Errorf("%s: %v", typ.Name, f.Warnings)
		}
		got := f.Types[0]
		if want := typ.Matrix(); !reflect.DeepEqual(got.Matrix(), want) {
			t.Errorf("%s: read back as\n%v\nwant\n%v", typ.Name, got.Matrix(), want)
		}
		for i, d := range got.Of(cluster.NIC) {
			if want := typ.Devices[typ.Of(cluster.NIC)[i]].Label; got.Devices[d].Label != want {
				t.Errorf("%s: NIC %d is %q, want %q", typ.Name, i, got.Devices[d].Label, want)
			}
		}
		for i, d := range got.Of(cluster.GPU) {
			if want := typ.CoresOf(typ.Of(cluster.GPU)[i]); got.CoresOf(d) != want {
				t.Errorf("%s: GPU %d has cores %q, want %q", typ.Name, i, got.CoresOf(d), want)
			}
		}
	}
}
