//go:build linux

package native

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"busbar.dev/coll"
)

// nccl is NCCL, or RCCL, which has the same functions.
type nccl struct {
	*library
	Version    uintptr `nccl:"ncclGetVersion"`
	ID         uintptr `nccl:"ncclGetUniqueId"`
	InitMany   uintptr `nccl:"?ncclCommInitRankScalable"` // since 2.23: takes the key by its address
	Init       uintptr `nccl:"ncclCommInitRank"`
	Destroy    uintptr `nccl:"ncclCommDestroy"`
	Error      uintptr `nccl:"ncclGetErrorString"`
	Last       uintptr `nccl:"?ncclGetLastError"`
	GroupStart uintptr `nccl:"ncclGroupStart"`
	GroupEnd   uintptr `nccl:"ncclGroupEnd"`
	Send       uintptr `nccl:"ncclSend"`
	Recv       uintptr `nccl:"ncclRecv"`
	Async      uintptr `nccl:"?ncclCommGetAsyncError"`

	AllReduce     uintptr `nccl:"ncclAllReduce"`
	Broadcast     uintptr `nccl:"ncclBroadcast"`
	Reduce        uintptr `nccl:"ncclReduce"`
	AllGather     uintptr `nccl:"ncclAllGather"`
	ReduceScatter uintptr `nccl:"ncclReduceScatter"`

	// Since 2.28; before, as groups of sends and receives.
	AllToAll uintptr `nccl:"?ncclAlltoAll"`
	Gather   uintptr `nccl:"?ncclGather"`
	Scatter  uintptr `nccl:"?ncclScatter"`

	// Set by load and join.
	release string
	number  int // as the library writes its release
	amd     bool
	comm    uintptr
	rank    int
	ranks   int
}

const keyBytes = 128

// openNCCL loads NCCL from BUSBAR_NCCL, the dynamic linker's folders, or a Python environment; RCCL for AMD's GPUs.
func openNCCL(amd bool) (*nccl, error) {
	names, what := []string{"libnccl.so.2"}, "libnccl.so.2 (NCCL)"
	folders := append(pythonFolders(), "/usr/local/cuda/lib64", "/usr/local/nccl/lib")
	if amd {
		names, what, folders = []string{"librccl.so.1", "librccl.so"}, "librccl.so.1 (RCCL)", rocmFolders
	}
	l, err := load(what, setting("NCCL"), names, folders)
	if err != nil {
		f := failed(err)
		f.Text += "; BUSBAR_NCCL=FILE names it"
		return nil, f
	}
	n := &nccl{library: l, amd: amd}
	l.words = n.errorText
	if err := l.symbols(n, "nccl"); err != nil {
		return nil, err
	}
	var v int32
	if pass(n.Version, &v) == 0 {
		n.number, n.release = int(v), releaseOf(int(v))
	}
	return n, nil
}

