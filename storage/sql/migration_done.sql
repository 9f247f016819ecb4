-- A step was taken; in the same transaction as the step.
INSERT INTO migrations (number, name) VALUES (%(number)s, %(name)s)
