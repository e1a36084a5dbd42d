"""One room a noun: decode, call one function of the engine, encode."""
