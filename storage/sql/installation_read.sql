-- The id of this installation.
SELECT id FROM installation
