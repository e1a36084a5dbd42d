"""aj exp: experiments."""
