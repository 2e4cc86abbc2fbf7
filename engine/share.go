package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"busbar.dev/internal/shm"
)

// maxHandle limits the name of a segment as it travels.
const maxHandle = 512

// proofLen is the length of what the side that accepts reads from shared memory and sends back: who can has mapped it,
// and is on this host as it claims.
const proofLen = 16

// shares reports whether the connection to a peer goes through shared memory.
func (n *network) shares(peer int) (bool, error) {
	own, other := n.members[n.cfg.Rank], n.members[peer]
	near := own.Boot != "" && own.Boot == other.Boot
	switch {
	case n.cfg.Transport == TCP:
		return false, nil
	case n.cfg.Transport == Shm && !near:
		return false, fmt.Errorf("rank %d is on another host (%s) than rank %d (%s), or in another network namespace; "+
			"shared memory needs one host", peer, other.Host, n.cfg.Rank, own.Host)
	}
	return near, nil
}

// offer makes shared memory and tells the side that accepted the connection; nil when that
// side cannot use it.
func (n *network) offer(c net.Conn) (*shm.Segment, error) {
	c.SetDeadline(time.Now().Add(patience))
	defer c.SetDeadline(time.Time{})
	name := ""
	var proof, answer [proofLen]byte
	seg, made := shm.Create(segmentSize)
	if made == nil {
		name = seg.Handle().String()
		rand.Read(proof[:])
		copy(seg.Bytes()[ringData:], proof[:])
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(name)))
	_, err := c.Write(append(b, name...))
	if err == nil {
		_, err = io.ReadFull(c, answer[:])
	}
	if made != nil {
		return nil, made
	}
	if err == nil && answer == proof {
		return seg, seg.Settle()
	}
	seg.Close()
	if err == nil {
		err = fmt.Errorf("the other side cannot map it")
	}
	return nil, err
}

// accepts maps what the other side offers; nil when there is nothing, or it cannot be mapped.
func (n *network) accepts(c net.Conn) (*shm.Segment, error) {
	c.SetDeadline(time.Now().Add(patience))
	defer c.SetDeadline(time.Time{})
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	k := binary.LittleEndian.Uint16(size[:])
	if k > maxHandle {
		return nil, fmt.Errorf("a name of shared memory with %d bytes; at most %d are believed", k, maxHandle)
	}
	name := make([]byte, k)
	if _, err := io.ReadFull(c, name); err != nil {
		return nil, err
	}
	h, err := shm.ParseHandle(string(name))
	from := addrPort(c.RemoteAddr()).Addr()
	if err == nil && from != addrPort(c.LocalAddr()).Addr() && !slices.Contains(ownAddresses(), from) {
		err = fmt.Errorf("it claims to be on this host and connects from %s", from)
	}
	var seg *shm.Segment
	answer := make([]byte, proofLen)
	if err == nil {
		if seg, err = shm.Open(h, segmentSize); err == nil {
			answer = bytes.Clone(seg.Bytes()[ringData:][:proofLen])
		}
	}
	if _, werr := c.Write(answer); werr != nil && err == nil {
		seg.Close()
		return nil, werr
	}
	return seg, err
}
