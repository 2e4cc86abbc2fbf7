package engine

import "fmt"

// View is who the members of an elastic job are, in one epoch. Rank 0 is the one that called
// the others together, which is the first that was left; the others keep their order, and
// newcomers are the last.
type View struct {
	Epoch      uint32 // from 1 on; every change of membership makes a new one
	Rank, Size int
	Members    []Member
}

// Change is what happened between an epoch and the one before it that this rank was in.
type Change struct {
	Epoch  uint32
	Left   []Loss
	Joined []Member
}

// Loss is a member that is no longer there; its rank is the one that it had.
type Loss struct {
	Member
	Why string
}

func (c Change) String() string {
	text := fmt.Sprintf("epoch %d:", c.Epoch)
	for i, l := range c.Left {
		text += fmt.Sprintf("%s rank %d (%s, pid %d) left: %s", comma(i), l.Rank, l.Host, l.Pid, l.Why)
	}
	for i, m := range c.Joined {
		text += fmt.Sprintf("%s rank %d (%s, pid %d) joined", comma(i+len(c.Left)), m.Rank, m.Host, m.Pid)
	}
	if len(c.Left)+len(c.Joined) == 0 {
		text += " the same members have come together again"
	}
	return text
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ";"
}

// ChangedError is an operation that was not done because members were lost, and that cannot be
// repeated as it was: its buffers or its root depend on them. Nobody has its result; the inputs
// are as they were, and the job goes on.
type ChangedError struct {
	View View
	Text string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s; there are %d members now (epoch %d): make the call again with what they need", e.Text, e.View.Size, e.View.Epoch)
}

// LeftBehindError is a member without which the others have gone on.
type LeftBehindError struct {
	Epoch uint32 // theirs
	Why   string
}

func (e *LeftBehindError) Error() string {
	return fmt.Sprintf("the others have gone on without this rank (epoch %d): %s; join again as a newcomer", e.Epoch, e.Why)
}

// QuorumError is that too few members are left, or reached, to go on.
type QuorumError struct {
	Epoch     uint32
	Have, Of  int
	Min       int   // what Config.MinSize asks for, where that is the reason
	Dead      []int // ranks that are certainly dead
	Unreached []int // ranks that may be alive
}

func (e *QuorumError) Error() string {
	if e.Min > 0 {
		return fmt.Sprintf("%d of %d members are left; the job needs %d", e.Have, e.Of, e.Min)
	}
	return fmt.Sprintf("only %d of %d members of epoch %d can agree and %s may be alive elsewhere: two halves must not both go on; that takes more than half, half with rank 0, or certainty that all others are dead",
		e.Have, e.Of, e.Epoch, rankList(e.Unreached))
}

// decision is what members agree on: who is in the next epoch, and what has been done.
type decision struct {
	Epoch     uint32     `json:"epoch"`
	Members   []member   `json:"members"`
	Committed uint64     `json:"committed"` // operations whose results count
	Waiting   bool       `json:"waiting,omitempty"`
	Left      []loss     `json:"left,omitempty"`
	Admitted  *admission `json:"admitted,omitempty"` // the last time that newcomers were let in
}

// loss is a member that is not in a decision any more.
type loss struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// admission is newcomers that were let in, with the ranks that they were given.
type admission struct {
	Epoch  uint32   `json:"epoch"`
	Joined []member `json:"joined"`
}

// at is a member's rank, -1 for who is none.
func (d *decision) at(id string) int {
	for i := range d.Members {
		if d.Members[i].ID == id {
			return i
		}
	}
	return -1
}

// view is the decision as one of its members sees it.
func (d *decision) view(id string) View {
	v := View{Epoch: d.Epoch, Rank: d.at(id), Size: len(d.Members), Members: make([]Member, len(d.Members))}
	for i, m := range d.Members {
		v.Members[i] = m.public(i)
	}
	return v
}

// change is the difference from one decision to a later one.
func (d *decision) change(to *decision) Change {
	c := Change{Epoch: to.Epoch}
	for i, m := range d.Members {
		if to.at(m.ID) >= 0 {
			continue
		}
		why := "it did not answer"
		for _, l := range to.Left {
			if l.ID == m.ID {
				why = l.Why
			}
		}
		c.Left = append(c.Left, Loss{m.public(i), why})
	}
	for i, m := range to.Members {
		if d.at(m.ID) < 0 {
			c.Joined = append(c.Joined, m.public(i))
		}
	}
	return c
}

// valid reports what makes a decision that came from elsewhere impossible.
func (d *decision) valid() error {
	if len(d.Members) < 1 || len(d.Members) > maxSize || d.Epoch < 1 {
		return fmt.Errorf("a decision for epoch %d with %d members", d.Epoch, len(d.Members))
	}
	seen := map[string]bool{"": true}
	for i := range d.Members {
		if id := d.Members[i].ID; !seen[id] {
			seen[id] = true
		} else {
			return fmt.Errorf("a decision for epoch %d in which member %d has no name of its own", d.Epoch, i)
		}
	}
	return nil
}

// quorum reports whether members may decide for all: more than half of them, or half with
// rank 0, or all that are not dead for certain. Any two such sets share a living member, so
// that no two of them decide differently.
func quorum(n int, votes, dead map[int]bool) bool {
	v := len(votes)
	return 2*v > n || 2*v == n && votes[0] || v > 0 && v+len(dead) >= n
}
