package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/texttab"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Floors prints what every part of a cluster should reach.
func Floors(p *Page, d *query.FloorsDoc) {
	p.lines(p.bold(fmt.Sprintf("%s of %v on %s, NCCL %s: busbw that healthy parts reach at least", d.Op, d.Size, d.Cluster,
		d.NCCL)))
	t := texttab.New("part", "nodes", ">parts like it", ">GPUs", ">expected (GB/s)|%.3g", ">floor (GB/s)", "grade",
		"limit")
	for _, r := range d.Parts {
		t.Add(r.Part, r.Nodes, r.Count, r.Ranks, r.BusBW.GBps(), floorNumber(r.Floor), string(r.Grade), string(r.Limit))
	}
	p.table(t)
	for _, s := range d.Skipped {
		p.para("", p.yellow("left out")+": "+s)
	}
}

// FloorForms are the names of the ways in which other programs' checks are told a floor.
func FloorForms() []string {
	var list []string
	for _, f := range floorForms {
		list = append(list, f.name)
	}
	return list
}

// floorForms are what other programs read. Where one compares the best of several sizes with its threshold, the floor
// is that of the best; where it compares each, that of the worst.
var floorForms = []struct {
	name  string
	worst bool
	write func(w io.Writer, f floor) error
}{
	{"number", false, func(w io.Writer, f floor) error {
		_, err := fmt.Fprintln(w, f.number)
		return err
	}},
	// NVIDIA's Cluster Readiness Engine holds the best of all sizes against an expression (its ADR-054).
	{"cel", false, func(w io.Writer, f floor) error {
		_, err := fmt.Fprintf(w, "%sthresholds:\n  busBandwidthGBps: \"value >= %s\"\n", f.comment(), f.number)
		return err
	}},
	// NVSentinel's preflight checks hold every size against BW_THRESHOLD_GBPS (its docs/configuration/preflight).
	{"nvsentinel", true, func(w io.Writer, f floor) error {
		if f.Op.String() != "all_reduce" {
			return fmt.Errorf("-o nvsentinel with --op %s: NVSentinel's preflight checks measure all_reduce", f.Op)
		}
		check, size, value := "preflight-nccl-allreduce", "MESSAGE_SIZES", strings.Join(f.sizes, ",")
		if f.nodes == 1 {
			mib := f.row.Size / unit.MiB
			if mib*unit.MiB != f.row.Size || len(f.sizes) > 1 {
				return fmt.Errorf("-o nvsentinel on one node: its loopback check takes one size of whole MiB; give --size 256M")
			}
			check, size, value = "preflight-nccl-loopback", "TEST_SIZE_MB", fmt.Sprint(int64(mib))
		}
		_, err := fmt.Fprintf(w, "%s# Helm replaces lists: add env to your own entry of the container.\n"+
			"preflight:\n  initContainers:\n    - name: %s\n      env:\n        - name: BW_THRESHOLD_GBPS\n          value: "+
			"\"%s\"\n"+
			"        - name: %s\n          value: \"%s\"\n", f.comment(), check, f.number, size, value)
		return err
	}},
	// A rule of SuperBench's data diagnosis: what its criteria accept is defective.
	{"superbench", true, func(w io.Writer, f floor) error {
		name := strings.ReplaceAll(strings.TrimSuffix(f.Op.Binary(), "_perf"), "_", "")
		if !slices.Contains(superbenchOps, name) {
			return fmt.Errorf("-o superbench with --op %s: its nccl-bw measures %s", f.Op, strings.Join(superbenchOps, ", "))
		}
		var metrics strings.Builder
		for _, bytes := range f.bytes {
			fmt.Fprintf(&metrics, "        - nccl-bw/%s_%d_busbw\n", name, int64(bytes))
		}
		_, err := fmt.Fprintf(w, "%s# Where the benchmark has an annotation, as nccl-bw:nvlink, add it to the metrics.\n"+
			"version: v0.12\n"+
			"superbench:\n  rules:\n    busbar-%s:\n      function: value\n      criteria: \"lambda x: x < %s\"\n"+
			"      categories: NCCL\n      metrics:\n%s", f.comment(), name, f.number, metrics.String())
		return err
	}},
	// nccl-tests ends with 1 where the mean of all rows is below 0.9 of the variable (its src/common.cu).
	{"nccl-tests", true, func(w io.Writer, f floor) error {
		if len(f.sizes) > 1 {
			return fmt.Errorf("-o nccl-tests: nccl-tests compares the mean of all sizes; give one --size")
		}
		settings := ""
		for _, e := range f.env {
			if !plainSetting.MatchString(e) {
				return fmt.Errorf("-o nccl-tests with --env %.80q: expected a setting that needs no quotes in a shell", e)
			}
			settings += " -x " + e
		}
		least := math.Floor(f.value/0.9*100) / 100
		_, err := fmt.Fprintf(w, "%sNCCL_TESTS_MIN_BW=%.2f mpirun -x NCCL_TESTS_MIN_BW%s -np %d -N %d %s -b %s -e %s -g 1 # "+
			"1 below %s GB/s\n",
			f.comment(), least, settings, f.row.Ranks, f.row.Ranks/max(f.nodes, 1), f.Op.Binary(), f.sizes[0], f.sizes[0],
			f.number)
		return err
	}},
}

