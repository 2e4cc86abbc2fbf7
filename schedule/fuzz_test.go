package schedule

import (
	"testing"

	"busbar.dev/coll"
)

// FuzzCheck runs programs made of anything: Check answers, it does not fail.
func FuzzCheck(f *testing.F) {
	f.Add(uint8(1), uint8(2), uint8(1), uint8(1), []byte("\x02\x00\x01\x00\x01\x00\x01\x00\x00\x00\x01\x00"))
	f.Add(uint8(6), uint8(3), uint8(2), uint8(0),
		[]byte("abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Fuzz(func(t *testing.T, kind, ranks, lanes, depth uint8, data []byte) {
		s := &Schedule{
			Kind: coll.Kind(kind % 14), Ranks: int(ranks%9) - 1, Lanes: int(lanes % 4), Channels: 1, Depth: int(depth) % 3,
			Temp: 2,
		}
		s.Layout = Layout{Chunks: 2, Blocks: 1, Channels: 1}
		if s.Kind.Blocked() {
			s.Layout = Layout{Chunks: 2 * s.Ranks, Blocks: s.Ranks, Channels: 1}
		}
		p := make(Stored, max(s.Nodes(), 0))
		for r := range p {
			p[r] = make([][]Op, s.Lanes)
		}
		at := func(i int) int8 { return int8(data[i]) }
		for ; len(data) >= 12 && s.Ranks > 0 && s.Lanes > 0; data = data[12:] {
			r, l := int(data[0])%s.Ranks, int(data[1])%s.Lanes
			p[r][l] = append(p[r][l], Op{
				Verb: Verb(data[2] % 8), Buf: Buffer(data[3] % 4), Dst: Buffer(data[4] % 4), Peer: int32(at(5)), From: int32(at(6)),
				To: int32(at(7)), At: int32(at(8)), Class: int32(at(9)), After: Wait{int32(at(10)), int32(at(11))},
			})
		}
		s.Program = p
		_ = s.Check()
	})
}
