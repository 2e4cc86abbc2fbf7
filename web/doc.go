// Package web is the page of busbar serve: what it shows, how it is asked, and
// who may ask. Every answer is a command's own output, made by the command's own
// code, so that the page, the program and the documents never disagree.
//
// All that listens stands in one table of routes. A route names the role that it
// takes; there is no other way in.
package web
