"""aj k8s: clusters looked at by hand."""
