package clusterfile

import _ "embed" // for the schema

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the YAML form, for editors.
func Schema() []byte { return schema }
