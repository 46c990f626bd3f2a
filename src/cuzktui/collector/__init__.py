"""One process samples the system, follows the prover and merges everything into one ordered stream of events.

It writes the stream to the recording and to its standard output, and nothing that goes wrong with either, or with a
driver library, reaches the console or the proof. Run as ``python -m cuzktui.collector``.
"""
