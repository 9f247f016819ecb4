-- Sessions and links whose time is over.
WITH links AS (
    DELETE FROM sign_in_links WHERE until <= clock_timestamp()
)
DELETE FROM sessions WHERE until <= clock_timestamp()
