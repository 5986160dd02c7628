"""One parser a source of messages: tables of patterns, no state, nothing registers itself."""
