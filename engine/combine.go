package engine

import (
	"busbar/coll"
)

// combine adds src to dst element by element, or whatever else the reduction is.
func combine(dst, src []byte, t coll.Dtype, op coll.Redop) {
	portable(dst, src, t, op)
}
