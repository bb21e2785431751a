"""Answer, rank each other blind, synthesise."""
