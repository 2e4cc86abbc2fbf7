package result_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

func sweep() *result.Sweep {
	wrong, slow := int64(0), 3
	t := &result.Timing{Wrong: &wrong, Slowest: &slow, Spread: unit.Micros(1.25)}
	t.Sample([]unit.Time{3 * unit.Microsecond, unit.Microsecond, 2 * unit.Microsecond, unit.Micros(4.0004)})
	return &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float",
		Ranks: 8, Nodes: 2, PerNode: 4, Hosts: "node[01-02]", Transport: "tcp",
		When: time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC), Session: "a1", Tool: "busbar devel",
		Machine: &result.Machine{OS: "linux/amd64", CPUs: 2},
		Points:  []result.Point{{Size: 1 << 20, Algo: "ring", Out: t}},
	}
}

// unread leaves out where a sweep was read.
var unread = cmp.Options{
	cmpopts.IgnoreFields(result.Sweep{}, "File", "Line", "OpFrom", "LayoutFrom"),
	cmpopts.IgnoreFields(result.Point{}, "Line"),
}

func TestSweepsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sweep()
		s.Op = rapid.SampledFrom(coll.Kinds()).Draw(t, "op")
		s.Env = rapid.MapOfN(rapid.StringMatching(`NCCL_[A-Z]{1,9}`), rapid.StringMatching(`[ -~]{0,9}`), 0, 3).Draw(t, "env")
		if len(s.Env) == 0 {
			s.Env = nil
		}
		s.Points = nil
		for i := range rapid.IntRange(1, 4).Draw(t, "points") {
			timing := func(name string) *result.Timing {
				x := &result.Timing{}
				for _, us := range rapid.SliceOfN(rapid.Float64Range(0.001, 1e6), 1, 40).Draw(t, name) {
					x.Samples = append(x.Samples, unit.Micros(us))
				}
				x.Sample(x.Samples)
				return x
			}
			p := result.Point{
				Size: unit.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "size"))<<4 | unit.Bytes(i),
				Algo: rapid.SampledFrom([]string{"ring", "tree"}).Draw(t, "algo"),
			}
			switch rapid.IntRange(0, 2).Draw(t, "forms") {
			case 0:
				p.Out = timing("out")
			case 1:
				p.In = timing("in")
			default:
				p.Out, p.In = timing("out"), timing("in")
			}
			s.Points = append(s.Points, p)
		}
		other := *s
		other.Session = "b2"
		want := result.Sweeps{s, &other}
		var b bytes.Buffer
		if err := result.Write(&b, want...); err != nil {
			t.Fatal(err)
		}
		if !result.Match(b.Bytes()) {
			t.Fatalf("not recognised: %s", b.String())
		}
		back, err := result.Read("x", &b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, back, unread); d != "" {
			t.Fatal(d)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var again result.Sweeps
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, again, unread); d != "" {
			t.Fatal(d)
		}
	})
}

