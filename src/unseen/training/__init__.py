"""Training many seeds as one: recipes, stacks, the loop, evaluation, checkpoints. No framework."""
