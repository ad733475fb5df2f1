"""The laboratory: asks questions of policies, by simulations, by the papers' experiments and on live clusters."""
