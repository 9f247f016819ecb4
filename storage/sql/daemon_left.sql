-- A daemon has ended in good order.
DELETE FROM daemons WHERE run = %(run)s
