package report

import "io"

// Curves draws a forecast.
func Curves(w io.Writer, f *Forecast) error { return nil }