// superbenchOps are what SuperBench's nccl-bw measures.
var superbenchOps = []string{"allreduce", "allgather", "broadcast", "reduce", "reducescatter", "alltoall"}

// floor is what a form writes.
type floor struct {
	*query.PredictDoc
	row    predict.Row
	nodes  int
	value  float64 // GB/s, rounded down
	number string
	env    []string // NCCL's settings that were given
	sizes  []string // as nccl-tests takes them: 8G, 8589934592
	bytes  []unit.Bytes
}

// comment says what the number is, on one line whatever a cluster is called.
func (f floor) comment() string {
	return "#" +
		oneLine(fmt.Sprintf(" busbar: %s of %v on %s %s, %s: %.3g GB/s expected, %s at least (%s)%s", f.Op, f.row.Size,
			f.Cluster,
			f.row.Layout, library(f.PredictDoc), f.row.BusBW.GBps(), f.number, f.row.Grade,
			when(len(f.env) > 0, ", with "+strings.Join(f.env, " ")))) + "\n"
}

// oneLine is a text without what ends a line or turns its direction, for programs that read the rest of it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
}

// smallest is the size from which a check's floor says something of links.
const smallest = unit.MiB

// plainSetting is a setting that needs no quotes in a shell.
var plainSetting = lazyre.New(`^[A-Za-z0-9_]+=[A-Za-z0-9_.,:/=-]*$`)

// FloorForm writes the floor of a prediction as another program's check takes it. A floor that stands on no measurement
// of anything alike is refused, unless --floor is given too.
func FloorForm(w io.Writer, d *query.PredictDoc, q *query.Predict, name string) error {
	form := floorForms[slices.Index(FloorForms(), name)]
	if name != "number" && (q.Launch != "" || q.Devices != "" || q.Root != 0 || q.Dtype != "" && q.Dtype != "float") {
		return fmt.Errorf("-o %s: the check makes calls of its own, of floats on all GPUs of a node; leave --launch, "+
			"--devices, --root and --dtype out", name)
	}
	if len(d.Sides) != 1 {
		return fmt.Errorf("-o %s: a floor is that of one layout; this has %d", name, len(d.Sides))
	}
	f := floor{PredictDoc: d, nodes: d.Sides[0].Nodes, env: q.Env}
	var rows []predict.Row
	for _, r := range d.Rows {
		if r.Chosen {
			rows = append(rows, r)
			f.sizes, f.bytes = append(f.sizes, testsSize(r.Size)), append(f.bytes, r.Size)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("-o %s: a floor is that of what NCCL chooses; leave --algo and --proto out", name)
	}
	if d.Op.Binary() == "" {
		return fmt.Errorf("-o %s: nccl-tests does not measure the bandwidth of %s", name, d.Op)
	}
	if i := slices.IndexFunc(f.bytes, func(b unit.Bytes) bool { return b < smallest }); i >= 0 {
		return fmt.Errorf("-o %s of %v: the bandwidth of messages below %v says nothing of links; give --size 8G, or "+
			"what the check measures", name, f.bytes[i], smallest)
	}
	f.row = slices.MaxFunc(rows, func(a, b predict.Row) int {
		if form.worst {
			a, b = b, a
		}
		return cmp.Compare(a.Floor, b.Floor)
	})
	if g := f.row.Grade; !d.Floors && (g == predict.Guess || !f.row.Barred()) {
		return errors.New("-o " + name +
			": the floor would be a guess, as nobody has published a measurement of anything like " +
			d.Sides[0].Layout + " on " + d.Cluster +
			"; measure a healthy one and busbar calibrate it, or take the guess with --floor")
	}
	f.number = floorNumber(f.row.Floor)
	f.value, _ = strconv.ParseFloat(f.number, 64)
	return form.write(w, f)
}

// floorNumber is a rate in GB/s to three figures, rounded down.
func floorNumber(r unit.Rate) string {
	v := r.GBps()
	if v <= 0 {
		return "0"
	}
	digits := max(2-int(math.Floor(math.Log10(v))), 0)
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Floor(v*scale+1e-9)/scale, 'f', digits, 64)
}

// testsSize is a size as nccl-tests takes it.
func testsSize(b unit.Bytes) string {
	for _, u := range []struct {
		of     unit.Bytes
		suffix string
	}{{unit.GiB, "G"}, {unit.MiB, "M"}, {unit.KiB, "K"}} {
		if b >= u.of && b%u.of == 0 {
			return fmt.Sprint(int64(b/u.of)) + u.suffix
		}
	}
	return fmt.Sprint(int64(b))
}
