// Package campaign is a whole training run made of steps: how much of its time goes into steps when
// GPUs fail and state is saved and loaded again, how long it lasts, and what it costs in money and
// energy. It knows numbers of GPUs and times, and nothing of models and networks.
//
// # Stability
//
// Exported names keep their meaning within a version of the module. Published figures (MTBF, Restarting, Storage) name
// their source, and are replaced where a better one is published.
package campaign
