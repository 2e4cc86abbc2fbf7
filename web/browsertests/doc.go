// Package browsertests goes through the page with Chromium. It is a module of its
// own, so that what drives a browser is no part of the program.
package browsertests
