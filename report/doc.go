// Package report shows a cluster to people: as text for a terminal, as the
// matrix that nvidia-smi prints, and as a picture (SVG).
//
// The package is not promised: it may change with the program.
//
// All of them are made from the model alone and come out the same every time:
// no clock, no randomness, no order of a map. Every figure is printed with its
// unit and, where there is room, with its origin (spec, read, measured,
// assumed). Rates are one direction; an advertised duplex figure is named as
// such beside it. In a text ten thousand equal nodes take the room of one.
package report
