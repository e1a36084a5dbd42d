"""Azure, thin and typed: one call of its REST interface a function, answers as small frozen values.

Nothing here decides, waits for a user or prints. Whoever decides is a backend above. Each function takes
a `Session`: one transport, one cloud, one source of tokens.
"""
