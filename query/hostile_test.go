package query

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/hostile"
)

// largest are documents at the bounds of what the page takes.
func largest() []hostile.Doc {
	var types, nodes, conf bytes.Buffer
	types.WriteString("types:\n  t: {gpus: 128 x H100, nics: 128 x 400Gb/s}\nnodes:\n- {hosts: 'h[1-300]', type: t}\n")
	nodes.WriteString("types:\n")
	for i := range 10_000 {
		fmt.Fprintf(&nodes, "  t%d: {gpus: 8 x H100, nics: 8 x 400Gb/s, cores_per_socket: %d}\n", i, i)
	}
	nodes.WriteString("nodes:\n")
	for i := range 10_000 {
		fmt.Fprintf(&nodes, "- {hosts: h%d, type: t%d}\n", i, i)
	}
	for i := range 2000 {
		fmt.Fprintf(&conf, "SwitchName=s%d Nodes=a[%d-%d]\n", i, 10*i, 10*i+9)
	}
	conf.WriteString("SwitchName=top Switches=s[0-1999]\n")
	return []hostile.Doc{
		{Name: "types.yaml", Data: types.Bytes()},
		{Name: "nodes.yaml", Data: nodes.Bytes()},
		{Name: "leaf1.yaml", Data: []byte("nodes:\n- {count: 20000, type: dgx-h100}\nnetwork: {speed: 400Gb/s, " +
			"nodes_per_leaf: 2}\n")},
		{Name: "large.conf", Data: conf.Bytes()},
	}
}

// TestHostileQuestions asks about documents at the bounds of what is taken, and gives up after a fortieth of a second,
// or a half with BUSBAR_LONG: what runs then ends at once, whatever it does. All read a document alike, so that without
// BUSBAR_LONG each is asked for its map and one question more, in turn.
func TestHostileQuestions(t *testing.T) {
	patience := 25 * time.Millisecond
	if os.Getenv("BUSBAR_LONG") != "" {
		patience *= 20
	}
	limits := PageLimits
	limits.GPUs = 160_000
	for i, d := range append(largest(), hostile.Documents()...) {
		env := Env{Files: fstest.MapFS{d.Name: {Data: d.Data}}, Limits: limits}
		questions := map[string]func(context.Context) error{
			"map":   func(ctx context.Context) error { _, err := Map{Sources: []string{d.Name}}.Run(ctx, env); return err },
			"audit": func(ctx context.Context) error { _, err := Audit{Sources: []string{d.Name}}.Run(ctx, env); return err },
			"predict": func(ctx context.Context) error {
				_, err := Predict{Cluster: d.Name, Size: "1G"}.Run(ctx, env)
				return err
			},
			"alltoall": func(ctx context.Context) error {
				_, err := Predict{Cluster: d.Name, Op: "all_to_all", Size: "1G"}.Run(ctx, env)
				return err
			},
			"plan": func(ctx context.Context) error {
				_, err := Plan{Cluster: d.Name, Model: "llama-3-70b"}.Run(ctx, env)
				return err
			},
			"model": func(ctx context.Context) error {
				_, err := Step{Job: Job{Cluster: "dgx-h100:2", Model: d.Name}}.Run(ctx, env)
				return err
			},
			"doctor": func(ctx context.Context) error { _, err := Doctor{Sources: []string{d.Name}}.Run(ctx, env); return err },
		}
		names := slices.Sorted(maps.Keys(questions))
		for k, name := range names {
			if name != "map" && (testing.Short() || os.Getenv("BUSBAR_LONG") == "" && k != i%len(names)) {
				continue
			}
			ask := questions[name]
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			began := time.Now()
			err := ask(ctx)
			took := time.Since(began)
			cancel()
			if took > time.Second {
				t.Logf("%s %s: %v: %.150v", name, d.Name, took.Round(time.Millisecond), err)
			}
			if took > eventually.Limit { // without end, as far as anybody who asks can tell
				t.Errorf("%s %s goes on for %v after it was given up", name, d.Name, took)
			}
		}
	}
}

// TestUnpackedTogether bounds what comes out of all compressed logs of a question together: each alone is short enough.
func TestUnpackedTogether(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 700 {
		_, _ = z.Write([]byte(strings.Repeat("x", 1023) + "\n"))
	}
	_ = z.Close()
	files := fstest.MapFS{"a.gz": {Data: packed.Bytes()}, "b.gz": {Data: packed.Bytes()}}
	env := Env{Files: files, Limits: cluster.Limits{Unpacked: 1 << 20}}
	if _, err := (Doctor{Sources: []string{"a.gz"}}).Run(t.Context(), env); err != nil {
		t.Errorf("one: %v", err)
	}
	if _, err := (Doctor{Sources: []string{"a.gz", "b.gz"}}).Run(t.Context(), env); err == nil ||
		!strings.Contains(err.Error(), "more than 1 MiB when unpacked") {
		t.Errorf("both: %v; want that they are more than 1 MiB when unpacked", err)
	}
}
