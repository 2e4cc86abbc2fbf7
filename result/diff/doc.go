// Package diff lays two sets of measured collectives side by side and tells change from noise.
//
// What is compared are medians, with exact intervals, and whether two samples could be of one
// distribution is asked of the Mann-Whitney U test, which assumes nothing about its shape.
// Where both sides have enough runs of a row, a run is one observation; runs of one process
// are not independent of each other, and only several processes show how far apart those are.
//
// Many rows make some rare outcome likely: p is corrected for their number (Benjamini-Hochberg),
// and a change counts only from Least on, with each median outside the other side's interval.
package diff
