//go:build linux

package native

import (
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
)

// nccl is NCCL, or RCCL, which has the same functions.
type nccl struct {
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
	path    string
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
		names, what, folders = []string{"librccl.so.1", "librccl.so"}, "librccl.so.1 (RCCL)",
			[]string{"/opt/rocm/lib", "/opt/rocm-*/lib"}
	}
	l, err := load(what, setting("NCCL"), names, folders)
	if err != nil {
		f := failed(err)
		f.Text += "; BUSBAR_NCCL=FILE names it"
		return nil, f
	}
	n := &nccl{path: l.path, amd: amd}
	if err := l.symbols(n, "nccl"); err != nil {
		return nil, err
	}
	var v int32
	if call(n.Version, uintptr(unsafe.Pointer(&v))) == 0 {
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

func (n *nccl) must(what string, code int) error {
	if code == 0 {
		return nil
	}
	words := ""
	if p, ok := address(n.Error, uintptr(code)); ok {
		words = text(p)
	}
	if p, ok := address(n.Last, n.comm); ok {
		if last := text(p); last != "" {
			words += ": " + last
		}
	}
	return failure(what, code, words)
}

func (n *nccl) key() (string, error) {
	var id [keyBytes]byte
	err := n.must("ncclGetUniqueId", call(n.ID, uintptr(unsafe.Pointer(&id[0]))))
	return hex.EncodeToString(id[:]), err
}

// join makes this worker a rank. It returns when all ranks have come.
func (n *nccl) join(key string, rank, ranks int) error {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != keyBytes {
		return &device.Failure{Text: fmt.Sprintf("a key of %d bytes; expected %d as hexadecimal digits", len(raw), keyBytes)}
	}
	if ranks < 1 || rank < 0 || rank >= ranks {
		return &device.Failure{Text: fmt.Sprintf("rank %d of %d", rank, ranks)}
	}
	if err := n.leave(); err != nil {
		return err
	}
	// C keeps the communicator's address nowhere, but writes to it until the call returns.
	comm, made := new(uintptr), n.config()
	var code int
	what := "ncclCommInitRankScalable"
	if n.InitMany != 0 {
		code = call(n.InitMany, uintptr(unsafe.Pointer(comm)), uintptr(ranks), uintptr(rank), 1,
			uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(made)))
	} else {
		what = "ncclCommInitRank"
		code = n.initByValue(comm, raw, rank, ranks)
	}
	if n.comm = *comm; code != 0 {
		err := n.must(what, code)
		n.comm = 0
		return err
	}
	n.rank, n.ranks = rank, ranks
	return nil
}

