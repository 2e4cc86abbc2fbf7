package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

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
	cfg  Config
	id   string
	door *door

	turn sync.Mutex // one operation at a time
	vote []int64
	kept []byte // the contribution, of an operation that overwrites it

	mu        sync.Mutex
	moved     chan struct{} // closed and replaced when something below changes
	waiters   int
	base      *decision // the last that was decided
	seen      View      // base, for users
	told      View      // what the user has seen last, and so what the root of an operation is a rank of
	group     *Group    // the last that was formed
	steady    bool      // group is that of base, as far as is known
	busy      bool      // an operation is under way on group
	quiet     bool      // members are being called together; no operation may begin
	planned   bool      // at a boundary, and not because of a fault
	done      uint64    // operations that this member has finished
	committed uint64    // and of which it knows that all have
	waiting   bool      // newcomers wait, as of the last commit
	admitted  uint32    // the epoch of the last admission that Admit has returned
	idle      int       // times the group was formed since an operation was done
	promised  uint64    // the last leader that was promised to
	rival     uint64    // the greatest ballot that another member has promised to
	accepted  uint64    // the leader whose proposal was accepted
	proposal  *decision
	heard     int64 // when a leader was last heard
	changes   []Change
	guests    []guest
	known     []string // addresses at which other members may be found
	published bool     // this member has said in the file where it is
	atMeeting bool     // this member listens at the address where the ranks met
	orphaned  int      // times that a leader hung up
	err       error    // why there are no more operations

	crowd  atomic.Int64 // newcomers that wait
	found  atomic.Bool  // of a newcomer: a member has heard of it
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	closed atomic.Bool
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
	d, err := newDoor(&cfg)
	if err != nil {
		return nil, err
	}
	var id [12]byte
	rand.Read(id[:])
	e := &Elastic{cfg: cfg, id: hex.EncodeToString(id[:]), door: d, moved: make(chan struct{}), vote: make([]int64, 1)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	d.receive = e.receive
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.JoinTimeout, fmt.Errorf("no place within %v", cfg.JoinTimeout))
	defer cancel()
	if newcomer {
		err = e.enter(ctx)
	} else {
		err = e.meet(ctx)
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("join the elastic job at %s: %w", cfg.Meet, err)
	}
	e.View() // the first that the user knows of
	e.tasks.Go(e.attendant)
	return e, nil
}

// meet is how the first members find each other, as those of any job do.
func (e *Elastic) meet(ctx context.Context) error {
	g, n, err := e.newGroup(e.cfg.Rank, e.cfg.Size, 1)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.group = g
	e.mu.Unlock()
	if err := n.join(ctx); err != nil {
		n.left.Store(true)
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.published = e.cfg.Rank == 0 && e.cfg.meetsInFile()
	e.atMeeting = e.cfg.Rank == 0
	e.base, e.steady = &decision{Epoch: 1, Members: n.members}, true
	e.seen = e.base.view(e.id)
	return e.base.valid()
}

// newGroup is the group of an epoch, without its connections.
func (e *Elastic) newGroup(rank, size int, epoch uint32) (*Group, *network, error) {
	cfg := e.cfg
	cfg.Rank, cfg.Size = rank, size
	w, err := newPoller()
	if err != nil {
		return nil, nil, err
	}
	g := newGroup(cfg, w)
	g.spin, g.yields = spin, true
	n := newNetwork(g, e.door)
	n.lodger, n.epoch, n.id = true, epoch, e.id
	return g, n, nil
}

// View is who the members are now, as far as this rank knows. To find out who contributed to a
// result, take the View that came with it: another member may hear of a change sooner.
func (e *Elastic) View() View {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = e.seen
	return e.seen
}

// Changes are all changes of membership since this rank joined.
func (e *Elastic) Changes() []Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Change(nil), e.changes...)
}

// Transport is what carries the bytes between the members there are; see Group.Transport.
func (e *Elastic) Transport() Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.group.Transport()
}

// Refused is how many connections were turned away, by reason.
func (e *Elastic) Refused() map[Refusal]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.group.Refused()
}

// Alloc is memory for buffers, as that of Group.Alloc. It stays through all changes.
func (e *Elastic) Alloc(n int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.group.Alloc(n)
}

// Free gives memory of Alloc back, as Group.Free does, and what the engine kept of contributions.
// No work on it may come again unless it is forgotten first.
func (e *Elastic) Free(b []byte) {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = nil
	e.group.Free(b)
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
	var joined []Member
	err := e.until(ctx, func() bool {
		if a := e.base.Admitted; a != nil && a.Epoch > e.admitted {
			e.admitted = a.Epoch
			for _, m := range a.Joined { // though one may be lost already: all must hear the same
				joined = append(joined, Member{Rank: m.Rank, Host: m.Host, Pid: m.Pid, id: m.ID})
			}
			return true
		}
		if e.steady && !e.planned && e.waiting && e.seen.Rank == 0 {
			e.planned = true
			e.group.end(errBoundary)
		}
		return e.err != nil || e.steady && !e.waiting
	})
	if err != nil {
		return nil, e.leave(err)
	}
	if len(joined) > 0 {
		e.View()
	}
	return joined, e.failure()
}

// errBoundary ends the group of an epoch because newcomers are let in.
var errBoundary = errors.New("newcomers are let in")

// Finish is the end of the job for all members: it waits until all have come to it, so that
// nobody leaves while others may still have to repeat an operation, and closes.
func (e *Elastic) Finish(ctx context.Context) error {
	_, _, err := e.Run(ctx, Work{Op: coll.Op{Kind: coll.Barrier}})
	e.close(err == nil)
	var few *QuorumError
	if errors.As(err, &few) && len(few.Unreached) == 0 {
		return nil // the others were here, and have left
	}
	return err
}

// Close leaves the job at once. The others go on without this member.
func (e *Elastic) Close() error {
	e.close(false)
	return nil
}

// close leaves the job, together with all others or before them.
func (e *Elastic) close(together bool) {
	if e.closed.Swap(true) {
		return
	}
	e.fail(ErrClosed)
	e.cancel()
	e.tasks.Wait()
	e.mu.Lock()
	g, guests, published := e.group, e.guests, e.published
	e.guests = nil
	e.mu.Unlock()
	for _, x := range guests {
		x.ctl.c.Close()
	}
	switch {
	case g == nil:
	case g.net.left.Load(): // it never came into being
		g.net.abandon()
	default:
		if !together { // they must not wait for it
			g.fail(g.peerError(g.rank, Left, ""))
		}
		g.Close()
	}
	e.door.close()
	if published {
		g.net.withdraw(g.net.members[0].Addrs)
	}
}

// fail ends the membership. The first reason counts.
func (e *Elastic) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		e.wake()
	}
}

func (e *Elastic) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// leave ends the membership because this rank will not wait any longer.
func (e *Elastic) leave(err error) error {
	e.fail(fmt.Errorf("this rank has left the job: %w", err))
	e.mu.Lock()
	g := e.group
	e.mu.Unlock()
	g.fail(err)
	return err
}

// wake lets those look again who wait. The caller holds the lock.
func (e *Elastic) wake() {
	if e.waiters > 0 {
		close(e.moved)
		e.moved = make(chan struct{})
	}
}

// until waits until something holds, which is asked under the lock.
func (e *Elastic) until(ctx context.Context, holds func() bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !holds() {
		moved := e.moved
		e.waiters++
		e.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.waiters--
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
