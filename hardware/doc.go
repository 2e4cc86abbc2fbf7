// Package hardware is the catalogue: interconnects, GPUs, network cards,
// switches and whole machines, each figure with the document it stands in.
//
// It serves three callers. Preset and Node give machines that people rent or
// run, by name. Describe turns "InfiniBand, 400 Gb/s, 8 rails, 2:1" into leaf
// and spine switches. Complete fills what readers left unknown (a link's rate
// from its lanes, a GPU's memory from its name) and warns where a figure that
// was read contradicts the catalogue; it never replaces a known fact.
//
// Makers mostly advertise the sum of both directions. Every row keeps both
// figures and says which one the maker quotes; all computing is done with one
// direction. Peak arithmetic rates are dense: figures with structured sparsity
// are halved on the way in. Where documents differ, the row's Note says so.
//
// A preset lists the network cards that carry GPU traffic. Storage and
// management cards are left out, because nothing that is computed here uses
// them. Whatever a preset had to assume has the origin Assumed and the reason
// beside it; PCI addresses appear only where they are published.
//
// The tables are CSV files under data, part of the program; each is parsed when it
// is first asked for. Every row has a source. What is returned belongs to the caller.
//
// The API is stable within v0: fields and rows are only added.
package hardware
