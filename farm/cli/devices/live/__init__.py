"""`farm live`: a phone that a program on a PC drives, by TVM's tracker and RPC."""
