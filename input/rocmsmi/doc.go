// Package rocmsmi reads the topology that AMD's tools print: rocm-smi --showtopo
// (and its parts --showtopohops and --showtopotype) and amd-smi topology. Tables of weights, of accessibility and of
// bandwidth are passed over; lines about NUMA domains belong to a table.
//
// An xGMI link is recorded where the link type is XGMI and the table of hops
// says one; two GPUs that are XGMI over more hops have no link of their own.
// PCIE says that there is no xGMI, and nothing of the switches between. For the rate of a link the
// tools print the kernel's constant (25 GT/s whatever the GPU does).
//
// The package refuses tables of more than 512 GPUs and the JSON and CSV forms.
package rocmsmi
