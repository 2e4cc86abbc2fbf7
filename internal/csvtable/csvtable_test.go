package csvtable

import (
	"reflect"
	"strings"
	"testing"

	"busbar.dev/unit"
)

type row struct {
	Name string     `csv:"name"`
	Also []string   `csv:"also,optional"`
	Size unit.Bytes `csv:"size"`
	Rate unit.Rate  `csv:"port_Gbps,optional"`
	Wait unit.Time  `csv:"latency_ns,optional"`
	Lane float64    `csv:"lane_GBps,optional"`
	N    int        `csv:"n,optional"`
	Else string
}

func TestRead(t *testing.T) {
	got, err := Read[row]("# a comment\nname,size,also,port_Gbps,latency_ns,lane_GBps,n\na,80 GiB,x|y,400,1.5,2.5,7\n" +
		"b,1KiB,,,,,\n")
	want := []row{
		{
			Name: "a", Also: []string{"x", "y"}, Size: 80 * unit.GiB, Rate: 400 * unit.Gbps, Wait: 1500 * unit.Picosecond,
			Lane: 2.5, N: 7,
		},
		{Name: "b", Size: unit.KiB},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	// A column that is optional may be left out.
	if got, err := Read[row]("name,size\na,1 B\n"); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "EOF",
		"name,size,weight\na,1 B,3\n":    "weight",
		"name,name,size\na,a,1 B\n":      "twice",
		"name\na\n":                      "missing",
		"name,size\na,\n":                "line 2: size: empty",
		"name,size\na,much\n":            "line 2: size",
		"name,size,n\na,1 B,x\n":         "line 2: n",
		"name,size,port_Gbps\na,1 B,x\n": "line 2: port_Gbps",
		"name,size\na,1 B\na,2 B\n":      "line 3: name \"a\" stands there twice",
		"name,size\na,1 B,2\n":           "wrong number of fields",
	} {
		if _, err := Read[row](text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; expected %q", text, err, want)
		}
	}
	defer func() {
		if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "x.csv: ") {
			t.Errorf("Must said %q", s)
		}
	}()
	Must[row]("x.csv", "name\n")
}
