// Package traffic says where the bytes of a communicator go: which ranks talk to
// which, over what, through which NIC, and how much of an all-reduce passes each.
//
// It is made from what NCCL logs about its set-up: rings and trees of every
// channel, and one line for every connection. An all-reduce is cut into as many
// parts as there are channels. Along a ring each rank sends a part 2(n−1)/n times;
// along a tree each rank sends its part once up and once down. Which of the two
// NCCL takes depends on the size, so both are given, in bytes a byte of the
// all-reduce.
//
// A log that shows some of the ranks gives some of the picture: what is not known
// is -1 or missing and counted, never made up.
package traffic
