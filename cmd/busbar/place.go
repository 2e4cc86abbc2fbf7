package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type placeCmd struct {
	common
	query.Place
	Output []string `short:"o" placeholder:"FORMAT[=FILE]" sep:"none" help:"Also write the nodes to take: nodelist, slurm, kueue, jobset, aws, gcp, azure or oci; FORMAT=FILE writes a file, FORMAT=- replaces the table. Repeatable."`
}

// Help ends with examples.
func (placeCmd) Help() string {
	return "Finds which of the free nodes a job should take. Sets of nodes are priced as steps of the job on the " +
		"cluster's map, with error bars, and compared with what the scheduler would take; placements that cannot be told " +
		"apart are said to tie. " +
		"The job is given as for step. Other jobs on the network are not in the prediction.\n\n" +
		"Examples:\n" +
		"  busbar place -c dgx-h100:64 -m llama3-70b --parallel tp=8 --nodes 8 --free node[3-20,40-63]\n" +
		"  busbar map topology.conf 'gpu[01-16]=dgx-h100' -o site.yaml; sinfo -N -o '%N %t' | busbar place -c site.yaml -m " +
		"llama3-8b --nodes 4 --free -\n" +
		"  kubectl get nodes,pods -A -o json > nodes.json; busbar place -c site.yaml -m llama3-8b --nodes 4 --free " +
		"nodes.json -o kueue=-\n" +
		"  busbar place -c gb200-nvl72:4 -m llama3-405b --parallel tp=4,pp=8 --nodes 16 --free node[0-3]-t[00-11] -o slurm=-"
}

// Run finds the nodes and writes what was asked for.
func (c *placeCmd) Run(e *env) error {
	return e.writeAnswer(ask.Named("place"), &c.Place, c.common, c.Output)
}
