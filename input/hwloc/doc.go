// Package hwloc reads the XML that hwloc's lstopo writes: one machine's
// sockets, NUMA domains, PCIe tree, GPUs and NICs, in the dialects of hwloc 1
// (no version), 2 and 3.
//
// A text may hold several such documents, one per machine, and anything else
// around or between them; lines of two documents may alternate as long as a
// launcher marked them ("0: ", "[1,0]<stdout>:"). A document that breaks off is
// used as far as it goes, with a warning.
//
// The document type line is skipped, never loaded; entities are not expanded.
// Not read: hwloc's synthetic descriptions, its console form, memory
// attributes and CPU kinds. Caches, cores and processing units are counted, not
// kept.
package hwloc
