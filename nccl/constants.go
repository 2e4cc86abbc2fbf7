package nccl

// Kinds of hardware a latency belongs to.
const (
	hwNVLink = iota
	hwPCI
	hwNet
)

// protoRow is a figure by protocol.
type protoRow [nProtos]float64
