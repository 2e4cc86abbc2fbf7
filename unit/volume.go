package unit

// Volume is an amount of data in bytes that is computed, not counted: the mean message of a step, the
// memory of a job that no machine has. It need not be whole, and may be more than Bytes holds. In JSON it
// is a number of bytes.
type Volume float64

// mostBytes is what larger volumes are cut to when they become Bytes.
const mostBytes = 1 << 62

// Bytes is the volume in whole bytes; what is beyond 2^62 is cut to it.
func (v Volume) Bytes() Bytes { return Bytes(min(v, mostBytes)) }

// GiB is in units of 2^30 bytes, as makers count GPU memory.
func (v Volume) GiB() float64 { return float64(v) / (1 << 30) }

// GB is the volume in 1e9 bytes.
func (v Volume) GB() float64 { return float64(v) / 1e9 }

// At is how long the volume takes at a rate.
func (v Volume) At(r Rate) Span { return Span(float64(v) / float64(r)) }

// String prints as Bytes does.
func (v Volume) String() string { return v.Bytes().String() }
