package main

import "busbar.dev/input/clusterfile"

type schemaCmd struct {
	common
}

// Help ends with an example.
func (schemaCmd) Help() string {
	return "With the schema in a file, editors complete and check cluster files that begin with\n  # " +
		"yaml-language-server: $schema=busbar.schema.json\n\nExample:\n  busbar schema > busbar.schema.json"
}

// Run prints the schema.
func (schemaCmd) Run(e *env) error {
	_, err := e.stdout.Write(clusterfile.Schema())
	return err
}
