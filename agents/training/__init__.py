"""Training: rollout, losses, learner, checkpoint and configuration."""
