"""Rules over observations: selects, decides with three answers, folds consequences under causes."""
