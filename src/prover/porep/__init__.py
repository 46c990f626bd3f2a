"""Filecoin's proof of replication, phase C2: what goes in is a C1 output, what comes out is 192 bytes a partition."""
