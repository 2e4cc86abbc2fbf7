// Package workload holds what is trained: models as exact lists of parameter tensors, in the
// order in which a framework registers them, and the arithmetic that follows from their
// dimensions.
//
// A Model is a sequence of blocks; a block is what a pipeline never divides, and consists of
// parts. A part is one operation with its dimensions: a matrix product, a lookup, a
// normalisation, the attention between them. Tensors, floating-point operations and how a part
// may be cut among ranks follow from the part; nothing is written down twice.
package workload
