//go:build !amd64 && !arm64

package reduce

import "busbar.dev/coll"

func detected() []Path { return []Path{Portable} }

func (Path) binary(coll.Dtype, coll.Redop) kernel { return nil }

func (Path) scaler(coll.Dtype, bool) scaler { return nil }

func (Path) half(Format) half { return half{} }

func (Path) block() block { return block{} }
