package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"busbar.dev/internal/failure"
)

// Limits bound what documents may stand for. A zero field is the bound in brackets.
type Limits struct {
	Hosts    int   // nodes (MaxHosts)
	GPUs     int   // GPUs, or NICs where there are more of them, of all nodes together (no bound)
	Names    int   // names that hostlists stand for, wherever they are written (16 × MaxHosts)
	Devices  int   // devices of node types (4,000,000)
	Ends     int   // GPUs and NICs of one node, together (MaxEnds)
	Pairs    int   // pairs of GPUs and NICs within a node type, over all types (64 × MaxEnds²)
	Switches int   // of the network (MaxSwitches)
	Links    int   // of node types and of the network (16,000,000)
	Steps    int   // that finding the paths between all GPUs and NICs of the node types takes, about (no bound)
	Bytes    int64 // of text, decompressed (no bound; readers have their own)
	Unpacked int64 // bytes that come out of compressed files, together (64 GiB)
	Held     int64 // bytes of files that are held whole at the same time (1 GiB)
	Members  int   // of archives, together (100,000)
}

// ErrTooLarge is what errors are about documents that stand for more than a budget allows.
var ErrTooLarge = errors.New("too large")

// limitError is a bound that a document does not keep.
type limitError struct {
	most int
	what string
}

func (e limitError) Error() string {
	return fmt.Sprintf("more than %d %s; at most that many are read", e.most, e.what)
}

func (e limitError) Is(target error) bool {
	return target == ErrTooLarge || target == failure.ErrCannot
}

// Budget is what the documents of one question may cost together. Readers that multiply (a hostlist, a count, a type
// used by many nodes) spend from it before they make anything, so that a short text cannot stand for more than is
// allowed, and ask it whether the question still stands. A nil Budget has the bounds of the zero Limits and remembers
// nothing.
type Budget struct {
	most [resources]int // 0 for no bound
	ends int
	stop func() error
	kept [resources]int // of fragments that are read
	open [resources]int // of the one that is being read
	held int64
	hold int64 // the most that may be held
	over bool  // something was refused
}

// resource is something that is counted. What comes behind links is spent for good, whatever becomes of its fragment.
type resource int

const (
	someHosts resource = iota
	someGPUs
	someDevices
	somePairs
	someSwitches
	someSteps
	someLinks
	someNames
	someSpread
	someMembers
	someText
	someUnpacked
	resources
)

// counted are the resources in words, and their usual bounds; 0 is none.
var counted = [resources]struct {
	what  string
	usual int
}{
	someHosts:    {"nodes", MaxHosts},
	someGPUs:     {"GPUs or NICs in all nodes", 0},
	someDevices:  {"devices in node types", 4_000_000},
	somePairs:    {"pairs of GPUs and NICs in node types", 64 * MaxEnds * MaxEnds},
	someSwitches: {"switches", MaxSwitches},
	someSteps:    {"steps on the paths between GPUs and NICs of a node", 0},
	someLinks:    {"links", 16_000_000},
	someNames:    {"names in hostlists", 16 * MaxHosts},
	someSpread:   {"descriptions of hosts by nodes without a name", 16 * MaxHosts},
	someMembers:  {"members of archives", 100_000},
	someText:     {"MiB of text", 0},
	someUnpacked: {"MiB when unpacked", 64 << 30},
}

// NewBudget makes a budget. stop says why reading should end, such as a context's Err; nil for never.
func NewBudget(l Limits, stop func() error) *Budget {
	b := &Budget{stop: stop, ends: cmp.Or(l.Ends, MaxEnds), hold: cmp.Or(l.Held, 1<<30)}
	b.most = [resources]int{
		someHosts: l.Hosts, someGPUs: l.GPUs, someDevices: l.Devices, somePairs: l.Pairs, someSwitches: l.Switches,
		someSteps: l.Steps, someLinks: l.Links, someNames: l.Names, someSpread: l.Names, someMembers: l.Members,
		someText: int(l.Bytes), someUnpacked: int(l.Unpacked),
	}
	for what := range b.most {
		b.most[what] = cmp.Or(b.most[what], counted[what].usual)
	}
	return b
}

// orDefault is a budget that remembers.
func (b *Budget) orDefault() *Budget {
	if b == nil {
		return NewBudget(Limits{}, nil)
	}
	return b
}

// Stopped is why reading should end now, or nil.
func (b *Budget) Stopped() error {
	if b == nil || b.stop == nil {
		return nil
	}
	return b.stop()
}

// Over reports that something was refused: readers may tell why in words of their own.
func (b *Budget) Over() bool { return b != nil && b.over }

