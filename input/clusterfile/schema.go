package clusterfile

import _ "embed" // for the schema

// Schema is the JSON Schema of the YAML form, for editors.
//
//go:embed schema.json
var Schema []byte
