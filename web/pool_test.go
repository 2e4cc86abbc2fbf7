package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/internal/test/eventually"
)

// TestPoolTakesTurns has one client fill the pool and its queue. Another gets the next place, not the last.
func TestPoolTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(0)
		hold := func(client string) {
			_, leave, err := p.enter(t.Context(), client, false, 0)
			if err == nil {
				time.Sleep(time.Second)
				leave()
			}
		}
		for range 40 {
			go hold("evil")
		}
		synctest.Wait()
		if n := p.busy(); n != p.slots-1 {
			t.Errorf("one client holds %d of %d places; want all but one", n, p.slots)
		}
		began := time.Now()
		for range 5 {
			_, leave, err := p.enter(t.Context(), "honest", false, 0)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("an honest client waits %v", took)
		}
		time.Sleep(time.Minute)
		if p.busy() != 0 || len(p.each) != 0 || len(p.turns) != 0 {
			t.Errorf("%d places are held, and %d clients known, when all have ended", p.busy(), len(p.each))
		}
	})
}

// TestPoolGivesUp has clients go away while they wait, and when their turn comes.
func TestPoolGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(0)
		_, leave, err := p.enter(t.Context(), "a", true, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, _, err := p.enter(ctx, "b", true, 0); err == nil {
				t.Error("a second heavy question was let in")
			}
			cancel()
		}
		leave()
		if p.busy() != 0 || len(p.each) != 0 || p.waiting != 0 {
			t.Errorf("%d places are held and %d wait when all have gone", p.busy(), p.waiting)
		}
	})
}

// TestMemoryEndsQuestions has the heap be over its bound: questions that run are ended, and none is let in.
func TestMemoryEndsQuestions(t *testing.T) {
	p := newPool(1 << 10) // less than any program has
	ctx, leave, err := p.enter(t.Context(), "a", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	go p.watchHeap(watching)
	select {
	case <-ctx.Done():
	case <-time.After(eventually.Limit):
		t.Fatal("the question goes on")
	}
	if context.Cause(ctx) != errMemory {
		t.Errorf("ended for %v; want for memory", context.Cause(ctx))
	}
	if _, _, err := p.enter(t.Context(), "b", false, 1); err != errBusy {
		t.Errorf("let in: %v; want busy", err)
	}
}

// TestMemoryIsShared: a client that fills the memory leaves room for the usual question of another, is the one whose
// questions are ended where it gets too little, and who waits is let in when there is room again.
func TestMemoryIsShared(t *testing.T) {
	p := newPool(450 << 20)
	ofMany, many, err := p.enter(t.Context(), "many", true, heavyCost)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.enter(t.Context(), "many", false, 2*usualCost); err != errBusy {
		t.Errorf("a second one of the same: %v; want busy", err)
	}
	p.look(330<<20, true) // tight
	ofFew, few, err := p.enter(t.Context(), "few", false, usualCost)
	if err != nil {
		t.Fatalf("a usual question of another: %v", err)
	}
	p.look(400<<20, true) // too much
	if context.Cause(ofMany) != errMemory || ofFew.Err() != nil {
		t.Errorf("who asked for much: %v; who asked for little: %v", context.Cause(ofMany), context.Cause(ofFew))
	}
	in := make(chan error, 1)
	go func() {
		_, leave, err := p.enter(t.Context(), "third", false, usualCost)
		if err == nil {
			leave()
		}
		in <- err
	}()
	many()
	few()
	p.look(100<<20, true)
	if err := <-in; err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// busy is how many places are held.
func (p *pool) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}
