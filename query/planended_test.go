package query

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestPlanEndedEarly: a search that is ended before it priced anything says so.
func TestPlanEndedEarly(t *testing.T) {
	var notes []string
	env := Env{Note: func(text string) { notes = append(notes, text) }}
	q := Plan{Cluster: "dgx-h100:1", Model: "gpt2"}
	if err := prepare(&q); err != nil {
		t.Fatal(err)
	}
	p, err := q.read(t.Context(), &env, &placement{cluster: q.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.plan(ctx)
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(strings.Join(notes, "\n"), "before its first plan was priced") {
		t.Errorf("%v, with notes %q", err, notes)
	}
}