// config is how a communicator is made other than by default, in the layout of 2.28; later releases take it by its
// size.
type config struct {
	size                                     uintptr
	magic, version                           uint32
	blocking, cluster, leastCTAs, mostCTAs   int32
	net                                      uintptr
	splitShare, trafficClass                 int32
	name                                     uintptr
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

// gaveUp is what NCCL's own threads failed with since the last call.
func (n *nccl) gaveUp() error {
	const inProgress = 7
	var code int32
	if n == nil || n.comm == 0 || call(n.Async, n.comm, uintptr(unsafe.Pointer(&code))) != 0 || code == inProgress {
		return nil
	}
	return n.must("a collective", int(code))
}

// initByValue passes the key as C passes a large struct: amd64 on the stack, after the registers; arm64 by address.
func (n *nccl) initByValue(comm *uintptr, key []byte, rank, ranks int) int {
	if runtime.GOARCH == "arm64" {
		return call(n.Init, uintptr(unsafe.Pointer(comm)), uintptr(ranks), uintptr(unsafe.Pointer(&key[0])), uintptr(rank))
	}
	args := []uintptr{uintptr(unsafe.Pointer(comm)), uintptr(ranks), uintptr(rank), 0, 0, 0}
	for i := 0; i < keyBytes; i += 8 {
		args = append(args, *(*uintptr)(unsafe.Pointer(&key[i])))
	}
	code := call(n.Init, args...)
	runtime.KeepAlive(comm)
	return code
}

func (n *nccl) leave() error {
	if n.comm == 0 {
		return nil
	}
	err := n.must("ncclCommDestroy", call(n.Destroy, n.comm))
	n.comm = 0
	return err
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
func (n *nccl) start(o coll.Op, send, recv, stream uintptr) error {
	t, count, block := typeOf(o.Type), uintptr(o.Count(n.ranks)), uintptr(o.Block(n.ranks))
	switch o.Kind {
	case coll.AllReduce:
		return n.must("ncclAllReduce", call(n.AllReduce, send, recv, count, t, redopOf(o.Reduce), n.comm, stream))
	case coll.Broadcast:
		return n.must("ncclBroadcast", call(n.Broadcast, send, recv, count, t, uintptr(o.Root), n.comm, stream))
	case coll.Reduce:
		return n.must("ncclReduce", call(n.Reduce, send, recv, count, t, redopOf(o.Reduce), uintptr(o.Root), n.comm, stream))
	case coll.AllGather:
		return n.must("ncclAllGather", call(n.AllGather, send, recv, count, t, n.comm, stream))
	case coll.ReduceScatter:
		return n.must("ncclReduceScatter", call(n.ReduceScatter, send, recv, count, t, redopOf(o.Reduce), n.comm, stream))
	case coll.Hypercube:
		return n.hypercube(send, recv, count, t, block, stream)
	}
	if n.AllToAll != 0 { // NCCL since 2.28
		switch o.Kind {
		case coll.AllToAll:
			return n.must("ncclAlltoAll", call(n.AllToAll, send, recv, count, t, n.comm, stream))
		case coll.Gather:
			return n.must("ncclGather", call(n.Gather, send, recv, count, t, uintptr(o.Root), n.comm, stream))
		case coll.Scatter:
			return n.must("ncclScatter", call(n.Scatter, send, recv, count, t, uintptr(o.Root), n.comm, stream))
		}
	}
	call(n.GroupStart)
	var err error
	put := func(peer int, at uintptr) {
		if err == nil {
			err = n.must("ncclSend", call(n.Send, at, count, t, uintptr(peer), n.comm, stream))
		}
	}
	get := func(peer int, at uintptr) {
		if err == nil {
			err = n.must("ncclRecv", call(n.Recv, at, count, t, uintptr(peer), n.comm, stream))
		}
	}
	switch o.Kind {
	case coll.AllToAll:
		for r := range n.ranks {
			put(r, send+uintptr(r)*block)
			get(r, recv+uintptr(r)*block)
		}
	case coll.Gather:
		put(o.Root, send)
		for r := range n.ranks {
			if n.rank == o.Root {
				get(r, recv+uintptr(r)*block)
			}
		}
	case coll.Scatter:
		get(o.Root, recv)
		for r := range n.ranks {
			if n.rank == o.Root {
				put(r, send+uintptr(r)*block)
			}
		}
	case coll.SendRecv:
		put((n.rank+1)%n.ranks, send)
		get((n.rank+n.ranks-1)%n.ranks, recv)
	default:
		err = &device.Failure{Text: fmt.Sprintf("%s is none of the collectives that busbar-gpu runs", o.Kind)}
	}
	if e := n.must("ncclGroupEnd", call(n.GroupEnd)); err == nil {
		err = e
	}
	return err
}

// hypercube is an all-gather by pairwise exchange, as nccl-tests has it: in the round of bit 2^i, ranks that differ in
// it exchange the 2^i blocks that each has by then.
func (n *nccl) hypercube(send, recv, count, t, block, stream uintptr) error {
	own := recv + uintptr(n.rank)*block
	if send != own { // the rank's own block, by itself to itself
		call(n.GroupStart)
		call(n.Send, send, count, t, uintptr(n.rank), n.comm, stream)
		call(n.Recv, own, count, t, uintptr(n.rank), n.comm, stream)
		if err := n.must("ncclGroupEnd", call(n.GroupEnd)); err != nil {
			return err
		}
	}
	for mask := 1; mask < n.ranks; mask <<= 1 {
		peer := n.rank ^ mask
		mine, theirs := n.rank&^(mask-1), peer&^(mask-1)
		call(n.GroupStart)
		a := call(n.Send, recv+uintptr(mine)*block, count*uintptr(mask), t, uintptr(peer), n.comm, stream)
		b := call(n.Recv, recv+uintptr(theirs)*block, count*uintptr(mask), t, uintptr(peer), n.comm, stream)
		if err := n.must("ncclGroupEnd", call(n.GroupEnd)); err != nil || a != 0 || b != 0 {
			return err
		}
	}
	return nil
}
