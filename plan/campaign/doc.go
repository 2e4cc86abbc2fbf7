// Package campaign is a whole training run made of steps: how much of its time goes into steps when
// GPUs fail and state is saved and loaded again, how long it lasts, and what it costs in money and
// energy. It knows numbers of GPUs and times, and nothing of models and networks.
package campaign
