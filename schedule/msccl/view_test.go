package msccl

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// Every sample of the corpus is proven right in the calls that it says it serves.
func TestProveCorpus(t *testing.T) {
	want := map[string]string{
		"alltoall": "[all_to_all out of place]", "allgather": "[all_gather in place]", "allreduce": "[all_reduce in place]",
	}
	for _, e := range corpus.Index(t, "MSCCL algorithm XML") {
		a, err := Read(e.File, strings.NewReader(string(corpus.Open(t, e.File))))
		if err != nil {
			t.Fatal(err)
		}
		views, err := a.Prove()
		if err != nil || fmt.Sprint(views) != want[a.Coll] {
			t.Errorf("%s: proven %v (%v), want %s", e.File, views, err, want[a.Coll])
		}
	}
}

// step is a line of a synthetic file.
func step(s int, typ, src string, srcoff int, dst string, dstoff, cnt, depid, deps, hasdep int) string {
	return fmt.Sprintf(`<step s="%d" type="%s" srcbuf="%s" srcoff="%d" dstbuf="%s" dstoff="%d" cnt="%d" depid="%d" deps="%d" hasdep="%d"/>`, s, typ, src, srcoff, dst, dstoff, cnt, depid, deps, hasdep)
}

// two is a synthetic file for two GPUs that run the same steps in two blocks, of which the first has the peer.
func two(algo string, first, second []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<algo name=\"x\" nchannels=\"1\" ngpus=\"2\" %s>\n", algo)
	for g := range 2 {
		fmt.Fprintf(&b, "<gpu id=\"%d\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"2\">\n<tb id=\"0\" send=\"%d\" recv=\"%d\" chan=\"0\">\n%s\n</tb>\n", g, 1-g, 1-g, strings.Join(first, "\n"))
		if second != nil {
			fmt.Fprintf(&b, "<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n%s\n</tb>\n", strings.Join(second, "\n"))
		}
		fmt.Fprintln(&b, "</gpu>")
	}
	return b.String() + "</algo>"
}

