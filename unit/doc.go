// Package unit holds bytes, rates, times, arithmetic speeds, power and energy as types that
// parse and print.
//
// Nothing here guesses. A rate without a unit is an error, "400G" is an error
// (bits or bytes?), and a rate is one direction unless its text says duplex,
// in which case it is halved on the way in. Sizes follow nccl-tests: a bare
// K, M, G or T is a power of 1024, KB/MB/GB/TB are powers of 1000 and
// KiB/MiB/GiB/TiB are powers of 1024.
package unit
