// Package bus carries the words of package fleet over NATS: events into a
// JetStream stream that keeps them, beats and requests past it.
//
// The package is not promised: it may change with the program.
//
// Start runs a server within this process, with its store and its keys in one
// folder. Connect reaches any server by its address: one that Start made on
// another machine, or a cluster that somebody runs anyway. All that follows is
// the same for both.
//
// # Once and only once
//
// A Publisher owns a subject of the stream. It says one thing after the other, each
// with the store's own condition that nothing was stored on the subject since the
// thing before (Nats-Expected-Last-Subject-Sequence). A message whose
// acknowledgement was lost is therefore refused when it is sent again, however
// much later that is; the publisher then reads the subject's last message and finds
// itself there. What was stored counts as said, the rest is sent. Saying one thing
// at a time costs a round trip each; a window of several cannot carry the
// condition, for the sequence of the message before is not known until it is
// stored.
//
// Two publishers on one subject (two agents with one name) are noticed by the same
// condition: the one that comes second finds a message that is not its own and
// gets a ConflictError; the numbers stay without gaps and doubles. Which of two
// agents goes on is for servers to say; see agents.go.
//
// The last message is read directly, from any replica. A replica may lag behind:
// what it shows is stored, what it does not show may be stored all the same, and
// the condition on the next message finds out.
//
// # Who may do what
//
// Servers run in NATS' operator mode: keys on disk sign accounts, an account's
// signing key signs users, and users prove that they have their key. A node may
// publish on its own subjects, be asked on its own subject, and nothing else.
//
// A node does not reach the store itself. Who publishes names the subject that an
// answer goes to, and nothing in NATS bounds that subject: the store, which may
// write anywhere, would delete the stream or speak in another's name for whoever
// has it answer there. So every server of the fleet is a relay too: it keeps what a
// node says on the node's subject, answers into the node's own inbox only, and
// takes no more from one node than any has to say. With several servers each takes
// a share. What is known of a node, how much it may send yet and which process
// sends under its name, is one record. A server of our own also shuts out, for a
// minute, whom that record names as flooding.
package bus
