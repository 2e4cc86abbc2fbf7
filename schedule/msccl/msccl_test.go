package msccl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// Every sample of the corpus: attributes and counts as its index says, and all
// parts fit.
func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "MSCCL algorithm XML") {
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !Match(data) {
				t.Error("Match says no")
			}
			a, err := Read(e.File, strings.NewReader(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			blocks, steps, ops := 0, 0, map[string]any{}
			for _, g := range a.GPUs {
				blocks += len(g.Blocks)
				for _, b := range g.Blocks {
					steps += len(b.Steps)
					for _, s := range b.Steps {
						n, _ := ops[string(s.Op)].(float64)
						ops[string(s.Op)] = n + 1
					}
				}
			}
			flag := map[bool]string{false: "0", true: "1"}
			got := map[string]any{
				"algo": map[string]any{
					"name": a.Name, "proto": a.Proto, "nchannels": fmt.Sprint(a.Channels), "nchunksperloop": fmt.Sprint(a.ChunksPerLoop),
					"ngpus": fmt.Sprint(a.NGPUs), "coll": a.Coll, "inplace": flag[a.InPlace], "outofplace": flag[a.OutOfPlace],
					"minBytes": fmt.Sprint(a.MinBytes), "maxBytes": fmt.Sprint(a.MaxBytes),
				},
				"gpus": float64(len(a.GPUs)), "threadblocks": float64(blocks), "steps": float64(steps), "step_types": ops,
			}
			if fmt.Sprint(got) != fmt.Sprint(e.Facts) {
				t.Errorf("got  %v\nwant %v", got, e.Facts)
			}
			if err := a.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// pair is synthetic: two GPUs exchange one chunk, and one step waits for another.
const pair = `<algo name="swap" proto="LL" nchannels="1" nchunksperloop="1" ngpus="2" coll="custom" inplace="0">
  <gpu id="0" i_chunks="1" o_chunks="1" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="1" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>`

func TestSteps(t *testing.T) {
	a, err := Read("x", strings.NewReader(pair))
	if err != nil || a.Check() != nil {
		t.Fatal(err, a.Check())
	}
	s := a.GPUs[0].Blocks[0].Steps[1]
	if s.Op != Recv || s.Dst != Output || !s.HasDep || s.Line != 5 || !s.Op.Receives() || s.Op.Sends() {
		t.Errorf("%+v", s)
	}
	if n := a.GPUs[0].Blocks[1].Steps[0]; n.Op != Nop || n.DepBlock != 0 || n.DepStep != 1 || n.SrcOff != -1 {
		t.Errorf("%+v", n)
	}
}

func TestBadInput(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(pair, old, new, 1) }
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", "no <algo>"},
		{"text", "hello", "no <algo>"},
		{"cut", pair[:400], "well-formed XML"},
		{"no ngpus", change(`ngpus="2" `, ""), "no attribute ngpus"},
		{"zero gpus", change(`ngpus="2"`, `ngpus="0"`), `x:1: <algo>: ngpus="0"`},
		{"million gpus", change(`ngpus="2"`, `ngpus="9999999"`), "from 1 to 65536"},
		{"third gpu missing", change(`ngpus="2"`, `ngpus="3"`), "says ngpus=3"},
		{"gpu twice", change(`<gpu id="1"`, `<gpu id="0"`), "x:11: gpu 0 comes twice"},
		{"step type", change(`type="s"`, `type="send"`), `x:4: step type "send"`},
		{"buffer", change(`srcbuf="i"`, `srcbuf="x"`), "expected i, o or s"},
		{"order", change(`<step s="1"`, `<step s="2"`), "expected step 1"},
		{"peer", change(`send="1"`, `send="5"`), "from -1 to 1"},
		{"place", "<gpu id=\"0\"/>", "<gpu> inside <>"},
		{"deep", pair[:strings.Index(pair, "</tb>")] + strings.Repeat("<step>", 3), "<step>"},
		{"bomb", `<!DOCTYPE a [<!ENTITY x "y">]><algo/>`, "document type declaration"},
		{"entity", change(`name="swap"`, `name="&x;"`), "well-formed XML"},
		{"two", pair + pair, "second <algo>"},
	} {
		if _, err := Read("x", strings.NewReader(tc.in)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
	for _, tc := range []struct{ name, in, want string }{
		{"nobody to send to", change(`send="1" recv="1"`, `send="-1" recv="1"`), "sends to nobody"},
		{"itself", change(`send="1" recv="1"`, `send="0" recv="1"`), "itself as peer"},
		{"outside", change(`srcoff="0"`, `srcoff="1"`), "outside the buffer"},
		{"no such step", change(`depid="0" deps="1"`, `depid="0" deps="2"`), "which is not there"},
		{"unequal", change(`type="r"`, `type="cpy"`), "gpu 1 to gpu 0 on channel 0: 1 chunks more are sent"},
	} {
		a, err := Read("x", strings.NewReader(tc.in))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if err := a.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, s := range []string{"", `<system version="1">`, `<graphs version="1">`, `<algo name="x">`} {
		if Match([]byte(s)) {
			t.Errorf("Match(%q)", s)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pair)
	f.Add(strings.Replace(pair, `coll="custom"`, `coll="allgather" outofplace="1"`, 1))
	if os.Getenv("BUSBAR_SHARED") != "" {
		f.Add(string(corpus.Open(f, "msccl-xml/rccl-alltoall-8n-0-9kb.xml")))
	}
	f.Fuzz(func(t *testing.T, s string) {
		Match([]byte(s))
		a, err := Read("f", strings.NewReader(s))
		if err != nil {
			return
		}
		a.Check()
		a.Limits()
		a.Prove()
		var text strings.Builder
		if err := a.Write(&text); err != nil {
			t.Fatal(err)
		}
		b, err := Read("g", strings.NewReader(text.String()))
		if err != nil || len(b.GPUs) != len(a.GPUs) || b.Coll != a.Coll {
			t.Fatalf("written and read again: %v\n%s", err, text.String())
		}
	})
}
