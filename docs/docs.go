// Package docs holds the documents that the program itself shows.
package docs

import _ "embed"

// Seeds is docs/seeds.md: what the source documents say beside what busbar answers.
//
//go:embed seeds.md
var Seeds string