// TestUnknownFormat: a row of a later format, or none at all, is read and does not pass Check.
func TestUnknownFormat(t *testing.T) {
	for text, want := range map[string]string{
		`[{"busbar_result":3,"op":"all_reduce"}]`: "this release reads up to 2",
		`[null]`: "busbar_result is missing",
		`[{"busbar_result":1,"op":"all_reduce","source":"measured","later":1}]`: "ranks is 0",
	} {
		var l result.Sweeps
		if err := json.Unmarshal([]byte(text), &l); err != nil || len(l) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		if err := l[0].Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSampleKeepsTheShape(t *testing.T) {
	var times []unit.Time
	for i := range 100000 {
		times = append(times, unit.Time(100000-i)*unit.Microsecond)
	}
	var x result.Timing
	x.Sample(times)
	if x.Runs != 100000 || x.Time.Median.Micros() != 50001 || x.Time.Min.Micros() != 1 || x.Time.P99.Micros() != 99000 {
		t.Errorf("%d runs, %+v", x.Runs, x.Time)
	}
	s := sweep()
	s.Points[0].Out = &x
	var b bytes.Buffer
	if err := result.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	back, err := result.Read("x", &b)
	if err != nil {
		t.Fatal(err)
	}
	kept := back[0].Points[0].Out
	if len(kept.Samples) != result.MaxSamples || kept.Runs != 100000 || kept.Time != x.Time {
		t.Errorf("%d samples of %d runs, %+v", len(kept.Samples), kept.Runs, kept.Time)
	}
	if got := kept.Samples[500].Micros(); got < 50000 || got > 50200 {
		t.Errorf("the middle of the samples is %v", got)
	}
}

func TestQuantile(t *testing.T) {
	var x result.Timing
	for i := range 100 {
		x.Samples = append(x.Samples, unit.Time(i))
	}
	for q, want := range map[float64]unit.Time{0: 0, 0.5: 50, 0.99: 98, 1: 99} {
		if got := x.Quantile(q); got != want {
			t.Errorf("quantile %v is %v; want %v", q, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := result.Write(&b, sweep()); err != nil {
		t.Fatal(err)
	}
	good := strings.TrimSpace(b.String())
	const samples = `[0.000001,0.000002,0.000003,0.000004]`
	swap := func(old, new string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"[1]", "x:1: expected one JSON object a line"},
		{good + "\n\n{", "x:3: the object has no end"},
		{good + " {}", "x:1: something follows the object"},
		{swap(`"ranks":8`, `"ranks":"8"`), "x:1: ranks has a JSON string where a whole number belongs"},
		{swap(`"ranks":8`, `"ranks":0`), "x:1: ranks is 0; expected"},
		{swap(`"ranks":8`, `"ranks":9`), "x:1: 2 nodes with 4 ranks each are not 9 ranks"},
		{swap(`"busbar_result":2`, `"busbar_result":7`), "this release reads up to 2"},
		{swap(`"busbar_result":2,`, ``), "busbar_result is missing"},
		{swap(`"source":"measured"`, `"source":"guessed"`), `source is "guessed"; expected measured or predicted`},
		{swap(`"op":"all_reduce"`, `"op":"all_confuse"`), "all_confuse"},
		{swap(`"dtype":"float"`, `"dtype":"float7"`), "float7"},
		{swap(`"algo":"ring"`, `"algorithm":"ring"`), `the field "algorithm" is not known to this release; the line is of format 2, written by "busbar devel"`},
		{swap(`"slowest_rank":3`, `"slowest_rank":8`), "slowest_rank is 8 of 8 ranks"},
		{swap(samples, `[0.000001,0.000003,0.000002,0.000004]`), "samples_s[2] is 2e-06"},
		{swap(samples, samples[:len(samples)-1]+`,0.000005]`), "5 samples of 4 runs"},
		{swap(`"wrong":0`, `"wrong":-1`), "wrong is -1"},
		{swap(`"hosts":"node[01-02]"`, `"hosts":"node\u001b[2J"`), "control characters"},
		{strings.Repeat(" ", 2<<20) + good, "x:1: a line of more than"},
	} {
		_, err := result.Read("x", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s…: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	s := sweep()
	s.Hosts = "a\nb"
	var b bytes.Buffer
	if err := result.Write(&b, sweep(), s); err == nil || b.Len() > 0 {
		t.Errorf("err %v and %d bytes written", err, b.Len())
	}
}

// TestEarlierFormat: rows of format 1, whose times are in µs, are read as those of format 2 are.
func TestEarlierFormat(t *testing.T) {
	const row = `{"busbar_result":%d,"source":"measured","op":"all_reduce","size_bytes":1048576,"dtype":"float","ranks":4,` +
		`"transport":"tcp","time_%s":{"min":%[3]v,"mean":%[4]v},"runs":2,"samples_%[2]s":[%[3]v,%[4]v],"spread_%[2]s":%[3]v}`
	old, err := result.Read("x", strings.NewReader(fmt.Sprintf(row, 1, "us", 499.5, 500)))
	if err != nil {
		t.Fatal(err)
	}
	now, err := result.Read("x", strings.NewReader(fmt.Sprintf(row, 2, "s", 499.5e-6, 500e-6)))
	if err != nil || old[0].Points[0].Out.Spread != unit.Micros(499.5) {
		t.Fatal(err, old[0].Points[0].Out)
	}
	if d := cmp.Diff(now, old); d != "" {
		t.Error(d)
	}
}

func ExampleRead() {
	list, err := result.Read("x", strings.NewReader(`{"busbar_result":2,"source":"measured","op":"all_reduce","size_bytes":1048576,"dtype":"float","ranks":4,"transport":"tcp","time_s":{"mean":0.0005}}`))
	fmt.Println(len(list), err, list.Rows()[0].BusBW())
	// Output: 1 <nil> 3.15 GB/s
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := result.Write(&b, sweep(), sweep()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"busbar_result":2,"source":"predicted","op":"barrier","dtype":"half","ranks":1,"transport":"nccl","time_s":{"mean":0}}`))
	f.Add([]byte(`{"busbar_result":1,"source":"predicted","op":"barrier","dtype":"half","ranks":1,"transport":"nccl","time_us":{"mean":0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := result.Read("x", bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := result.Write(&b, list...); err != nil {
			t.Fatalf("read and not written: %v", err)
		}
		again, err := result.Read("x", &b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(list, again, cmpopts.EquateEmpty(), unread); d != "" {
			t.Fatal(d)
		}
	})
}
