"""Research, answer, reconcile disputes, synthesise."""
