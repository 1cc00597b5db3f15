// One session of TVM's RPC, on standard input and output.

#pragma once

// Serve one client until it has gone, or until the time is over; return the exit code.
//
// The current folder takes what the client uploads. Standard input and output carry the protocol after its handshake; whatever
// is printed goes to standard error.
int serve_session(long seconds);