// releaseOf is a release as NCCL numbers it: 22809, and 2804 before 2.9.
func releaseOf(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// errorText is what NCCL says of a code, and what it said last.
func (n *nccl) errorText(code int) string {
	words := returned(n.Error, uintptr(code))
	if last := returned(n.Last, n.comm); last != "" {
		words += ": " + last
	}
	return words
}

func (n *nccl) key() string {
	var id [keyBytes]byte
	n.do("ncclGetUniqueId", n.ID, &id)
	return hex.EncodeToString(id[:])
}

// join makes this worker a rank. It returns when all ranks have come.
func (n *nccl) join(key string, rank, ranks int) {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != keyBytes {
		refuse("a key of %d bytes; expected %d as hexadecimal digits", len(raw), keyBytes)
	}
	if ranks < 1 || rank < 0 || rank >= ranks {
		refuse("rank %d of %d", rank, ranks)
	}
	n.leave()
	var comm uintptr
	switch {
	case n.InitMany != 0:
		n.do("ncclCommInitRankScalable", n.InitMany, &comm, ranks, rank, 1, &raw[0], n.config())
	case runtime.GOARCH == "arm64": // C passes a large struct by its address
		n.do("ncclCommInitRank", n.Init, &comm, ranks, &raw[0], rank)
	default: // and on amd64 on the stack, after the registers
		args := []any{&comm, ranks, rank, 0, 0, 0}
		for i := 0; i < keyBytes; i += 8 {
			args = append(args, *(*uintptr)(unsafe.Pointer(&raw[i])))
		}
		n.do("ncclCommInitRank", n.Init, args...)
	}
	n.comm, n.rank, n.ranks = comm, rank, ranks
}

// config is how a communicator is made other than by default, in the layout of 2.28; later releases take it by its
// size.
type config struct {
	size                                     uintptr
	magic, version                           uint32
	blocking, cluster, leastCTAs, mostCTAs   int32
	_                                        uintptr // the network's name
	splitShare, trafficClass                 int32
	_                                        uintptr // the communicator's name
	collNet, policy, shrinkShare, nvlsCTAs   int32
	channelsPerPeer, nvlinkCentricScheduling int32
}

// config has kernels placed for the use of NVLink, as nccl-tests has since 2.28. It counts on Blackwell and later.
func (n *nccl) config() *config {
	if n.amd || n.number < 22800 {
		return nil
	}
	const unset = math.MinInt32
	return &config{
		size: unsafe.Sizeof(config{}), magic: 0xcafebeef, version: 22800,
		blocking: unset, cluster: unset, leastCTAs: unset, mostCTAs: unset, splitShare: unset, trafficClass: unset,
		collNet: unset, policy: unset, shrinkShare: unset, nvlsCTAs: unset, channelsPerPeer: unset,
		nvlinkCentricScheduling: 1,
	}
}

// gaveUp ends the request where NCCL's own threads failed since the last call.
func (n *nccl) gaveUp() {
	const inProgress = 7
	var code int32
	if n != nil && n.comm != 0 && pass(n.Async, n.comm, &code) == 0 && code != inProgress {
		n.must("a collective", int(code))
	}
}

func (n *nccl) leave() {
	if comm := n.comm; comm != 0 {
		n.comm = 0
		n.do("ncclCommDestroy", n.Destroy, comm)
	}
}

// typeOf is NCCL's number of a type.
func typeOf(t coll.Dtype) uintptr {
	return map[coll.Dtype]uintptr{
		coll.Int8: 0, coll.Uint8: 1, coll.Int32: 2, coll.Uint32: 3, coll.Int64: 4, coll.Uint64: 5, coll.Half: 6,
		coll.Float: 7, coll.Double: 8,
		coll.BFloat16: 9, coll.F8E4M3: 10, coll.F8E5M2: 11,
	}[t]
}

// redopOf is NCCL's number of a reduction.
func redopOf(r coll.Redop) uintptr {
	return map[coll.Redop]uintptr{coll.Sum: 0, coll.Prod: 1, coll.Max: 2, coll.Min: 3, coll.Avg: 4}[r]
}

// start puts one call of a collective into the stream.
func (n *nccl) start(o coll.Op, send, recv, stream uintptr) {
	t, count, root, reduce := typeOf(o.Type), uintptr(o.Count(n.ranks)), uintptr(o.Root), redopOf(o.Reduce)
	switch {
	case o.Kind == coll.AllReduce:
		n.must("ncclAllReduce", call(n.AllReduce, send, recv, count, t, reduce, n.comm, stream))
	case o.Kind == coll.Broadcast:
		n.must("ncclBroadcast", call(n.Broadcast, send, recv, count, t, root, n.comm, stream))
	case o.Kind == coll.Reduce:
		n.must("ncclReduce", call(n.Reduce, send, recv, count, t, reduce, root, n.comm, stream))
	case o.Kind == coll.AllGather:
		n.must("ncclAllGather", call(n.AllGather, send, recv, count, t, n.comm, stream))
	case o.Kind == coll.ReduceScatter:
		n.must("ncclReduceScatter", call(n.ReduceScatter, send, recv, count, t, reduce, n.comm, stream))
	case o.Kind == coll.AllToAll && n.AllToAll != 0:
		n.must("ncclAlltoAll", call(n.AllToAll, send, recv, count, t, n.comm, stream))
	case o.Kind == coll.Gather && n.Gather != 0:
		n.must("ncclGather", call(n.Gather, send, recv, count, t, root, n.comm, stream))
	case o.Kind == coll.Scatter && n.Scatter != 0:
		n.must("ncclScatter", call(n.Scatter, send, recv, count, t, root, n.comm, stream))
	default:
		n.startGroup(o, &messages{n: n, count: count, dtype: t, stream: stream}, send, recv)
	}
}

// messages are sends and receives of one group.
type messages struct {
	n                    *nccl
	count, dtype, stream uintptr
	code                 int // of the first that failed
}

func (m *messages) send(peer int, at uintptr) { m.put(m.n.Send, peer, at) }
func (m *messages) recv(peer int, at uintptr) { m.put(m.n.Recv, peer, at) }

func (m *messages) put(f uintptr, peer int, at uintptr) {
	m.code = cmp.Or(m.code, call(f, at, m.count, m.dtype, uintptr(peer), m.n.comm, m.stream))
}

// group puts into the stream what add adds, as one.
func (m *messages) group(add func()) {
	call(m.n.GroupStart)
	add()
	end := call(m.n.GroupEnd)
	m.n.must("ncclSend, ncclRecv", cmp.Or(m.code, end))
}

// startGroup puts a collective into the stream for which NCCL has no function, or had none before 2.28.
func (n *nccl) startGroup(o coll.Op, m *messages, send, recv uintptr) {
	block := uintptr(o.Block(n.ranks))
	m.group(func() {
		switch o.Kind {
		case coll.AllToAll:
			for r := range n.ranks {
				m.send(r, send+uintptr(r)*block)
				m.recv(r, recv+uintptr(r)*block)
			}
		case coll.Gather:
			m.send(o.Root, send)
			for r := range n.ranks {
				if n.rank == o.Root {
					m.recv(r, recv+uintptr(r)*block)
				}
			}
		case coll.Scatter:
			m.recv(o.Root, recv)
			for r := range n.ranks {
				if n.rank == o.Root {
					m.send(r, send+uintptr(r)*block)
				}
			}
		case coll.SendRecv:
			m.send((n.rank+1)%n.ranks, send)
			m.recv((n.rank+n.ranks-1)%n.ranks, recv)
		case coll.Hypercube:
			if own := recv + uintptr(n.rank)*block; send != own { // the rank's own block, by itself to itself
				m.send(n.rank, send)
				m.recv(n.rank, own)
			}
		}
	})
	if o.Kind != coll.Hypercube {
		return
	}
	// An all-gather by pairwise exchange, as nccl-tests has it: in the round of bit 2^i, ranks that differ in it exchange
	// the 2^i blocks that each has by then.
	for mask := 1; mask < n.ranks; mask <<= 1 {
		peer := n.rank ^ mask
		m.group(func() {
			m.send(peer, recv+uintptr(n.rank&^(mask-1))*block)
			m.recv(peer, recv+uintptr(peer&^(mask-1))*block)
		})
		m.count *= 2
	}
}
