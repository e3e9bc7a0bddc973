# Floods stdout with one line that never ends.
exec tr '\0' x </dev/zero
