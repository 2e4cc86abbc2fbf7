package query

import (
	"context"
	"errors"
	"testing"

	"busbar.dev/engine/ranks"
)

// The zero value of a measurement runs between ranks of this process, whatever it measures.
func TestMeasureInProcess(t *testing.T) {
	ctx := context.Background()
	d, err := Bench{Max: "1K", Iters: 2, Check: true}.Run(ctx, Env{})
	if err != nil || d == nil || d.Transport != "mem" || len(d.Rows) != 8 || d.Wrong() || len(d.Results.Rows()) != 16 {
		t.Errorf("bench: %v, %+v", err, d)
	}
	p, err := BenchPairs{Size: "4K", Iters: 1}.Run(ctx, Env{})
	if err != nil || p == nil || p.Ranks < 2 || p.Rate[0][1] == nil || p.Rate[0][0] != nil {
		t.Errorf("pairs: %v, %+v", err, p)
	}
	s, err := BenchStep{Model: "layers=1,hidden=64,heads=1,vocab=100,context=16", Compute: 1e6, Iters: 1}.Run(ctx, Env{})
	if err != nil || s == nil || len(s.Rows) != 2 || s.Rows[1].Overlap != "on" {
		t.Errorf("step: %v, %+v", err, s)
	}
}

// Rows are told as they come, before the answer, whose error ends the question.
func TestMeasureTells(t *testing.T) {
	j := ranks.DefaultJob()
	j.Ranks = 3
	full := errors.New("no room")
	rows, kept := 0, 0
	q := Bench{Max: "64", Iters: 1}
	if err := prepare(&q); err != nil {
		t.Fatal(err)
	}
	_, err := q.RunOn(context.Background(), Env{Version: "1.2"}, Ranks[*BenchDoc]{
		Job: j,
		Row: func(d *BenchDoc) error {
			if rows++; len(d.Rows) != rows {
				t.Errorf("%d rows after %d", len(d.Rows), rows)
			}
			return nil
		},
		Keep: func(data []byte) error { kept += len(data); return nil },
		Answer: func(d *BenchDoc, keep func([]byte) error) error {
			if d.Ranks != 3 || d.Results[0].Tool != "busbar 1.2" {
				t.Errorf("%+v", d)
			}
			return errors.Join(keep([]byte("left")), full)
		},
	})
	if !errors.Is(err, full) || rows != 4 || kept != 4 {
		t.Errorf("%v after %d rows and %d bytes", err, rows, kept)
	}
	if _, err := q.RunOn(context.Background(), Env{},
		Ranks[*BenchDoc]{Job: ranks.Job{Ranks: 2, Rank: -1, Transport: "tcp", Conns: 1, Timeout: 1e9}}); err == nil {
		t.Error("ranks were started by a program that cannot be one")
	}
}
