# Eats memory until it is killed: tail holds the last line, which never ends.
exec tail /dev/zero
