package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
)

// Elastic is a rank's membership in a job that goes on when members are lost, and that lets
// newcomers in. Operations follow each other, in one order on all members, as in:
//
//	e, err := engine.JoinElastic(ctx, cfg)
//	for step := range steps {
//		joined, err := e.Admit(ctx) // the boundary at which newcomers come in
//		…                           // who joined needs to be told where the job stands
//		run, view, err := e.Run(ctx, engine.Work{Op: op, Buffers: b})
//	}
//	err = e.Finish(ctx)
//
// # What survives
//
// When a member dies, hangs or is cut off, the others agree on who is left, connect anew under
// the next epoch, and repeat the operation that was interrupted from the inputs as they were.
// An operation returns on a member only after all members have finished it, which costs one
// small all-reduce. So if it has returned anywhere, all have the result of the same members,
// and it counts; if it has returned nowhere, all repeat it. The View that comes with a result
// says who contributed; it is the same on all of them.
//
// # Who decides
//
// The first member that is left calls the others together and proposes who goes on. A proposal
// counts when enough have agreed to it: more than half of the epoch's members, or half of them
// with rank 0, or everybody but those of whom it is certain that they are dead, since their
// hosts refuse connections to where they listened. A member that has agreed tells whoever calls
// later, so that the death of the caller at any moment leaves one decision or none. Members
// that are too few to decide fail with a QuorumError; a member without which the others went on
// fails with a LeftBehindError, when it is heard of again.
type Elastic struct {
	members *membership

	turn sync.Mutex // one operation at a time
	vote []int64
	kept []byte // the contribution, of an operation that overwrites it
	told View   // what the user has seen last, and so what the root of an operation is a rank of; the members' lock guards it
}

// Work is an operation on the members there are.
type Work struct {
	Schedule *schedule.Schedule // nil is the engine's choice
	Op       coll.Op
	Buffers  Buffers
	Options  Options // the same on all members
}

// JoinElastic makes this process a member of an elastic job. At the beginning Config.Size ranks
// meet as in Join. A newcomer has rank -1: it asks for a place in a job that has begun, at the
// file in which the ranks met, or the address of rank 0 (whoever is rank 0 listens there if it
// can), and waits for the members to call Admit.
func JoinElastic(ctx context.Context, cfg Config) (*Elastic, error) {
	newcomer := cfg.Rank == -1
	if newcomer {
		cfg.Rank, cfg.Size = 0, 1
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	switch {
	case cfg.Transport == Mem:
		return nil, errors.New("transport mem joins ranks of one process; they live and die together")
	case cfg.Meet == "":
		return nil, errors.New("no place to meet; an elastic job needs one, for newcomers")
	case cfg.MinSize < 0 || cfg.MinSize > cfg.Size && !newcomer: // see Check
		return nil, fmt.Errorf("an elastic job of at least %d members begins with %d", cfg.MinSize, cfg.Size)
	}
	m, err := newMembership(cfg)
	if err != nil {
		return nil, err
	}
	e := &Elastic{members: m, vote: make([]int64, 1)}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.JoinTimeout, fmt.Errorf("no place within %v", cfg.JoinTimeout))
	defer cancel()
	if newcomer {
		err = (&applicant{m: m}).enter(ctx)
	} else {
		err = m.meet(ctx)
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("join the elastic job at %s: %w", cfg.Meet, err)
	}
	e.View() // the first that the user knows of
	m.tasks.Go(m.watch)
	return e, nil
}

// View is who the members are now, as far as this rank knows. To find out who contributed to a
// result, take the View that came with it: another member may hear of a change sooner.
func (e *Elastic) View() View {
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	e.told = e.members.seen
	return e.told
}

// Changes are all changes of membership since this rank joined.
func (e *Elastic) Changes() []Change {
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	return append([]Change(nil), e.members.changes...)
}

// Transport is what carries the bytes between the members there are; see Group.Transport.
func (e *Elastic) Transport() Transport {
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	return e.members.group.Transport()
}

// Refused is how many connections were turned away, by reason.
func (e *Elastic) Refused() map[Refusal]int64 {
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	return e.members.group.Refused()
}

// Alloc is memory for buffers, as that of Group.Alloc. It stays through all changes.
func (e *Elastic) Alloc(n int) ([]byte, error) {
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	return e.members.group.Alloc(n)
}

// Free gives memory of Alloc back, as Group.Free does, and what the engine kept of contributions.
// No work on it may come again unless it is forgotten first.
func (e *Elastic) Free(b []byte) {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.members.mu.Lock()
	defer e.members.mu.Unlock()
	e.kept = nil
	e.members.group.Free(b)
}

// Run runs an operation on the members there are, and again on those who are left if some are
// lost before all have finished it. The root is a rank of the view that this member was told
// last: by View, with a result, or with an error. Where the buffers depend on the number of
// members, or the root is lost, a loss since then is a ChangedError; use RunWith to be asked
// instead. A context that ends makes this rank leave the job. The record
// holds until the next run of the like.
func (e *Elastic) Run(ctx context.Context, w Work) (*result.Run, View, error) {
	return e.operate(ctx, w, nil)
}

// RunWith runs an operation that is asked for anew whenever the members have changed. Before it
// is asked again, the send buffer holds what it did; what the receive buffer holds is not
// defined.
func (e *Elastic) RunWith(ctx context.Context, ask func(View) (Work, error)) (*result.Run, View, error) {
	return e.operate(ctx, Work{}, ask)
}

// Admit is the boundary at which newcomers come in. All members call it at the same place
// between the same operations; it costs nothing when nobody waits. It returns who was let in,
// the same on all members, with the ranks that they were given; JoinElastic returns on the
// newcomers at the same time, and their first operation is the members' next.
func (e *Elastic) Admit(ctx context.Context) ([]Member, error) {
	e.turn.Lock()
	defer e.turn.Unlock()
	joined, err := e.members.admit(ctx)
	if err != nil {
		return nil, e.members.leave(err)
	}
	if len(joined) > 0 {
		e.View()
	}
	return joined, e.members.failure()
}

// Finish is the end of the job for all members: it waits until all have come to it, so that
// nobody leaves while others may still have to repeat an operation, and closes.
func (e *Elastic) Finish(ctx context.Context) error {
	_, _, err := e.Run(ctx, Work{Op: coll.Op{Kind: coll.Barrier}})
	e.members.close(err == nil)
	var few *QuorumError
	if errors.As(err, &few) && len(few.Unreached) == 0 {
		return nil // the others were here, and have left
	}
	return err
}

// Close leaves the job at once. The others go on without this member.
func (e *Elastic) Close() error {
	e.members.close(false)
	return nil
}