// take counts n more of something.
func (b *Budget) take(what resource, n int) error {
	if err := b.Stopped(); err != nil {
		return err
	}
	if most := b.most[what]; n < 0 || most > 0 && n > most-b.kept[what]-b.open[what] {
		b.over = true
		if what >= someText {
			most >>= 20
		}
		return limitError{most, counted[what].what}
	}
	if what > someLinks {
		b.kept[what] += n
	} else {
		b.open[what] += n
	}
	return nil
}

// TakeHosts is asked before n nodes are made.
func (b *Budget) TakeHosts(n int) error {
	return b.orDefault().take(someHosts, n)
}

// TakeSwitches is asked before n switches are made.
func (b *Budget) TakeSwitches(n int) error {
	return b.orDefault().take(someSwitches, n)
}

// TakeType is asked for every node type: what is in it, and the pairs that it is asked about.
func (b *Budget) TakeType(t *NodeType) error {
	b = b.orDefault()
	ends := t.Count(GPU) + t.Count(NIC)
	if ends > b.ends {
		b.over = true
		return failure.Cannot(fmt.Errorf("a node with %d GPUs and %d NICs; at most %d of both together are read",
			t.Count(GPU), t.Count(NIC), b.ends))
	}
	deep := 0
	for _, n := range t.Levels() {
		deep = max(deep, min(n, maxChain))
	}
	// Every end looks at its own links for each of the others, which takes as long as eight steps, and walks up and down
	// the tree.
	return b.takeAll([resources]int{
		someDevices: len(t.Devices), somePairs: ends * ends, someLinks: len(t.Links) + len(t.Pairs),
		someSteps: ends * (8*len(t.Links) + 2*ends*deep),
	})
}

func (b *Budget) takeAll(list [resources]int) error {
	for what, n := range list {
		if err := b.take(resource(what), n); err != nil {
			return err
		}
	}
	return nil
}

// TakeBytes is asked before n bytes of text are kept, decompressed.
func (b *Budget) TakeBytes(n int64) error { return b.orDefault().take(someText, int(n)) }

// BytesLeft is how much text may still be read; at most most.
func (b *Budget) BytesLeft(most int64) int64 {
	if b == nil || b.most[someText] == 0 {
		return most
	}
	return min(most, int64(b.most[someText]-b.kept[someText]))
}

// TakeUnpacked counts n bytes that came out of a compressed file. What is refused stays refused: a reader that looks
// ahead asks again for what follows.
func (b *Budget) TakeUnpacked(n int) error {
	err := b.take(someUnpacked, n)
	if errors.Is(err, ErrTooLarge) {
		b.kept[someUnpacked] = b.most[someUnpacked] + 1
	}
	return err
}

// TakeMember is asked before a member of an archive is read.
func (b *Budget) TakeMember() error { return b.take(someMembers, 1) }

// Hold counts n more bytes of a file that is held whole; fewer, where it is let go.
func (b *Budget) Hold(n int64) { b.orDefault().held += n }

// HoldLeft is how many bytes may still be held.
func (b *Budget) HoldLeft() int64 {
	b = b.orDefault()
	return b.hold - b.held
}

// ParseHosts expands a hostlist as the function ParseHosts does. The names are counted before the list is expanded.
func (b *Budget) ParseHosts(s string) ([]string, error) {
	b = b.orDefault()
	return parseHosts(s, func(n int) error { return b.take(someNames, n) })
}

// ParseNodes is ParseHosts for a list whose every name becomes a node.
func (b *Budget) ParseNodes(s string) ([]string, error) {
	b = b.orDefault()
	return parseHosts(s, func(n int) error {
		if err := b.take(someNames, n); err != nil {
			return err
		}
		return b.TakeHosts(n)
	})
}

// takeSpread is asked before what nameless nodes say is given to every host.
func (b *Budget) takeSpread(nodes, hosts int) error {
	b = b.orDefault()
	return b.take(someSpread, nodes*hosts)
}

// Keep counts a fragment that was read, in place of what its reader counted on the way.
func (b *Budget) Keep(f *Fragment) error {
	b = b.orDefault()
	clear(b.open[:])
	err := b.takeAll([resources]int{
		someHosts: len(f.Hosts), someSwitches: len(f.Network.Switches), someLinks: len(f.Network.Links),
		someGPUs: gpusOrNICs(f),
	})
	for i := 0; err == nil && i < len(f.Types); i++ {
		err = b.TakeType(f.Types[i])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Source, err)
	}
	for what, n := range b.open {
		b.kept[what] += n
	}
	clear(b.open[:])
	return nil
}

// gpusOrNICs counts what all nodes of a fragment have.
func gpusOrNICs(f *Fragment) int {
	n := 0
	each := make([]int, len(f.Types))
	for i, t := range f.Types {
		each[i] = max(t.Count(GPU), t.Count(NIC))
	}
	for _, h := range f.Hosts {
		if h.Type >= 0 && h.Type < len(each) {
			n += each[h.Type]
		}
	}
	return n
}
