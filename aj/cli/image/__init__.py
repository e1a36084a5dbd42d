"""aj image: images of Singularity's own."""
