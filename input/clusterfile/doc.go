// Package clusterfile reads and writes busbar's own cluster file: YAML that a
// person writes in a few lines, or that busbar wrote with every device and link.
//
// The short form names node types from the catalogue or describes them by
// counts, lists hosts as Slurm hostlists and describes the network by kind, speed
// and oversubscription:
//
//	nodes:
//	  - hosts: gpu[001-016]
//	    type: dgx-h100
//	network:
//	  kind: infiniband
//	  speed: NDR
//	  oversubscription: 2
//
// The long form has devices and links under a type, switches and links under the
// network. Both may stand in one file. Read also takes the JSON that busbar map
// --json prints. Unknown keys are errors, with the line and what was expected; a
// rate without a unit is an error. Anchors and aliases are refused, so that a small
// file cannot grow into a large one.
package clusterfile
