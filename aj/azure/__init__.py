"""Azure, thin and typed: one call of its REST interface a function, answers as small frozen values.

These rooms decide nothing, wait for no user and print nothing. Each function takes a `Session`: one
transport, one cloud, one source of tokens. A few rooms above them put calls together for the services that
share a workspace: `workplace`, `supply`, `submission` and `office`. Which place a job goes to is decided by
the services themselves.
"""
