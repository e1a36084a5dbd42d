"""aj auth: who is signed in to Azure."""
