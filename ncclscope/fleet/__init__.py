"""What a store says about many jobs: causes, nodes and GPUs that come back, versions, and what nothing explains."""
