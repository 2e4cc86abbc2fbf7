// Package web is the page of busbar serve: what it shows, how it is asked, and
// who may ask. Its questions are package query's, its answers their documents, so
// that the page, the program and the documents never disagree.
//
// The package is not promised: it may change with the program.
//
// All that listens stands in one table of routes. A route names the role that it
// takes; there is no other way in.
package web
