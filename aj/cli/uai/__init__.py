"""aj uai: user-assigned identities."""