func TestProveRefuses(t *testing.T) {
	const reduce = `proto="Simple" nchunksperloop="2" coll="allreduce" inplace="1" outofplace="0"`
	send := step(0, "s", "i", 0, "o", 0, 2, -1, -1, 0)
	list := func(s ...string) []string { return s }
	for _, tc := range []struct{ name, file, want string }{
		{"right", two(reduce, list(send, step(1, "r", "o", 0, "s", 0, 2, -1, -1, 1)), list(step(0, "re", "s", 0, "i", 0, 2, 0, 1, 0))), ""},
		{"no wait", two(reduce, list(send, step(1, "r", "o", 0, "s", 0, 2, -1, -1, 1)), list(step(0, "re", "s", 0, "i", 0, 2, -1, -1, 0))), "reads s[0], which holds nothing yet"},
		{"no flag", two(reduce, list(send, step(1, "r", "o", 0, "s", 0, 2, -1, -1, 0)), list(step(0, "re", "s", 0, "i", 0, 2, 0, 1, 0))), "waits for ever: tb 0 does not say that it has done step 1"},
		{"race", two(reduce, list(send, step(1, "rrc", "i", 0, "i", 0, 2, -1, -1, 0)), list(step(0, "cpy", "i", 0, "s", 0, 1, -1, -1, 0))), "nothing orders the two"},
		{"not summed", two(reduce, list(send, step(1, "r", "o", 0, "i", 0, 2, -1, -1, 0)), nil), "holds the contribution of rank"},
		{"other chunk", two(reduce, list(step(0, "s", "i", 0, "o", 0, 1, -1, -1, 0), step(1, "rrc", "i", 1, "i", 1, 1, -1, -1, 0)), nil), "adds chunk 0 to chunk 1"},
		{"full queues", two(`proto="Simple" nchunksperloop="2" coll="allreduce" inplace="0" outofplace="1"`,
			list(step(0, "s", "i", 0, "o", 0, 2, -1, -1, 0), step(1, "s", "i", 0, "o", 0, 2, -1, -1, 0), step(2, "r", "i", 0, "s", 0, 2, -1, -1, 0), step(3, "r", "i", 0, "s", 0, 2, -1, -1, 0)), nil), "Simple holds 2 messages"},
		{"output before it is there", two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="0" outofplace="1"`,
			list(send, step(1, "rrc", "o", 0, "o", 0, 2, -1, -1, 0)), nil), "reads o[0], which holds nothing yet"},
		{"output not written", two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="0" outofplace="1"`,
			list(step(0, "s", "i", 0, "o", 0, 1, -1, -1, 0), step(1, "rrc", "i", 0, "o", 0, 1, -1, -1, 0)), nil), "nobody writes o[1]"},
		{"input written", two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="0" outofplace="1"`,
			list(send, step(1, "rrc", "i", 0, "i", 0, 2, -1, -1, 1)), list(step(0, "cpy", "i", 0, "o", 0, 2, 0, 1, 0))), "writes the input"},
		{"LL send", two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="1"`,
			list(step(0, "s", "i", 0, "o", 0, 2, -1, -1, 1), step(1, "rrc", "i", 0, "i", 0, 2, -1, -1, 0)), list(step(0, "cpy", "s", 0, "s", 1, 1, 0, 0, 0))), "with LL, in RCCL a send is not done"},
		{"idle nop", two(reduce, list(send, step(1, "nop", "i", -1, "o", -1, 0, -1, -1, 0), step(2, "rrc", "i", 0, "i", 0, 2, -1, -1, 0)), nil), "a nop that waits for nothing"},
		{"chain", two(reduce, list(send, step(1, "nop", "i", -1, "o", -1, 0, 1, 0, 0), step(2, "rrc", "i", 0, "i", 0, 2, -1, -1, 0)), list(step(0, "cpy", "s", 0, "s", 1, 1, -1, -1, 1))), "the last wait of a chain"},
		{"custom", two(`proto="LL" nchunksperloop="2" coll="custom"`, list(send), nil), "only known of allreduce"},
		{"no place", two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="0" outofplace="0"`, list(send), nil), "serves no call"},
		{"odd", two(`proto="LL" nchunksperloop="3" coll="allgather"`, list(send, step(1, "r", "o", 0, "o", 0, 2, -1, -1, 0)), nil), "does not divide by 2 GPUs"},
	} {
		a, err := Read("x", strings.NewReader(tc.file))
		if err == nil {
			a.Runtime = RCCL
			_, err = a.Prove()
		}
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestRuntime holds the runtimes apart: MSCCL's send has read its data when its step is done, RCCL's by LL has not.
func TestRuntime(t *testing.T) {
	// The next send's data is laid where the first one's was, behind a wait.
	file := two(`proto="LL" nchunksperloop="2" coll="allreduce" inplace="1" outofplace="0"`,
		[]string{step(0, "s", "i", 0, "o", 0, 2, -1, -1, 1), step(1, "r", "o", 0, "s", 0, 2, -1, -1, 1)},
		[]string{step(0, "nop", "i", -1, "o", -1, 0, 0, 0, 0), step(1, "re", "s", 0, "i", 0, 2, 0, 1, 0)})
	for _, tc := range []struct {
		runtime Runtime
		want    string
	}{{"", ""}, {MSCCL, ""}, {RCCL, "waits for a send"}} {
		a, err := Read("x", strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		a.Runtime = tc.runtime
		_, err = a.Prove()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: %v, want %q", tc.runtime, err, tc.want)
		}
	}
}

// TestCopies reads the copies of a GPU as thread blocks.
func TestCopies(t *testing.T) {
	file := func(copies string) string {
		var b strings.Builder
		fmt.Fprint(&b, `<algo name="swap" proto="Simple" nchannels="1" nchunksperloop="4" ngpus="2" coll="alltoall" inplace="0" outofplace="1">`)
		for g := range 2 {
			fmt.Fprintf(&b, `<gpu id="%d" i_chunks="4" o_chunks="4" s_chunks="0">%s<tb id="0" send="%d" recv="%d" chan="0">`, g, strings.ReplaceAll(copies, "@", fmt.Sprint(2*g)), 1-g, 1-g)
			fmt.Fprint(&b, step(0, "s", "i", 2*(1-g), "o", 0, 2, -1, -1, 0), step(1, "r", "i", 0, "o", 2*(1-g), 2, -1, -1, 0), "</tb></gpu>")
		}
		return b.String() + "</algo>"
	}
	for _, tc := range []struct{ copies, want string }{
		{`<copy i_off="@" o_off="@" cnt="2"/>`, ""},
		{``, "nobody writes"},
		{`<copy i_off="@" o_off="@"/>`, "nobody writes"},
		{`<copy i_off="@"/>`, "no attribute o_off"},
		{`<copy i_off="9" o_off="0"/>`, "outside the buffer"},
	} {
		a, err := Read("x", strings.NewReader(file(tc.copies)))
		if err == nil {
			_, err = a.Prove()
		}
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.copies, err, tc.want)
		}
	}
}
